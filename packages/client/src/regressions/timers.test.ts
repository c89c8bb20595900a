// oxlint-disable unbound-method -- what is measured is replaced and put back
import { ErrorCode } from '@zabra/protocol'
import { expect, it } from 'vitest'
import { setupEachTest, world } from '../testing/setup.ts'
import { bytes } from '../testing/manual-world.ts'

setupEachTest()

it('a throttled request leaves no timer after close, which would keep the process alive', async () => {
  const client = await world.client({ retry: { baseMs: 10_000, capMs: 10_000 } })
  world.answerWith(ErrorCode.THROTTLEDOP)
  client.getData('/').catch(() => {})
  await world.settle()
  await world.outcome(client.close())
  expect(world.clock.pendingTimers().map(({ name }) => name)).not.toContain('retry of getData')
})

it('a guaranteed delete that waits for its next try leaves no timer after close', async () => {
  const client = await world.client({ offlineQueue: 0 })
  world.isolate()
  world.lastConnection.cut()
  await world.settle()
  client.delete('/a', { guaranteed: true }).catch(() => {})
  await world.settle()
  expect(world.clock.pendingTimers().map(({ name }) => name)).toContain('backoff')
  await world.outcome(client.close())
  await world.settle()
  expect(world.clock.pendingTimers().map(({ name }) => name)).not.toContain('backoff')
})

it('a throttled request leaves no timer after its call has ended', async () => {
  const client = await world.client({ retry: { baseMs: 10_000, capMs: 10_000 } })
  const abort = new AbortController()
  world.answerWith(ErrorCode.THROTTLEDOP)
  client.getData('/', { signal: abort.signal }).catch(() => {})
  await world.settle()
  abort.abort()
  await world.settle()
  expect(world.clock.pendingTimers().map(({ name }) => name)).not.toContain('retry of getData')
})

it('a write that the server did not apply is not maybeApplied when its caller gives up', async () => {
  const client = await world.client({ retry: { baseMs: 10_000, capMs: 10_000 } })
  const abort = new AbortController()
  world.answerWith(ErrorCode.THROTTLEDOP)
  const done = client.create('/a', { signal: abort.signal })
  done.catch(() => {})
  await world.settle()
  abort.abort()
  await expect(world.outcome(done)).rejects.toMatchObject({ code: 'ABORTED', maybeApplied: false })
})

it('a request that never reached the transport is not maybeApplied', async () => {
  const client = await world.client()
  // More than a connection takes at once: the next requests stay in the client.
  let blocked = false
  const connection = world.lastConnection
  const { write } = connection
  connection.write = (chunk: Uint8Array) => {
    blocked = true
    write.call(connection, chunk)
    return false
  }
  const sent = client.create('/a', { data: bytes('x') })
  await Promise.resolve()
  world.clock.advance(0)
  expect(blocked).toBe(true)
  world.faults.toClient = () => undefined
  const unsent = client.create('/b', { data: bytes('x') })
  sent.catch(() => {})
  unsent.catch(() => {})
  await world.settle()
  connection.cut()
  await world.settle()
  delete world.faults.toClient
  await expect(world.outcome(sent)).rejects.toMatchObject({ code: 'CONNECTION_LOSS', maybeApplied: true })
  await expect(world.within(5000, unsent)).rejects.toMatchObject({
    code: 'CONNECTION_LOSS',
    maybeApplied: false,
  })
})

it('the time limit of retries begins with the call, also on a connection that takes no more', async () => {
  const client = await world.client({ sessionTimeoutMs: 60_000, retry: { maxElapsedMs: 5000 } })
  const connection = world.lastConnection
  const { write } = connection
  connection.write = (chunk: Uint8Array) => {
    write.call(connection, chunk)
    return false
  }
  const first = client.exists('/')
  await world.outcome(first)
  // These frames stay in the client.
  client.exists('/').catch(() => {})
  await world.advance(8000)
  const late = client.exists('/')
  await world.settle()
  connection.cut()
  expect(await world.within(4000, late)).toBeDefined()
})

it('a write whose caller gave up is not sent later to a read-write server', async () => {
  const client = await world.client()
  const abort = new AbortController()
  world.answerWith(ErrorCode.NOTREADONLY, {
    deliver: (connection, reply) => void world.clock.after(100, 'reply', () => connection.deliver(reply)),
  })
  client.create('/late', { signal: abort.signal, waitForReadWrite: true }).catch(() => {})
  await world.settle()
  abort.abort() // While it is in flight; the server then replies NOTREADONLY: it was not applied.
  await world.advance(200)
  world.lastConnection.cut()
  await world.advance(3000)
  expect(await world.outcome(client.exists('/late'))).toBeUndefined()
})

it('a signal that outlives a client does not keep it in memory', async () => {
  const client = await world.client()
  let listeners = 0
  const { signal } = new AbortController()
  const add = signal.addEventListener.bind(signal)
  const remove = signal.removeEventListener.bind(signal)
  signal.addEventListener = (...args: Parameters<typeof add>) => (listeners++, add(...args))
  signal.removeEventListener = (...args: Parameters<typeof remove>) => (listeners--, remove(...args))
  await world.outcome(client.close({ signal }))
  expect(listeners).toBe(0)
})
