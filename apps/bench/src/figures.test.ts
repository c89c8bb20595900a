import { describe, expect, it } from 'vitest'
import { median, percentile, spread } from './figures.ts'

describe('figures', () => {
  it('takes the middle value as the median and the mean of two in the middle', () => {
    expect(median([3, 1, 2])).toBe(2)
    expect(median([4, 1, 2, 3])).toBe(2.5)
  })

  it('gives the smallest value that covers the asked share', () => {
    expect(percentile([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 0.5)).toBe(5)
    expect(percentile([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 0.99)).toBe(10)
    expect(percentile([7], 0)).toBe(7)
    expect(percentile([], 0.5)).toBeNaN()
  })

  it('calls runs noisy by half their range over the median', () => {
    expect(spread([90, 100, 110])).toBeCloseTo(0.1)
  })
})
