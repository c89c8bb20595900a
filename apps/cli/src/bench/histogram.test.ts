import fc from 'fast-check'
import { expect, it } from 'vitest'
import { Histogram } from './histogram.ts'

it('returns any percentile within 3 %', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 2 ** 40 }), { minLength: 1 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (values, share) => {
        const histogram = new Histogram()
        for (const value of values) histogram.add(value)
        const sorted = values.toSorted((a, b) => a - b)
        const exact = sorted[Math.max(0, Math.ceil(share * values.length) - 1)]!
        const told = histogram.percentile(share)
        expect(told).toBeGreaterThanOrEqual(exact)
        expect(told).toBeLessThanOrEqual(exact * 1.032 + 1)
        expect(histogram.max).toBe(sorted.at(-1))
      },
    ),
  )
})

it('is equal for values counted in one histogram or merged from several', () => {
  const [all, one, other] = [new Histogram(), new Histogram(), new Histogram()]
  for (let value = 0; value < 5000; value += 7) {
    all.add(value)
    ;(value % 2 === 0 ? one : other).add(value)
  }
  const merged = new Histogram()
  for (const part of [one, other]) merged.merge(part.export())
  expect(merged.export()).toEqual(all.export())
  expect(merged.buckets()).toEqual(all.buckets())
  expect([merged.mean, merged.percentile(0.5), merged.count]).toEqual([
    all.mean,
    all.percentile(0.5),
    all.count,
  ])
})

it('returns 0 for every percentile without values', () => {
  const histogram = new Histogram()
  expect([histogram.percentile(0.99), histogram.mean, histogram.max, histogram.buckets()]).toEqual([
    0,
    0,
    0,
    [],
  ])
})
