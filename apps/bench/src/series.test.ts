import { expect, it } from 'vitest'
import { growth, mntrFigures, rise, secondHalf, slope, type Point } from './series.ts'

const points = (...values: number[]): Point[] => values.map((value, i) => ({ at: 10 + i * 2, value }))

it('slope fits a least-squares line', () => {
  expect(slope(points(1, 3, 5, 7))).toBeCloseTo(1)
  expect(slope(points(5, 5, 5))).toBe(0)
  expect(slope(points(1, 3, 1, 3, 1))).toBeCloseTo(0)
  expect(slope(points(1))).toBeNaN()
})

it('growth returns the share by which a value grew from the first point to the last', () => {
  expect(growth(points(90, 95, 100, 105, 110))).toBeCloseTo(0.2)
  expect(growth(points(110, 90))).toBeCloseTo(-0.2)
})

it('rise is additive: the rises of two series add up to the rise of their sum', () => {
  const [some, others] = [points(1, 4, 2, 6), points(9, 3, 8, 8)]
  const sum = some.map(({ at, value }, i) => ({ at, value: value + others[i]!.value }))
  expect(rise(points(3, 4, 5))).toBeCloseTo(2)
  expect(rise(some) + rise(others)).toBeCloseTo(rise(sum))
})

it('secondHalf leaves out the warm-up', () => {
  expect(secondHalf(points(1, 50, 100, 100, 100)).map(({ value }) => value)).toEqual([100, 100, 100])
  expect(growth(secondHalf(points(1, 50, 100, 100, 100)))).toBe(0)
  expect(secondHalf([])).toEqual([])
})

it('mntrFigures reads the numeric figures of mntr and skips the others', () => {
  const text =
    'zk_version\t3.8.0-1, built on x\nzk_server_state\tstandalone\nzk_znode_count\t7\nzk_max_gc_pause_ms\t1.25\n'
  expect([...mntrFigures(text)]).toEqual([
    ['znode_count', 7],
    ['max_gc_pause_ms', 1.25],
  ])
})
