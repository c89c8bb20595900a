import { describe, expect, it } from 'vitest'
import { Histogram, summaryOfBoth } from './histogram.ts'

describe('Histogram', () => {
  it('is all zeros while it is empty', () => {
    const { count, sum, min, max, mean } = new Histogram()
    expect({ count, sum, min, max, mean }).toEqual({ count: 0, sum: 0, min: 0, max: 0, mean: 0 })
  })

  it('has the minimum, maximum, sum and mean, and resets them', () => {
    const histogram = histogramOf([4, 2, 9])
    expect(valuesOf(histogram)).toEqual({ count: 3, sum: 15, min: 2, max: 9, mean: 5 })
    histogram.reset()
    histogram.add(7)
    expect([histogram.min, histogram.max, histogram.count]).toEqual([7, 7, 1])
  })

  it.each([
    [[], []],
    [[], [5, 9]],
    [[5, 9], []],
    [
      [5, 9],
      [3, 20, 7],
    ],
  ])('is summarised with another, of values %j and %j, as one of all values', (left, right) => {
    const both = summaryOfBoth(histogramOf(left), histogramOf(right))
    expect(both).toEqual(valuesOf(histogramOf([...left, ...right])))
  })

  it('gives each percentile with an error of at most 5 %', () => {
    const histogram = new Histogram()
    for (let value = 1; value <= 1000; value++) histogram.add(value)
    for (const share of [0.5, 0.95, 0.99, 0.999]) {
      const percentile = histogram.percentile(share)
      expect(percentile).toBeGreaterThanOrEqual(share * 1000 * 0.95)
      expect(percentile).toBeLessThanOrEqual(share * 1000 * 1.05)
    }
    expect(histogram.percentile(1)).toBe(1000)
  })

  it('counts repeated values, and starts anew after reset', () => {
    const histogram = new Histogram()
    for (const value of [5, 5, 0, 0, 5, 80]) histogram.add(value)
    expect(histogram.percentile(0.3)).toBe(0)
    expect(histogram.percentile(0.8)).toBeCloseTo(5, 0)
    expect(histogram.percentile(1)).toBe(80)
    histogram.reset()
    histogram.add(80)
    expect([histogram.percentile(0.1), histogram.count]).toEqual([80, 1])
  })

  it('counts 0 in the first and very large values in the last bucket', () => {
    const histogram = new Histogram()
    expect(histogram.percentile(0.5)).toBe(0)
    histogram.add(0)
    expect(histogram.percentile(0.99)).toBe(0)
    histogram.add(1e300)
    expect(histogram.percentile(1)).toBeGreaterThan(1e6)
  })

  it('gives recent percentiles of all values before five calls of rotate, and of those since the fifth last afterwards', () => {
    const histogram = new Histogram()
    histogram.add(80)
    const recent: number[] = []
    for (let call = 1; call <= 6; call++) {
      histogram.rotate()
      recent.push(Math.round(histogram.recentPercentile(0.5)))
    }
    expect(recent).toEqual([80, 80, 80, 80, NaN, NaN])
  })
})

function histogramOf(values: readonly number[]): Histogram {
  const histogram = new Histogram()
  for (const value of values) histogram.add(value)
  return histogram
}

const valuesOf = ({ count, sum, min, max, mean }: Histogram) => ({ count, sum, min, max, mean })
