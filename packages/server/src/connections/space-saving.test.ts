import fc from 'fast-check'
import { expect, it } from 'vitest'
import { SpaceSaving } from './space-saving.ts'

const CAPACITY = 8

it('holds each key that is heavier than a place on average, with bounds of its weight', () => {
  const stream = fc.array(fc.tuple(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 0, max: 9 })), {
    maxLength: 300,
  })
  fc.assert(
    fc.property(stream, (requests) => {
      const sketch = new SpaceSaving(CAPACITY)
      const truth = new Map<string, number>()
      for (const [number, weight] of requests) {
        const key = `/${number}`
        sketch.add(key, weight, { operations: 1, bytes: weight, timeMs: 0 })
        truth.set(key, (truth.get(key) ?? 0) + weight)
      }
      const found = new Map([...sketch.keys].map((one) => [one.key, one]))
      expect(found.size).toBeLessThanOrEqual(CAPACITY)
      const total = [...truth.values()].reduce((sum, weight) => sum + weight, 0)
      for (const [key, weight] of truth) {
        const one = found.get(key)
        if (weight > total / CAPACITY) expect(one).toBeDefined()
        if (one === undefined) continue
        expect(one.weight).toBeGreaterThanOrEqual(weight)
        expect(one.weight - one.overcount).toBeLessThanOrEqual(weight)
        expect(one.bytes).toBeLessThanOrEqual(weight)
      }
    }),
  )
})
