import { AbortedError } from '@zabra/client/core'
import { expect, it } from 'vitest'
import { client as a, setupEachTest, other as b, run, third as c, world } from '../testing/setup.ts'
import { bytes, rejectionOf, text, watchSettled } from '../testing/world.ts'
import { readRequest, writeRequest } from './request.ts'
import { RevocableMutex } from './revocable-mutex.ts'
import { RevocableReadWriteLock } from './revocable-read-write-lock.ts'
import { revoke } from './revoke.ts'

setupEachTest('a', 'a', 'a')

it('requests round-trip in the words of every naming scheme', () => {
  expect(text(writeRequest('recipe', {}))).toBe('unlock')
  expect(text(writeRequest('curator', { reason: 'x' }))).toBe('__REVOKE__')
  const request = { by: 'me', reason: 'maintenance', graceMs: 500 }
  expect(readRequest(writeRequest('recipe', request))).toEqual(request)
  expect(readRequest(bytes('__REVOKE__'))).toEqual({})
  expect(readRequest(bytes('unlock {broken'))).toEqual({})
  expect(readRequest(bytes('unlocked'))).toBeUndefined()
})

it('a holder receives the requester and the reason of a revocation, and keeps the lock until it releases it', async () => {
  const held = await run(new RevocableMutex(a, '/lock').acquire())
  const asked = revoke(b, '/lock', { by: 'b', reason: 'maintenance' })
  expect(await run(held.revokeRequested)).toEqual({ by: 'b', reason: 'maintenance' })
  const done = watchSettled(asked)
  held.assertHeld()
  expect(done()).toBe(false)
  await run(held.release())
  expect(await run(asked)).toBe('released')
  expect(world.server.stats().watches).toBe(0)
})

it('a holder that does not release keeps the lock, or loses it by force after the grace period', async () => {
  const held = await run(new RevocableMutex(a, '/lock').acquire())
  expect(await world.within(2000, revoke(b, '/lock', { graceMs: 1000 }))).toBe('refused')
  held.assertHeld()
  expect(await world.within(2000, revoke(b, '/lock', { graceMs: 1000, force: true }))).toBe('forced')
  await world.settle()
  expect(held.signal.reason).toMatchObject({ name: 'LostError', reason: 'revoked' })
  await expect(held.guard([])).rejects.toMatchObject({ reason: 'revoked' })
  await run(held.release())
})

it('force without a grace period takes the lock before the request was read, and the holder still gets revoked', async () => {
  const held = await run(new RevocableMutex(a, '/lock').acquire())
  await world.settle()
  expect(await world.within(1000, revoke(b, '/lock', { graceMs: 0, force: true }))).toBe('forced')
  await world.settle()
  expect(held.signal.reason).toMatchObject({ reason: 'revoked' })
  await run(held.release())
})

it('a waiter that is asked leaves the queue', async () => {
  const held = await run(new RevocableMutex(a, '/lock').acquire())
  const waiting = rejectionOf(new RevocableMutex(b, '/lock').acquire())
  await world.settle()
  const [, waiter] = await run(new RevocableMutex(a, '/lock').participants())
  expect(await run(revoke(c, waiter!.path, { reason: 'not today' }))).toBe('released')
  expect(await run(waiting)).toMatchObject({
    reason: 'revoked',
    message: expect.stringContaining('not today'),
  })
  held.assertHeld()
  await run(held.release())
  expect(world.server.stats().watches).toBe(0)
})

it('a request that was written before the watch was set is read', async () => {
  world.faults.toServer = (chunk, wire) => {
    // The watch on the own znode is sent after the request has been written.
    const path = /\/lock\/[0-9a-f-]{36}-lock-\d{10}/.exec(new TextDecoder().decode(chunk))?.[0]
    if (path === undefined) return chunk
    delete world.faults.toServer
    void c.setData(path, bytes('unlock')).then(() => wire.send(chunk))
    return undefined
  }
  expect(await run(rejectionOf(new RevocableMutex(a, '/lock').acquire()))).toMatchObject({
    reason: 'revoked',
  })
  await world.settle()
  expect((await run(c.getChildren('/lock'))).children).toEqual([])
})

it('revoking a free lock, or a contender that is just leaving, returns released', async () => {
  expect(await run(revoke(b, '/lock'))).toBe('released')
  const held = await run(new RevocableMutex(a, '/lock').acquire())
  const asked = revoke(b, held.path, { graceMs: 1000, force: true })
  const released = held.release()
  expect(await run(asked)).toBe('released')
  await run(released)
  const next = await run(new RevocableMutex(a, '/lock').acquire())
  next.assertHeld()
  await run(next.release())
})

