import { ServerFaultError } from '@zabra/client/core'
import { expect, it } from 'vitest'
import { client, cutOff, setupEachTest, run, world } from '../testing/setup.ts'
import { text } from '../testing/world.ts'
import { watchUntil } from './watch.ts'

setupEachTest('a')

const options = { operation: 'test' }

it('a watch loop continues when its reads lose the connection repeatedly', async () => {
  await run(client.create('/data'))
  let left = 12
  world.faults.toServer = (chunk, wire) => {
    if (left === 0 || !text(chunk).includes('/data')) return chunk
    left--
    wire.cut()
    return undefined
  }
  const found = watchUntil(client, options, (look) => look.data('/data'))
  expect(await world.within(60_000, found)).toMatchObject({ stat: { version: 0 } })
  expect(left).toBe(0)
})

it('a watch loop rejects with a decoding error instead of retrying without end', async () => {
  const small = await world.client({ servers: 'b:2181', maxFrameBytes: 2048 })
  await run(client.create('/data', { data: new Uint8Array(4000) }))
  const found = watchUntil(small, options, (look) => look.data('/data'))
  await expect(world.within(60_000, found)).rejects.toBeInstanceOf(ServerFaultError)
  cutOff('b')()
})
