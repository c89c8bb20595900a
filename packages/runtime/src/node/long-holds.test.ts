import { createHistogram } from 'node:perf_hooks'
import { expect, it } from 'vitest'
import { LongHolds } from './long-holds.ts'

const INTERVAL_MS = 10

/** Long holds in a monitor that records given times. */
class Fixture {
  resets = 0
  readonly #histogram = createHistogram()
  readonly holds: LongHolds

  constructor() {
    const histogram = this.#histogram
    this.holds = new LongHolds(
      {
        get count() {
          return histogram.count
        },
        get max() {
          return histogram.max
        },
        percentile: (percent) => histogram.percentile(percent),
        reset: () => {
          this.resets++
          histogram.reset()
        },
      },
      INTERVAL_MS,
    )
  }

  record(...times: number[]): void {
    for (const ms of times) this.#histogram.record((INTERVAL_MS + ms) * 1e6)
  }

  /** Returns how many holds were long, and the last in whole milliseconds: those of the histogram are exact to 0.1 %. */
  take(): [count: number, last: number[]] {
    const { count, last } = this.holds.take()
    return [count, last.map(Math.floor)]
  }
}

it('each long hold is taken once, whatever the ones before it were', () => {
  const fixture = new Fixture()
  fixture.record(1, 150, 99)
  expect(fixture.take()).toEqual([1, [150]])
  fixture.record(120, 250)
  expect(fixture.take()).toEqual([3, [150, 250, 120]])
  fixture.record(150)
  expect(fixture.take()).toEqual([4, [150, 250, 120, 150]])
  fixture.record(2)
  expect(fixture.take()).toEqual([4, [150, 250, 120, 150]])
})

it('a look does not reset the monitor, except after twenty long holds', () => {
  const fixture = new Fixture()
  for (let hold = 1; hold < 20; hold++) {
    fixture.record(100 + hold)
    fixture.take()
  }
  expect(fixture.resets).toBe(0)
  fixture.record(400)
  expect([fixture.take()[0], fixture.resets]).toEqual([20, 1])
  fixture.record(400, 1)
  expect([fixture.take()[0], fixture.resets]).toEqual([21, 1])
})

it('the longest hold is that since a reset, which keeps the long ones', () => {
  const fixture = new Fixture()
  fixture.record(...Array.from({ length: 20 }, (_, index) => 200 + index), 5000)
  fixture.take()
  fixture.record(150)
  expect(Math.floor(fixture.holds.max / 100)).toBe(50)
  fixture.holds.reset()
  expect([fixture.holds.max, fixture.take()[0]]).toEqual([0, 22])
  fixture.record(3)
  expect(Math.floor(fixture.holds.max)).toBe(3)
})

it('the last hundred long holds are kept', () => {
  const fixture = new Fixture()
  for (let round = 0; round < 6; round++) {
    fixture.record(...Array.from({ length: 20 }, (_, index) => 200 + index))
    fixture.take()
  }
  expect(fixture.take()[0]).toBe(120)
  expect(fixture.take()[1]).toHaveLength(100)
})
