import { SeededRandom } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import { attemptDelay, attemptTimeout, disconnectDelay } from './connect-delay.ts'

const server = { scheme: 'tcp', host: 'a', port: 1 } as const
const draws = (draw: (random: SeededRandom) => number): { least: number; most: number } => {
  const random = new SeededRandom(1)
  const all = Array.from({ length: 1000 }, () => draw(random))
  return { least: Math.min(...all), most: Math.max(...all) }
}

describe('the delay before an attempt', () => {
  it('is zero before the first attempt', () => {
    expect(attemptDelay({ server, round: 0, position: 0 }, new SeededRandom(1))).toBe(0)
  })

  it('is random below a bound that doubles with every round, up to ten seconds', () => {
    for (const [round, bound] of [
      [1, 200],
      [3, 800],
      [7, 10_000],
      [60, 10_000],
    ] as const) {
      const { least, most } = draws((random) => attemptDelay({ server, round, position: 0 }, random))
      expect(least).toBeLessThan(bound * 0.1)
      expect(most).toBeGreaterThan(bound * 0.9)
      expect(most).toBeLessThan(bound)
    }
  })

  it('is short within a round', () => {
    expect(
      draws((random) => attemptDelay({ server, round: 9, position: 1 }, random)).most,
    ).toBeLessThanOrEqual(50)
  })

  it('spreads the clients of a lost server over a tenth of their timeout, at most one second', () => {
    expect(draws((random) => disconnectDelay(4000, random)).most).toBeLessThan(400)
    expect(draws((random) => disconnectDelay(90_000, random)).most).toBeLessThan(1000)
  })
})

it('an attempt takes at most its share of the session timeout, at most a third of it and at least 250 ms', () => {
  expect([attemptTimeout(30_000, 5), attemptTimeout(30_000, 1), attemptTimeout(1000, 50)]).toEqual([
    6000, 10_000, 250,
  ])
})
