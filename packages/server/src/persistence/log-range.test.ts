import { makeZxid } from '@zabra/protocol'
import { expect, it } from 'vitest'
import { LogRange } from './log-range.ts'

const MIB = 1 << 20

function rangeOf(...added: [epoch: number, counter: number, bytes?: number][]): LogRange {
  const range = new LogRange(makeZxid(1, 3))
  for (const [epoch, counter, bytes = 10] of added) range.add(makeZxid(epoch, counter), bytes)
  return range
}

it('LogRange ends at the transaction that it was truncated to: within an epoch, at its end, or at the start', () => {
  const added = [
    [1, 4],
    [1, 5],
    [2, 1],
    [2, 2],
    [4, 1],
  ] as [number, number][]
  for (const [at, ends] of [
    [makeZxid(4, 1), [makeZxid(1, 5), makeZxid(2, 2), makeZxid(4, 1)]],
    [makeZxid(2, 2), [makeZxid(1, 5), makeZxid(2, 2)]],
    [makeZxid(2, 1), [makeZxid(1, 5), makeZxid(2, 1)]],
    [makeZxid(1, 4), [makeZxid(1, 4)]],
    [makeZxid(1, 3), []],
  ] as const) {
    const range = rangeOf(...added)
    range.truncate(at)
    expect([range.upTo, range.epochEnds]).toEqual([at, ends])
    range.add(makeZxid(9, 1), 10)
    expect([range.upTo, range.epochEnds]).toEqual([makeZxid(9, 1), [...ends, makeZxid(9, 1)]])
  }
})

it('bytesAfter never returns too few bytes, also after a truncation', () => {
  const range = rangeOf([1, 4, MIB], [1, 5, MIB], [1, 6, MIB])
  expect(range.bytesAfter(makeZxid(1, 5))).toBe(MIB)
  range.truncate(makeZxid(1, 5))
  range.add(makeZxid(2, 1), MIB)
  expect(range.bytesAfter(makeZxid(1, 3))).toBeGreaterThanOrEqual(3 * MIB)
  expect(range.bytesAfter(makeZxid(1, 6))).toBeGreaterThanOrEqual(MIB)
})

it('bytesAfter counts from the last whole MiB before a transaction', () => {
  const range = rangeOf([1, 4, MIB], [1, 5, MIB / 2], [1, 6, MIB / 2], [1, 7, 10])
  const counted = [3, 4, 5, 6, 7].map((counter) => range.bytesAfter(makeZxid(1, counter)))
  expect(counted).toEqual([2 * MIB + 10, MIB + 10, MIB + 10, 10, 10])
})

it('bytesAfter never returns too few bytes where zxids are given again after a truncation', () => {
  const range = rangeOf([1, 4, MIB], [1, 5, MIB], [1, 6, MIB])
  range.truncate(makeZxid(1, 4))
  for (const counter of [5, 6, 7]) range.add(makeZxid(1, counter), MIB)
  const counted = [4, 5, 6, 7].map((counter) => range.bytesAfter(makeZxid(1, counter)))
  for (const [i, bytes] of counted.entries()) expect(bytes).toBeGreaterThanOrEqual((3 - i) * MIB)
})

it('LogRange has no epoch before its first transaction', () => {
  expect(rangeOf().epochEnds).toEqual([])
})

it.each([
  [
    'a log that begins with the first transaction',
    makeZxid(1, 4),
    makeZxid(1, 3),
    [makeZxid(1, 6), makeZxid(3, 2)],
  ],
  ['a log that begins before', makeZxid(1, 1), makeZxid(1, 3), [makeZxid(1, 6), makeZxid(3, 2)]],
  ['a log from the middle of an epoch on', makeZxid(1, 6), makeZxid(1, 5), [makeZxid(1, 6), makeZxid(3, 2)]],
  ['a log of the next epoch', makeZxid(3, 1), makeZxid(1, 6), [makeZxid(3, 2)]],
  ['a log in the next epoch', makeZxid(3, 2), makeZxid(3, 1), [makeZxid(3, 2)]],
  ['a log without a transaction yet', makeZxid(3, 9), makeZxid(1, 3), [makeZxid(1, 6), makeZxid(3, 2)]],
])('dropBefore leaves what is in %s', (_, first, after, ends) => {
  const range = rangeOf([1, 4], [1, 5], [1, 6], [3, 1], [3, 2])
  range.dropBefore(first)
  expect([range.after, range.epochEnds, range.upTo]).toEqual([after, ends, makeZxid(3, 2)])
})
