import { UsageError, type Client } from '@zabra/client/core'
import { expect, it } from 'vitest'
import type { LockHandle } from '../handles/types.ts'
import { client as a, setupEachTest, meters, other as b, run, third as c, world } from '../testing/setup.ts'
import { watchSettled } from '../testing/world.ts'
import { ReadWriteLock } from './read-write-lock.ts'

setupEachTest('a', 'a', 'a')
const line = async (): Promise<string[]> => (await run(a.getChildren('/rw'))).children
const of = (client: Client): ReadWriteLock => new ReadWriteLock(client, '/rw')

/** Requests the lock, and returns whether it has been granted. */
async function ask(
  acquired: Promise<LockHandle>,
): Promise<{ granted: () => boolean; held: Promise<LockHandle> }> {
  const granted = watchSettled(acquired)
  await world.settle()
  return { granted, held: acquired }
}

it('readers share the lock and a writer excludes all, in order of arrival', async () => {
  const one = await ask(of(a).read.acquire())
  const two = await ask(of(b).read.acquire())
  const writer = await ask(of(c).write.acquire())
  const late = await ask(of(a).read.acquire())
  expect([one, two, writer, late].map(({ granted }) => granted())).toEqual([true, true, false, false])
  await run((await one.held).release())
  expect(writer.granted()).toBe(false)
  await run((await two.held).release())
  await run(writer.held)
  expect(late.granted()).toBe(false)
  await run((await writer.held).release())
  await run((await run(late.held)).release())
  expect(await line()).toEqual([])
  expect(world.server.stats().watches).toBe(0)
})

it('a reader behind several writers is woken by the nearest one only (Curator watches the first: one wake-up per writer)', async () => {
  const w1 = await run(of(a).write.acquire())
  const w2 = await ask(of(b).write.acquire())
  const reader = await ask(of(c).read.acquire())
  meters[2]!.take()
  await run(w1.release())
  await run(w2.held)
  expect(meters[2]!.take()).toEqual({ requests: [], events: [] })
  await run((await w2.held).release())
  await run(reader.held)
  await world.settle()
  expect(meters[2]!.take()).toEqual({ requests: ['getChildren'], events: ['nodeDeleted'] })
  await run((await reader.held).release())
})

it("the end of a writer's session admits exactly the readers up to the next writer", async () => {
  const w1 = await run(of(a).write.acquire())
  const readers = []
  for (let i = 0; i < 100; i++) readers.push(await ask(of(b).read.acquire()))
  const w2 = await ask(of(c).write.acquire())
  const behind = await ask(of(b).read.acquire())
  void w1
  const closed = a.close()
  await world.settle()
  await closed
  await world.settle()
  expect(readers.every(({ granted }) => granted())).toBe(true)
  expect([w2, behind].map(({ granted }) => granted())).toEqual([false, false])
  meters[2]!.take()
  for (const { held } of readers) await run((await held).release())
  expect(w2.granted()).toBe(true)
  const events = meters[2]!.take().events
  expect(events.length).toBeLessThanOrEqual(2)
  await run((await w2.held).release())
  await run((await run(behind.held)).release())
})

it('new readers do not starve a waiting writer', async () => {
  const first = await run(of(a).read.acquire())
  const writer = await ask(of(c).write.acquire())
  const churn = await ask(of(b).read.acquire())
  await run(first.release())
  expect(writer.granted()).toBe(true)
  expect(churn.granted()).toBe(false)
  await run((await writer.held).release())
  await run((await run(churn.held)).release())
})

it('a downgraded writer keeps its place: readers enter, writers stay behind', async () => {
  const lock = of(a)
  const write = await run(lock.write.acquire())
  const writer = await ask(of(b).write.acquire())
  const reader = await ask(of(c).read.acquire())
  meters[0]!.take()
  const read = await run(lock.downgrade(write))
  await world.settle()
  expect(meters[0]!.take().requests).toEqual(['multi'])
  // A new token would be above that of the waiting writer, which a fenced store would then reject.
  expect(read.token).toBe(write.token)
  expect(write.signal.reason).toMatchObject({ reason: 'released' })
  read.assertHeld()
  expect([writer, reader].map(({ granted }) => granted())).toEqual([false, false])
  await run(write.release())
  await run(read.release())
  await run((await run(writer.held)).release())
  await run((await run(reader.held)).release())
  expect(await line()).toEqual([])
})

it('a downgrade whose reply is lost is resolved', async () => {
  const lock = new ReadWriteLock(a, '/rw', { errorPolicy: 'session' })
  const write = await run(lock.write.acquire())
  await world.settle()
  world.loseReply()
  const read = await world.within(10_000, lock.downgrade(write))
  read.assertHeld()
  expect(await line()).toHaveLength(1)
  await run(read.release())
  expect(await line()).toEqual([])
})

it('tryUpgrade succeeds for the only reader, and else keeps the read lock', async () => {
  const lock = of(a)
  const read = await run(lock.read.acquire())
  const other = await run(of(b).read.acquire())
  expect(await run(lock.tryUpgrade(read))).toBeUndefined()
  read.assertHeld()
  await run(other.release())
  const waiting = await ask(of(c).write.acquire())
  const write = await run(lock.tryUpgrade(read))
  expect(write!.token).toBeGreaterThan(other.token)
  expect(read.signal.reason).toMatchObject({ reason: 'released' })
  expect(waiting.granted()).toBe(false)
  await run(write!.release())
  const next = await run(waiting.held)
  expect(next.token).toBeGreaterThan(write!.token)
  await run(next.release())
  expect(await line()).toEqual([])
})

it('two readers that upgrade at once do not deadlock', async () => {
  const [one, two] = [of(a), of(b)]
  const held = [await run(one.read.acquire()), await run(two.read.acquire())] as const
  const upgraded = await run(Promise.all([one.tryUpgrade(held[0]), two.tryUpgrade(held[1])]))
  expect(upgraded.filter((write) => write !== undefined).length).toBeLessThanOrEqual(1)
  for (const write of upgraded) if (write !== undefined) await run(write.release())
  for (const read of held) await run(read.release())
  expect(await line()).toEqual([])
})

it('tryAcquire does not wait, and succeeds for a reader beside readers', async () => {
  const read = await run(of(a).read.acquire())
  const second = await run(of(b).read.tryAcquire())
  expect(second).toBeDefined()
  expect(await run(of(c).write.tryAcquire())).toBeUndefined()
  await run(read.release())
  await run(second!.release())
  await run(of(c).write.run(async (held) => held.assertHeld()))
  expect(await line()).toEqual([])
})

it('handles of another mode are rejected', async () => {
  const lock = of(a)
  const read = await run(lock.read.acquire())
  await expect(lock.downgrade(read)).rejects.toThrow(UsageError)
  await expect(of(b).tryUpgrade(read)).rejects.toThrow('Expected a write handle'.replace('write', 'read'))
  await run(read.release())
})
