import fc from 'fast-check'
import { expect, it } from 'vitest'
import { Entries } from './entries.ts'

it('Entries behave like an array with push and shift, in random histories', () => {
  const step = fc.record({ do: fc.constantFrom('push', 'push', 'shift', 'clear'), count: fc.nat(700) })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
      const entries = new Entries()
      let model: [zxid: number, payload: Uint8Array][] = []
      let zxid = 0
      for (const { do: kind, count } of steps) {
        if (kind === 'clear') {
          entries.clear()
          model = []
        }
        for (let left = count; left > 0 && kind === 'push'; left--) {
          zxid += 2
          model.push([zxid, new Uint8Array(1)])
          entries.push(...model.at(-1)!)
        }
        for (let left = Math.min(count, model.length); left > 0 && kind === 'shift'; left--) {
          model.shift()
          entries.shift()
        }
        expect(entries.length).toBe(model.length)
        expect(model.every(([at], i) => entries.zxidAt(i) === at)).toBe(true)
        expect(model.every(([, payload], i) => entries.payloadAt(i) === payload)).toBe(true)
        for (const sought of [zxid - 700, zxid - 7, zxid])
          expect(entries.countUpTo(sought)).toBe(model.filter(([at]) => at <= sought).length)
      }
    }),
    { seed: 8, numRuns: 100 },
  )
})
