import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { randomRuns } from '../testing/random-runs.ts'
import { hashText, MAX_HASHED, TextMap } from './text-map.ts'

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
    expect([seen, map.size]).toEqual([texts, 0])
  })
})

it('texts that differ in leading NULs have different hashes, whatever the key', () => {
  for (const key of [3, 0x1234_5671, 0x9e37_79b1]) {
    const hashes = Array.from({ length: 1000 }, (_, count) => hashText(`${'\0'.repeat(count)}/a`, key))
    expect(new Set(hashes).size).toBeGreaterThan(900)
  }
})
