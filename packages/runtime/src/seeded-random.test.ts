import { expect, it } from 'vitest'
import { SeededRandom } from './seeded-random.ts'

const draw = (seed: number): number[] => {
  const random = new SeededRandom(seed)
  return Array.from({ length: 20 }, () => random.below(1000))
}

it('SeededRandom gives the same numbers for the same seed, and others for another', () => {
  expect(draw(7)).toEqual(draw(7))
  expect(draw(7)).not.toEqual(draw(8))
  expect(new SeededRandom(7).bytes(32)).toEqual(new SeededRandom(7).bytes(32))
})

it('SeededRandom covers the whole range', () => {
  const random = new SeededRandom(1)
  const counts = new Array<number>(10).fill(0)
  for (let i = 0; i < 10_000; i++) counts[random.below(10)]!++
  for (const count of counts) expect(count).toBeGreaterThan(850)
})

it('SeededRandom refuses a limit outside 1 to 2^32', () => {
  for (const limit of [0, -1, 1.5, 2 ** 33])
    expect(() => new SeededRandom(1).below(limit)).toThrow(RangeError)
  expect(new SeededRandom(1).below(2 ** 32)).toBeLessThan(2 ** 32)
})
