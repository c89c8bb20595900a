import { afterEach, beforeEach, expect, it } from 'vitest'
import { bytes, World } from '../testdata/world.ts'
import type { Client } from '../types.ts'

let world: World
let client: Client
const started = async (options = {}): Promise<void> => {
  client = await world.client(options)
}
beforeEach(async () => {
  world = await World.start()
})
afterEach(() => world.end())

it('a guaranteed delete survives a connection loss, whatever was in flight before it', async () => {
  await started()
  await world.outcome(client.create('/lock'))
  await world.outcome(client.create('/data'))
  world.interference.toServer = () => undefined
  client.setData('/data', bytes('x')).catch(() => {})
  const done = client.delete('/lock', { guaranteed: true })
  done.catch(() => {})
  await world.settle()
  delete world.interference.toServer
  world.wire.cut()
  await world.advance(10_000)
  expect(await world.outcome(client.exists('/lock'))).toBeUndefined()
  await done
})

it.each([{ offlineQueue: 0 }, { retry: { maxAttempts: 1 } }])(
  'a guaranteed delete is one with %j too',
  async (options) => {
    await started(options)
    await world.outcome(client.create('/lock'))
    world.interference.toServer = () => undefined
    client.delete('/lock', { guaranteed: true }).catch(() => {})
    await world.settle()
    delete world.interference.toServer
    world.wire.cut()
    await world.advance(10_000)
    expect(await world.outcome(client.exists('/lock'))).toBeUndefined()
  },
)

it('a guaranteed delete that is asked for while suspended, without an offline queue', async () => {
  await started({ offlineQueue: 0 })
  await world.outcome(client.create('/lock'))
  world.wire.cut()
  await world.settle()
  client.delete('/lock', { guaranteed: true }).catch(() => {})
  await world.advance(10_000)
  expect(await world.outcome(client.exists('/lock'))).toBeUndefined()
})

it('the time limits of a guaranteed delete and of addAuth hold', async () => {
  await started()
  world.interference.toServer = () => undefined
  let ended = 0
  client.delete('/x', { guaranteed: true, timeout: 1000 }).catch(() => ended++)
  client.addAuth('digest', bytes('a:b'), { timeout: 1000 }).catch(() => ended++)
  await world.advance(2000)
  expect(ended).toBe(2)
})
