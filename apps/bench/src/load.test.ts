import { expect, it } from 'vitest'
import { Histogram } from '../../cli/src/bench/histogram.ts'
import { percentileOf } from './load.ts'

/** Builds a load result from counts of requests by duration. */
function latency(...durations: readonly (readonly [times: number, duration: number])[]): {
  latency: ReturnType<Histogram['export']>
} {
  const histogram = new Histogram()
  for (const [times, duration] of durations) histogram.add(duration, times)
  return { latency: histogram.export() }
}

it('percentileOf weighs each load by its number of requests', () => {
  const gets = latency([1800, 10])
  const sets = latency([180, 20], [20, 30])
  expect(percentileOf([sets], 0.99)).toBe(30)
  // 1 % of all 2,000 requests is exactly the 20 slowest sets.
  expect(percentileOf([gets, sets], 0.99)).toBe(20)
  expect(percentileOf([gets, sets], 0.995)).toBe(30)
  expect(percentileOf([gets, sets], 0.9)).toBe(10)
})

it('percentileOf returns 0 without loads', () => {
  expect(percentileOf([], 0.99)).toBe(0)
})
