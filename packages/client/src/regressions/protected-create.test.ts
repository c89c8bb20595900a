import { ErrorCode } from '@zabra/protocol'
import { expect, it } from 'vitest'
import type { Client } from '../client-api.ts'
import { setupEachTest, world } from '../testing/setup.ts'

setupEachTest()
const mode = 'ephemeralSequential'

const left = async (client: Client): Promise<string[]> =>
  (await world.outcome(client.getChildren('/'))).children.filter((name) => name !== 'zookeeper')

it('a protected create without an offline queue finds its znode, or leaves none', async () => {
  const client = await world.client({ offlineQueue: 0 })
  world.faults.toClient = () => undefined
  const done = client.create('/l-', { mode })
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

it('an aborted protected create removes its orphan under any retry policy', async () => {
  const client = await world.client({ retry: { maxAttempts: 1 } })
  const abort = new AbortController()
  world.faults.toClient = () => undefined
  client.create('/l-', { mode, signal: abort.signal }).catch(() => {})
  await world.settle()
  abort.abort()
  await world.settle()
  // The sync of the orphan removal is in flight when the connection breaks.
  delete world.faults.toClient
  world.lastConnection.cut()
  await world.advance(10_000)
  expect(await left(client)).toEqual([])
})

it('a protected create called between two sessions removes its orphan', async () => {
  const client = await world.client({ sessionTimeoutMs: 3000 })
  const abort = new AbortController()
  world.refuseConnections()
  world.lastConnection.cut()
  await world.advance(4500)
  expect(client.state).toBe('connecting')
  client.create('/l-', { mode, signal: abort.signal }).catch(() => {})
  // The new session is connected and its server creates the znode, but no reply arrives.
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
  expect(client.session.generation).toBe(2)
  expect(await left(client)).toEqual([])
})

it('a chroot client that closes during orphan removal leaves no znode', async () => {
  const client = await world.client()
  const chrootClient = client.chroot('/')
  const abort = new AbortController()
  world.faults.toClient = () => undefined
  chrootClient.create('/l-', { mode, signal: abort.signal }).catch(() => {})
  await world.settle()
  abort.abort()
  await chrootClient.close()
  await world.settle()
  delete world.faults.toClient
  world.lastConnection.cut()
  await world.advance(10_000)
  expect(await left(client)).toEqual([])
})

it('a sequential create with THROTTLEDOP, which was not applied, is retried', async () => {
  const client = await world.client()
  world.answerWith(ErrorCode.THROTTLEDOP)
  const { path } = await world.within(5000, client.create('/l-', { mode }))
  expect(path).toContain('l-')
})

it('an ephemeral create whose session ends during the search rejects with maybeApplied', async () => {
  const client = await world.client({ sessionTimeoutMs: 3000 })
  world.faults.toClient = () => undefined
  const done = client.create('/l-', { mode })
  done.catch(() => {})
  await world.settle()
  world.refuseConnections()
  world.lastConnection.cut()
  await world.advance(5000)
  await expect(done).rejects.toMatchObject({ code: 'SESSION_EXPIRED', maybeApplied: true })
})

it.each(['timeout', 'signal'])('the search for a lost create waits no longer than its %s', async (limit) => {
  const client = await world.client({ offlineQueue: 0 })
  const abort = new AbortController()
  world.faults.toClient = () => undefined
  const limits = limit === 'timeout' ? { timeoutMs: 4000 } : { signal: abort.signal }
  const done = client.create('/l-', { mode, ...limits })
  done.catch(() => {})
  await world.settle()
  delete world.faults.toClient
  const restore = world.refuseConnections()
  world.lastConnection.cut()
  await world.advance(4000)
  abort.abort()
  await expect(world.within(100, done)).rejects.toMatchObject({
    code: limit === 'timeout' ? 'OPERATION_TIMEOUT' : 'ABORTED',
    maybeApplied: true,
  })
  restore()
  await world.advance(20_000)
  expect(await left(client)).toEqual([])
})
