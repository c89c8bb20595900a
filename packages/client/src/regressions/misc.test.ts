import { afterEach, beforeEach, expect, it } from 'vitest'
import { Lease } from '../session/lease.ts'
import { World } from '../testdata/world.ts'
import type { Client } from '../types.ts'

let world: World
let client: Client
beforeEach(async () => {
  world = await World.start()
  client = await world.client({ sessionTimeout: 3000 })
})
afterEach(() => world.end())

it('a shorter timeout after a reconnect shortens the lease', () => {
  const lease = new Lease()
  lease.begin(30_000, 0)
  lease.answered(0, 'commit')
  expect(lease.horizon).toBe(28_000)
  lease.begin(6_000, 1000) // another server, at 1000, grants less
  lease.answered(1000, 'commit')
  expect(lease.horizon).toBeLessThanOrEqual(1000 + 6_000 - 1500)
})

it('connecting after expiry bears the number of the new session', async () => {
  const seen: [string, number][] = []
  void (async () => {
    for await (const { state, sessionEpoch } of client.states()) seen.push([state, sessionEpoch])
  })()
  world.interference.open = () => {
    throw new Error('down')
  }
  world.wire.cut()
  await world.advance(5000)
  delete world.interference.open
  await world.advance(10_000)
  expect(seen).toEqual([
    ['connected', 1],
    ['suspended', 1],
    ['expired', 1],
    ['connecting', 2],
    ['connected', 2],
  ])
})

it('deleting everything below a chroot spares no znode that happens to be called zookeeper', async () => {
  await world.outcome(client.mkdirp('/app/zookeeper/x'))
  const view = client.chroot('/app')
  await world.outcome(view.delete('/', { recursive: true }))
  expect((await world.outcome(client.getChildren('/app'))).children).toEqual([])
})

it('a missing chroot is named by reads of it too', async () => {
  const view = await world.client({ servers: 'a:2181/none' })
  await expect(world.outcome(view.getChildren('/'))).rejects.toMatchObject({ code: 'NO_CHROOT' })
})

it('a watch() that is answered after its view closed is removed', async () => {
  const view = client.chroot('/')
  const watching = view.watch('/w')
  await view.close()
  const watcher = await world.outcome(watching).catch(() => undefined)
  await world.outcome(client.create('/w'))
  await world.settle()
  const next = watcher === undefined ? undefined : await world.outcome(watcher[Symbol.asyncIterator]().next())
  expect(next?.done ?? true).toBe(true)
})

it('maxElapsed also ends waiting for a connection', async () => {
  const options = { retry: { maxElapsed: 1000 } }
  const done = client.getData('/', options)
  await world.outcome(done)
  world.interference.toServer = () => undefined
  let failed = false
  client.getData('/', options).catch(() => (failed = true))
  await world.settle()
  delete world.interference.toServer
  world.interference.open = () => {
    throw new Error('down')
  }
  world.wire.cut()
  await world.advance(2500)
  delete world.interference.open
  expect(failed).toBe(true)
})

it('options that cannot be right give a UsageError', async () => {
  for (const wrong of [
    { errorPolicy: { lease: undefined } },
    { auth: [null] },
    { retry: { maxAttempts: 'x' } },
    { retry: { cap: Number.NaN } },
  ]) {
    await expect(world.connecting(wrong as never), JSON.stringify(wrong)).rejects.toMatchObject({
      code: 'USAGE',
    })
  }
  for (const timeout of [Number.NaN, -1, 'x']) {
    const done = (async () => client.getData('/', { timeout: timeout as never }))()
    await expect(world.outcome(done), String(timeout)).rejects.toMatchObject({ code: 'USAGE' })
  }
})
