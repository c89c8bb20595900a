import { expect, it } from 'vitest'
import { client, setupEachTest, world } from '../testing/setup.ts'
import { bytes } from '../testing/manual-world.ts'

setupEachTest({})

it.each([-4, -7, -122])('a read with error code %i is retried, as after a connection loss', async (code) => {
  world.answerWith(code)
  expect(await world.within(15_000, client.exists('/'))).toBeDefined()
})

it.each([-4, -7, -122])('a write with error code %i rejects with maybeApplied', async (code) => {
  world.answerWith(code)
  await expect(world.outcome(client.setData('/', bytes('x')))).rejects.toMatchObject({ maybeApplied: true })
})

it.each([-13, -14])('a reconfiguration with error code %i is retried with backoff', async (code) => {
  const given = world.answerWith(code, { times: 100 })
  client.reconfig({ joining: 'server.1=a:1:2' }).catch(() => {})
  await world.advance(5000)
  expect(given()).toBeGreaterThan(1)
})

it('a call with an aborted signal sends nothing', async () => {
  await world.outcome(client.create('/a'))
  const sent: number[] = []
  world.faults.toServer = (chunk) => (sent.push(chunk.length), chunk)
  const signal = AbortSignal.abort()
  await expect(client.addAuth('digest', bytes('a:b'), { signal })).rejects.toMatchObject({
    code: 'ABORTED',
    maybeApplied: false,
  })
  await expect(client.delete('/a', { guaranteed: true, signal })).rejects.toMatchObject({
    code: 'ABORTED',
    maybeApplied: false,
  })
  await world.settle()
  expect(sent).toEqual([])
})
