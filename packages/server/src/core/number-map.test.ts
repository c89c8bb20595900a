import fc from 'fast-check'
import { expect, it } from 'vitest'
import { NumberMap, NumberSet } from './number-map.ts'

const number = fc.oneof(fc.nat(20), fc.integer({ min: 16_380, max: 16_390 }), fc.constant(2 ** 31 - 1))
const steps = fc.array(fc.record({ sets: fc.boolean(), key: number, value: fc.nat(9) }), { maxLength: 60 })

it('a NumberMap behaves like a Map in random histories, with numbers of several ranges', () => {
  fc.assert(
    fc.property(steps, (history) => {
      const map = new NumberMap<number>()
      const model = new Map<number, number>()
      for (const { sets, key, value } of history) {
        if (sets) {
          map.set(key, value)
          model.set(key, value)
        } else expect(map.delete(key)).toBe(model.delete(key))
        expect([map.get(key), map.has(key), map.size]).toEqual([model.get(key), model.has(key), model.size])
      }
      expect(new Map(map)).toEqual(model)
      expect(new Set(map.keys())).toEqual(new Set(model.keys()))
    }),
  )
})

it('a NumberSet behaves like a Set in random histories, with numbers of several ranges', () => {
  fc.assert(
    fc.property(steps, (history) => {
      const set = new NumberSet()
      const model = new Set<number>()
      for (const { sets, key } of history) {
        if (sets) {
          set.add(key)
          model.add(key)
        } else expect(set.delete(key)).toBe(model.delete(key))
        expect([set.has(key), set.size]).toEqual([model.has(key), model.size])
      }
      expect(new Set(set)).toEqual(model)
    }),
  )
})

it('yields each number once while the numbers are deleted', () => {
  const set = new NumberSet()
  const numbers = Array.from({ length: 40 }, (_, i) => i * 1000)
  for (const one of numbers) set.add(one)
  const seen: number[] = []
  for (const one of set) {
    seen.push(one)
    set.delete(one)
  }
  expect([seen, set.size]).toEqual([numbers, 0])
})
