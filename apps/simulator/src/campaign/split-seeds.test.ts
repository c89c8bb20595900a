import { expect, it } from 'vitest'
import { splitSeeds } from './run-in-processes.ts'

it('splits seeds into disjoint ranges of nearly equal size', () => {
  expect(splitSeeds({ start: 1001, seeds: 200 }, 4)).toEqual([
    { start: 1001, seeds: 50 },
    { start: 1051, seeds: 50 },
    { start: 1101, seeds: 50 },
    { start: 1151, seeds: 50 },
  ])
  expect(splitSeeds({ start: 1, seeds: 2 }, 4)).toEqual([
    { start: 1, seeds: 1 },
    { start: 2, seeds: 1 },
  ])
  const uneven = splitSeeds({ start: 5, seeds: 11 }, 3)
  expect(uneven.flatMap(({ start, seeds }) => Array.from({ length: seeds }, (_, i) => start + i))).toEqual(
    Array.from({ length: 11 }, (_, index) => 5 + index),
  )
})
