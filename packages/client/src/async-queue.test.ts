import { expect, it } from 'vitest'
import { AsyncQueue } from './async-queue.ts'

it('items leave in their order, however many wait', async () => {
  const queue = new AsyncQueue<number>(Infinity, (waiting) => waiting)
  const taken: number[] = []
  let put = 0
  for (const [more, fewer] of [
    [3000, 1500],
    [10, 1400],
    [2000, 2110],
    [1, 1],
  ] as const) {
    for (let n = 0; n < more; n++) queue.push(put++)
    for (let n = 0; n < fewer; n++) taken.push((await queue.next()).value as number)
  }
  expect(taken).toEqual(Array.from({ length: put }, (_, n) => n))
  queue.end()
  expect((await queue.next()).done).toBe(true)
})

it('only items that wait count towards the limit, and the policy sees those alone', async () => {
  const seen: (readonly number[])[] = []
  const queue = new AsyncQueue<number>(3, (waiting, item) => {
    seen.push([...waiting])
    return [item]
  })
  for (const item of [1, 2, 3]) queue.push(item)
  expect((await queue.next()).value).toBe(1)
  queue.push(4)
  queue.push(5)
  expect(seen).toEqual([[2, 3, 4]])
  expect((await queue.next()).value).toBe(5)
  queue.push(6)
  await queue.return()
  expect((await queue.next()).done).toBe(true)
})
