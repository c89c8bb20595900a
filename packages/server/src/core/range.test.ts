import { describe, expect, it } from 'vitest'
import { Histogram, Summary } from './range.ts'

describe('Range', () => {
  it('is all zeros while it is empty', () => {
    const { count, sum, min, max, mean } = new Summary()
    expect({ count, sum, min, max, mean }).toEqual({ count: 0, sum: 0, min: 0, max: 0, mean: 0 })
  })

  it('knows the smallest, the largest, the sum and the mean, and forgets them', () => {
    const range = new Summary()
    for (const value of [4, 2, 9]) range.add(value)
    expect([range.min, range.max, range.sum, range.mean, range.count]).toEqual([2, 9, 15, 5, 3])
    range.reset()
    range.add(7)
    expect([range.min, range.max, range.count]).toEqual([7, 7, 1])
  })
})

describe('Distribution', () => {
  it('gives each percentile at most a tenth too high', () => {
    const distribution = new Histogram()
    for (let value = 1; value <= 1000; value++) distribution.add(value)
    for (const share of [0.5, 0.95, 0.99, 0.999]) {
      const percentile = distribution.percentile(share)
      expect(percentile).toBeGreaterThanOrEqual(share * 1000)
      expect(percentile).toBeLessThanOrEqual(share * 1000 * 1.1)
    }
    expect(distribution.percentile(1)).toBe(1000)
  })

  it('counts values that come again, and nothing twice after it has forgotten', () => {
    const distribution = new Histogram()
    for (const value of [5, 5, 0, 0, 5, 80]) distribution.add(value)
    expect(distribution.percentile(0.3)).toBe(0)
    expect(distribution.percentile(0.8)).toBeCloseTo(5, 0)
    expect(distribution.percentile(1)).toBe(80)
    distribution.reset()
    distribution.add(80)
    expect([distribution.percentile(0.1), distribution.count]).toEqual([80, 1])
  })

  it('puts values without a duration and endless ones where they belong', () => {
    const distribution = new Histogram()
    expect(distribution.percentile(0.5)).toBe(0)
    distribution.add(0)
    expect(distribution.percentile(0.99)).toBe(0)
    distribution.add(1e300)
    expect(distribution.percentile(1)).toBeGreaterThan(1e6)
  })
})
