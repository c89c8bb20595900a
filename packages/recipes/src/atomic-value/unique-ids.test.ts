import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, it } from 'vitest'
import { client, cutOff, meters, other, run, setupEachTest, world } from '../testing/setup.ts'
import { rejectionOf } from '../testing/world.ts'
import { Counter } from './atomic-value.ts'
import { UniqueIds } from './unique-ids.ts'

setupEachTest('a', 'b')

it('clients get different ids that grow, with one update for each block', async () => {
  const [mine, theirs] = [client, other].map((each) => new UniqueIds(each, '/ids', { blockSize: 10 }))
  const own = await run(Promise.all(Array.from({ length: 25 }, () => mine!.next())))
  const others = await run(Promise.all(Array.from({ length: 25 }, () => theirs!.next())))
  expect(own).toEqual(own.toSorted((a, b) => Number(a - b)))
  expect(new Set([...own, ...others]).size).toBe(50)
  expect(own[0]).toBe(0n)
  expect(await run(new Counter(client, '/ids').get())).toBe(60n)
  expect(meters[1]!.requests.filter((operation) => operation === 'multi')).toHaveLength(3)
})

it('an id whose block could not be reserved is asked for again by the next call', async () => {
  const ids = new UniqueIds(client, '/ids')
  const abort = new AbortController()
  abort.abort()
  await expect(run(ids.next({ signal: abort.signal }))).rejects.toMatchObject({ name: 'AbortError' })
  expect(await run(ids.next())).toBe(0n)
})

it('a call behind another ends when its time is up, and lets none overtake', async () => {
  const ids = new UniqueIds(client, '/ids')
  const restore = cutOff('a')
  await world.settle()
  const first = ids.next()
  const late = rejectionOf(ids.next({ timeoutMs: 300 }))
  const last = ids.next()
  expect(await world.within(400, late)).toMatchObject({ code: 'OPERATION_TIMEOUT' })
  restore()
  expect(await world.within(10_000, Promise.all([first, last]))).toEqual([0n, 1n])
})

it('keeps nothing of the calls that have ended', async () => {
  const ids = new UniqueIds(client, '/ids')
  const fail = async (): Promise<WeakRef<Error>> =>
    new WeakRef((await rejectionOf(ids.next({ signal: AbortSignal.abort() }))) as Error)
  const error = await fail()
  for (const id of [0n, 1n, 2n]) expect(await run(ids.next())).toBe(id)
  // A WeakRef keeps its target alive until the end of the turn that made it.
  await new Promise((resolve) => setImmediate(resolve))
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  expect(error.deref()).toBeUndefined()
  expect(await run(ids.next())).toBe(3n)
})

it('a block of no ids is refused', () => {
  expect(() => new UniqueIds(client, '/ids', { blockSize: 0 })).toThrow('1 id or more')
})
