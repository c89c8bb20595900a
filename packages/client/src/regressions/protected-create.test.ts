import { afterEach, beforeEach, expect, it } from 'vitest'
import { ManualWorld } from '../testing/manual-world.ts'
import type { Client } from '../types.ts'

let world: ManualWorld
beforeEach(async () => {
  world = await ManualWorld.start()
})
afterEach(() => world.end())
const mode = 'ephemeralSequential'

const left = async (client: Client): Promise<string[]> =>
  (await world.outcome(client.getChildren('/'))).children.filter((name) => name !== 'zookeeper')

it('finds its znode again without an offline queue, or leaves none', async () => {
  const client = await world.client({ offlineQueue: 0 })
  world.faults.toClient = () => undefined
  const done = client.create('/l-', undefined, { mode })
  const outcome = done.then(
    ({ path }) => path.slice(1),
    () => undefined,
  )
  await world.settle()
  delete world.faults.toClient
  world.lastConnection.cut()
  await world.settle()
  await world.advance(10_000)
  const name = await outcome
  expect(await left(client)).toEqual(name === undefined ? [] : [name])
})

it('cleans up behind a caller that gave up, under any retry policy', async () => {
  const client = await world.client({ retry: { maxAttempts: 1 } })
  const abort = new AbortController()
  world.faults.toClient = () => undefined
  client.create('/l-', undefined, { mode, signal: abort.signal }).catch(() => {})
  await world.settle()
  abort.abort()
  await world.settle()
  // The sync of the cleaner is in flight when the connection breaks.
  delete world.faults.toClient
  world.lastConnection.cut()
  await world.advance(10_000)
  expect(await left(client)).toEqual([])
})

it('cleans up when the call was made between two sessions', async () => {
  const client = await world.client({ sessionTimeout: 3000 })
  const abort = new AbortController()
  world.faults.open = () => {
    throw new Error('unreachable')
  }
  world.lastConnection.cut()
  await world.advance(4500)
  expect(client.state).toBe('connecting')
  client.create('/l-', undefined, { mode, signal: abort.signal }).catch(() => {})
  // The new session stands and its server makes the znode, but no reply comes.
  delete world.faults.open
  let hold = false
  world.faults.toClient = (chunk) => {
    if (hold) return undefined
    hold = true // the handshake only
    return chunk
  }
  for (let i = 0; i < 200 && !hold; i++) await world.advance(50)
  await world.settle()
  abort.abort()
  await world.settle()
  delete world.faults.toClient
  world.lastConnection.cut()
  await world.advance(5000)
  expect(client.session.epoch).toBe(2)
  expect(await left(client)).toEqual([])
})

it('a view that closes while its cleaner is at work leaves no znode', async () => {
  const client = await world.client()
  const view = client.chroot('/')
  const abort = new AbortController()
  world.faults.toClient = () => undefined
  view.create('/l-', undefined, { mode, signal: abort.signal }).catch(() => {})
  await world.settle()
  abort.abort()
  await view.close()
  await world.settle()
  delete world.faults.toClient
  world.lastConnection.cut()
  await world.advance(10_000)
  expect(await left(client)).toEqual([])
})

it('tries a sequential create again that the server did not carry out (THROTTLEDOP)', async () => {
  const client = await world.client()
  let throttled = 0
  world.faults.toServer = (chunk) => {
    const view = new DataView(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    if (throttled > 0 || view.getInt32(4) <= 0) return chunk
    throttled++
    const wire = world.lastConnection
    const reply = new Uint8Array(20)
    const r = new DataView(reply.buffer)
    r.setInt32(0, 16)
    r.setInt32(4, view.getInt32(4))
    r.setInt32(16, -127)
    world.clock.immediate(() => wire.deliver(reply))
    return undefined
  }
  const { path } = await world.within(5000, client.create('/l-', undefined, { mode }))
  expect(path).toContain('l-')
})

it('says that an ephemeral znode may have been made when the session ends while it is looked for', async () => {
  const client = await world.client({ sessionTimeout: 3000 })
  world.faults.toClient = () => undefined
  const done = client.create('/l-', undefined, { mode })
  done.catch(() => {})
  await world.settle()
  world.faults.open = () => {
    throw new Error('unreachable')
  }
  world.lastConnection.cut()
  await world.advance(5000)
  await expect(done).rejects.toMatchObject({ code: 'SESSION_EXPIRED', maybeApplied: true })
})
