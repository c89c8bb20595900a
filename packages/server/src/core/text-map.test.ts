import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { randomRuns } from '../testing/random-runs.ts'
import { MAX_FEW, MAX_HASHED, TextMap } from './text-map.ts'

describe('TextMap', () => {
  const prefix = 'x'.repeat(MAX_HASHED - 1)
  const text = fc.constantFrom(
    '',
    '/a',
    '/b',
    prefix,
    `${prefix}1`,
    `${prefix}12`,
    `${prefix}13`,
    `${prefix}é3`,
  )

  it(`behaves like a Map with short and long texts, whatever the key, in ${randomRuns(500)} random histories`, () => {
    const step = fc.record({ sets: fc.boolean(), text, value: fc.nat(9) })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), fc.integer(), (steps, key) => {
        const map = new TextMap<number>(key)
        const model = new Map<string, number>()
        for (const { sets, text: one, value } of steps) {
          if (!sets) expect(map.delete(one)).toBe(model.delete(one))
          else {
            map.set(one, value)
            model.set(one, value)
          }
          expect([map.get(one), map.size]).toEqual([model.get(one), model.size])
        }
        expect(new Map(map)).toEqual(model)
        expect([...map.keys()].toSorted()).toEqual([...model.keys()].toSorted())
      }),
      { numRuns: randomRuns(500) },
    )
  })

  it('yields each long text once while the texts are deleted', () => {
    const map = new TextMap<number>()
    const texts = Array.from({ length: 20 }, (_, i) => `${prefix}${10 + i}`)
    for (const one of texts) map.set(one, 0)
    const seen: string[] = []
    for (const one of map.keys()) {
      seen.push(one)
      map.delete(one)
    }
    expect([seen.toSorted(), map.size]).toEqual([texts, 0])
  })

  it('behaves like a Map while it gets many texts, loses most of them and gets others', () => {
    const map = new TextMap<number>(5)
    const model = new Map<string, number>()
    const set = (from: number, to: number): void => {
      for (let i = from; i < to; i++) {
        map.set(`/n-${i}`, i)
        model.set(`/n-${i}`, i)
      }
    }
    const expectEqual = (): void => {
      expect(map.size).toBe(model.size)
      expect(new Map(map)).toEqual(model)
      expect(map.get(`/n-${MAX_FEW - 1}`)).toBe(model.get(`/n-${MAX_FEW - 1}`))
      expect(map.get(`/n-${MAX_FEW * 2}`)).toBe(model.get(`/n-${MAX_FEW * 2}`))
    }
    set(0, MAX_FEW * 3)
    expectEqual()
    for (let i = 0; i < MAX_FEW * 3; i++) {
      if (i % 5 === 0) continue
      if (!map.delete(`/n-${i}`)) expect.fail(`/n-${i}`)
      model.delete(`/n-${i}`)
    }
    expectEqual()
    // Some are held beyond the first ones, which have room again.
    set(MAX_FEW, MAX_FEW * 3)
    expectEqual()
    expect(map.delete('/absent')).toBe(false)
  })
})
