import { expect, it } from 'vitest'
import { setupEachTest, world } from '../testing/setup.ts'
import { bytes } from '../testing/manual-world.ts'

setupEachTest()

it('a guaranteed delete is applied after a connection loss, with any request in flight before it', async () => {
  const client = await world.client()
  await world.outcome(client.create('/lock'))
  await world.outcome(client.create('/data'))
  world.faults.toServer = () => undefined
  client.setData('/data', bytes('x')).catch(() => {})
  const done = client.delete('/lock', { guaranteed: true })
  done.catch(() => {})
  await world.settle()
  delete world.faults.toServer
  world.lastConnection.cut()
  await world.advance(10_000)
  expect(await world.outcome(client.exists('/lock'))).toBeUndefined()
  await done
})

it.each([{ offlineQueue: 0 }, { retry: { maxAttempts: 1 } }])(
  'a guaranteed delete is applied with %j',
  async (options) => {
    const client = await world.client(options)
    await world.outcome(client.create('/lock'))
    world.faults.toServer = () => undefined
    client.delete('/lock', { guaranteed: true }).catch(() => {})
    await world.settle()
    delete world.faults.toServer
    world.lastConnection.cut()
    await world.advance(10_000)
    expect(await world.outcome(client.exists('/lock'))).toBeUndefined()
  },
)

it('a guaranteed delete called while suspended is applied without an offline queue', async () => {
  const client = await world.client({ offlineQueue: 0 })
  await world.outcome(client.create('/lock'))
  world.lastConnection.cut()
  await world.settle()
  client.delete('/lock', { guaranteed: true }).catch(() => {})
  await world.advance(10_000)
  expect(await world.outcome(client.exists('/lock'))).toBeUndefined()
})

it('a guaranteed delete and addAuth respect their timeouts', async () => {
  const client = await world.client()
  world.faults.toServer = () => undefined
  let ended = 0
  client.delete('/x', { guaranteed: true, timeoutMs: 1000 }).catch(() => ended++)
  client.addAuth('digest', bytes('a:b'), { timeoutMs: 1000 }).catch(() => ended++)
  await world.advance(2000)
  expect(ended).toBe(2)
})