it('a revoker that aborts leaves no watch and no timer, and its request stays', async () => {
  const held = await run(new RevocableMutex(a, '/lock').acquire())
  await world.settle()
  const { watches } = world.server.stats()
  const stop = new AbortController()
  const asked = rejectionOf(revoke(b, '/lock', { graceMs: 60_000, signal: stop.signal }))
  await run(held.revokeRequested)
  stop.abort()
  expect(await run(asked)).toBeInstanceOf(AbortedError)
  await world.settle()
  expect(world.server.stats().watches).toBe(watches)
  expect(world.clock.pendingTimers().some(({ name }) => name.includes('revocation'))).toBe(false)
  await run(held.release())
})

it('run passes the request to its body, and tryAcquire works', async () => {
  const mutex = new RevocableMutex(a, '/lock')
  const done = mutex.run(async (held) => (await held.revokeRequested).reason)
  await world.settle()
  expect(await run(new RevocableMutex(b, '/lock').tryAcquire())).toBeUndefined()
  const asked = revoke(b, '/lock', { reason: 'why' })
  expect(await run(done)).toBe('why')
  expect(await run(asked)).toBe('released')
  const tried = await run(new RevocableMutex(b, '/lock').tryAcquire())
  tried!.assertHeld()
  await run(tried!.release())
})

it('all readers that hold a lock are asked together, and those that wait behind a writer are not', async () => {
  const lock = (on: typeof a): RevocableReadWriteLock => new RevocableReadWriteLock(on, '/rw')
  const readers = await run(Promise.all([lock(a).read.acquire(), lock(b).read.acquire()]))
  const writer = lock(c).write.acquire()
  await world.settle()
  const late = lock(a).read.acquire()
  await world.settle()
  const asked = revoke(c, '/rw', { reason: 'upgrade' })
  const done = watchSettled(asked)
  for (const held of readers) expect(await run(held.revokeRequested)).toEqual({ reason: 'upgrade' })
  await run(readers[0]!.release())
  expect(done()).toBe(false)
  await run(readers[1]!.release())
  expect(await run(asked)).toBe('released')
  await run((await run(writer)).release())
  await run((await run(late)).release())
  expect(world.server.stats().watches).toBe(0)
})

it('a reader that does not release loses a shared lock by force, and its signal says revoked', async () => {
  const held = await run(new RevocableReadWriteLock(a, '/rw').read.acquire())
  const kind = await run(new RevocableReadWriteLock(b, '/rw').read.acquire())
  void kind.revokeRequested.then(() => kind.release())
  expect(await world.within(2000, revoke(c, '/rw', { graceMs: 1000, force: true }))).toBe('forced')
  await world.settle()
  expect(held.signal.reason).toMatchObject({ name: 'LostError', reason: 'revoked' })
  expect(kind.signal.reason).toMatchObject({ reason: 'released' })
  await run(held.release())
})

it('a waiting writer that is asked leaves the queue of a read/write lock', async () => {
  const lock = new RevocableReadWriteLock(a, '/rw')
  const held = await run(lock.read.acquire())
  const waiting = rejectionOf(new RevocableReadWriteLock(b, '/rw').write.acquire())
  await world.settle()
  const participants = await run(lock.participants())
  expect(participants.map(({ mode }) => mode)).toEqual(['read', 'write'])
  expect(await run(revoke(c, participants[1]!.path))).toBe('released')
  expect(await run(waiting)).toMatchObject({ name: 'LostError', reason: 'revoked' })
  await run(held.release())
})

it('a downgraded and an upgraded lock can be revoked', async () => {
  const lock = new RevocableReadWriteLock(a, '/rw')
  const read = await run(lock.downgrade(await run(lock.write.acquire())))
  const asked = revoke(b, '/rw', { by: 'b' })
  expect(await run(read.revokeRequested)).toEqual({ by: 'b' })
  const write = (await run(lock.tryUpgrade(read)))!
  expect(await run(asked)).toBe('released')
  const again = revoke(b, '/rw', { by: 'c' })
  expect(await run(write.revokeRequested)).toEqual({ by: 'c' })
  await run(write.release())
  expect(await run(again)).toBe('released')
})
