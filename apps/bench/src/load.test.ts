import { expect, it } from 'vitest'
import { Histogram } from '../../cli/src/bench/histogram.ts'
import { percentileOf } from './load.ts'

/** So many requests of each duration. */
function latency(...durations: readonly (readonly [times: number, duration: number])[]): {
  latency: ReturnType<Histogram['export']>
} {
  const histogram = new Histogram()
  for (const [times, duration] of durations) histogram.add(duration, times)
  return { latency: histogram.export() }
}

it('finds a percentile over the requests of several loads, of which each weighs what it has', () => {
  const gets = latency([1800, 10])
  const sets = latency([180, 20], [20, 30])
  expect(percentileOf([sets], 0.99)).toBe(30)
  // One in a hundred of all is as many as waited longest among the sets.
  expect(percentileOf([gets, sets], 0.99)).toBe(20)
  expect(percentileOf([gets, sets], 0.995)).toBe(30)
  expect(percentileOf([gets, sets], 0.9)).toBe(10)
})

it('finds 0 over no loads', () => {
  expect(percentileOf([], 0.99)).toBe(0)
})
