import { ErrorCode } from '@zabra/protocol'
import { expect, it } from 'vitest'
import { setupEachTest, world } from '../testing/setup.ts'

setupEachTest()

it('a write whose caller gives up in the same turn in which it is sent rejects with maybeApplied', async () => {
  const client = await world.client()
  const abort = new AbortController()
  const done = client.create('/a', { signal: abort.signal })
  abort.abort()
  await expect(done).rejects.toMatchObject({ name: 'AbortError', maybeApplied: true })
  await world.settle()
  expect(await world.outcome(client.exists('/a'))).toBeDefined()
})

it('a sequential create whose caller gives up in the turn in which it is sent leaves no znode behind', async () => {
  const client = await world.client()
  const abort = new AbortController()
  const mode = 'ephemeralSequential'
  const done = client.create('/l-', { mode, signal: abort.signal })
  done.catch(() => {})
  abort.abort()
  await world.advance(1000)
  const { children } = await world.outcome(client.getChildren('/'))
  expect(children).toEqual(['zookeeper'])
})

it('a write that the server has rejected is not maybeApplied while its version is read for the error', async () => {
  const client = await world.client()
  await world.outcome(client.create('/a'))
  world.faults.toClient = (chunk, connection) => {
    // The reply to the write arrives, and none to the read of the version.
    world.faults.toClient = () => undefined
    return connection === world.lastConnection ? chunk : undefined
  }
  const done = client.setData('/a', 'x', { version: 7, timeoutMs: 1000 })
  done.catch(() => {})
  await world.advance(1000)
  await expect(world.outcome(done)).rejects.toMatchObject({ code: 'OPERATION_TIMEOUT', maybeApplied: false })
})

it('a write that a retry function aborts while it waits for a connection is not sent', async () => {
  const abort = new AbortController()
  const retry = (): false => {
    abort.abort()
    return false
  }
  const client = await world.client({ retry })
  world.faults.toServer = () => undefined
  const read = client.getData('/')
  read.catch(() => {})
  await world.settle()
  // The move to another server waits for the read, and the write for the move.
  expect(await world.outcome(client.updateServerList('b:2181'))).toBe(true)
  const write = client.create('/a', { signal: abort.signal })
  write.catch(() => {})
  delete world.faults.toServer
  world.lastConnection.cut()
  await world.advance(3000)
  await expect(read).rejects.toMatchObject({ code: 'CONNECTION_LOSS' })
  await expect(write).rejects.toMatchObject({ code: 'ABORTED', maybeApplied: false })
  expect(await world.outcome(client.exists('/a'))).toBeUndefined()
})

it('a write that an observer of another aborts as the client connects is not sent', async () => {
  const abort = new AbortController()
  const request = () => (): void => abort.abort()
  const client = await world.client({ maxRequestBytes: 1024, instrumentation: { request } })
  world.lastConnection.cut()
  await world.settle()
  const tooLong = client.create('/a', { data: 'x'.repeat(2000) })
  const write = client.create('/b', { signal: abort.signal })
  for (const each of [tooLong, write]) each.catch(() => {})
  await world.advance(3000)
  await expect(tooLong).rejects.toMatchObject({ code: 'USAGE' })
  await expect(write).rejects.toMatchObject({ code: 'ABORTED', maybeApplied: false })
  expect(await world.outcome(client.exists('/b'))).toBeUndefined()
})

it('a write that a retry function aborts as it allows its retry is not sent again', async () => {
  const abort = new AbortController()
  const retry = (): number => {
    abort.abort()
    return 0
  }
  const client = await world.client({ retry })
  world.answerWith(ErrorCode.THROTTLEDOP)
  const write = client.create('/a', { signal: abort.signal })
  write.catch(() => {})
  await world.advance(1000)
  await expect(write).rejects.toMatchObject({ code: 'ABORTED', maybeApplied: false })
  expect(await world.outcome(client.exists('/a'))).toBeUndefined()
})

it('a write that was sent is maybeApplied when an observer aborts it as the client closes', async () => {
  const abort = new AbortController()
  const request = () => (): void => abort.abort()
  const client = await world.client({ instrumentation: { request } })
  world.faults.toClient = () => undefined
  const writes = Promise.allSettled([client.create('/a'), client.create('/b', { signal: abort.signal })])
  await world.settle()
  await client.detach()
  expect(await world.outcome(writes)).toMatchObject([
    { reason: { code: 'CLOSED', maybeApplied: true } },
    { reason: { code: 'ABORTED', maybeApplied: true } },
  ])
})
