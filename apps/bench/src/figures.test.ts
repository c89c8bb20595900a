import { expect, it } from 'vitest'
import { isNoisy, isReached, median, ratio, formatValue, spread, type Figure } from './figures.ts'

const figure = (zabra: number[], apache: number[], more: Partial<Figure> = {}): Figure => ({
  name: 'gets',
  caseName: 'throughput',
  unit: 'op/s',
  better: 'higher',
  values: { zabra, apache },
  ...more,
})

it('median and spread summarize the values of the rounds', () => {
  expect(median([3, 1, 2])).toBe(2)
  expect(median([4, 1, 2, 3])).toBe(2.5)
  expect(median([])).toBeNaN()
  expect(spread([90, 100, 110])).toBeCloseTo(0.1)
})

it('isReached compares the ratio with the aim in the direction that is better', () => {
  expect(ratio(figure([40], [10]))).toBe(4)
  expect(isReached(figure([40], [10], { aim: 4 }))).toBe(true)
  expect(isReached(figure([39], [10], { aim: 4 }))).toBe(false)
  expect(isReached(figure([5], [10], { aim: 0.5, better: 'lower' }))).toBe(true)
  expect(isReached(figure([6], [10], { aim: 0.5, better: 'lower' }))).toBe(false)
  expect(isReached(figure([6], [], { aim: 0.5 }))).toBe(undefined)
  expect(isReached(figure([6], [10]))).toBe(undefined)
})

it('isReached holds Zabra to its limit in every round, with or without a peer', () => {
  expect(isReached(figure([6, 20], [], { limit: 20 }))).toBe(true)
  expect(isReached(figure([6, 21, 7], [100], { limit: 20 }))).toBe(false)
  expect(isReached(figure([], [100], { limit: 20 }))).toBe(undefined)
})

it('isNoisy reports a spread above the threshold', () => {
  expect(isNoisy(figure([100, 110], [100]))).toBe(false)
  expect(isNoisy(figure([100, 140], [100]))).toBe(true)
})

it('formatValue shows three significant digits', () => {
  expect([1234567.8, 12.345, 0.01234, Number.NaN].map(formatValue)).toEqual([
    '1,234,568',
    '12.3',
    '0.0123',
    '',
  ])
})
