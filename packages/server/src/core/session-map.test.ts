import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { randomRuns } from '../testing/random-runs.ts'
import { MAX_FEW, SessionMap, type SessionMapView } from './session-map.ts'

const MANY = MAX_FEW + 2
/** The ids that the server 7 hands out. */
const idAt = (i: number): bigint => (7n << 56n) + BigInt(i)
/** A map with more than a few ids, and its model. */
const many = (): [SessionMap<number>, Map<bigint, number>] => {
  const entries = Array.from({ length: MANY }, (_, i) => [idAt(i), i] as const)
  return [new SessionMap(entries), new Map(entries)]
}

describe('SessionMap', () => {
  const id = fc.oneof(
    fc.bigInt(0n, 20n),
    fc.constantFrom(-(1n << 63n), (1n << 63n) - 1n, -1n, 1n << 32n, 5n << 56n),
    fc.integer({ min: MANY - 20, max: MANY + 20 }).map(idAt),
  )
  const step = fc.record({ does: fc.constantFrom('set', 'delete', 'view', 'close'), id, value: fc.nat(9) })

  for (const size of ['few', 'many'])
    it(`behaves like a Map with ${size} ids, and its views stay as they are, in ${randomRuns(100)} random histories`, () => {
      fc.assert(
        fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
          const [map, model] = size === 'few' ? [new SessionMap<number>(), new Map<bigint, number>()] : many()
          const views: [SessionMapView<number>, Map<bigint, number>][] = []
          for (const { does, id: one, value } of steps) {
            if (does === 'delete') expect(map.delete(one)).toBe(model.delete(one))
            else if (does === 'view') views.push([map.view(), new Map(model)])
            else if (does === 'close') views.pop()?.[0].close()
            else {
              map.set(one, value)
              model.set(one, value)
            }
            expect([map.get(one), map.has(one), map.size]).toEqual([
              model.get(one),
              model.has(one),
              model.size,
            ])
          }
          expect(equal(map, model)).toBe(true)
          expect(new Set(map.keys()).size).toBe(model.size)
          for (const [view, content] of views) {
            expect([view.size, equal(view.entries, content)]).toEqual([content.size, true])
            view.close()
          }
        }),
        { numRuns: randomRuns(100) },
      )
    })

  it('yields a few ids in the order of their insertion', () => {
    const map = new SessionMap([
      [9n, 'a'],
      [1n, 'b'],
    ])
    map.set(5n, 'c').set(9n, 'd')
    expect([[...map.keys()], [...map.values()]]).toEqual([
      [9n, 1n, 5n],
      ['d', 'b', 'c'],
    ])
  })

  it.each([
    ['ids are added until they are many', 5],
    ['many are held, and the first change copies what a view shares', MANY],
  ])('yields what is held throughout once, and nothing that is deleted, while %s', (_, count) => {
    const map = new SessionMap<number>()
    for (let i = 0; i < count; i++) map.set(idAt(i), i)
    const view = map.view()
    const seen: bigint[] = []
    const [kept, deleted] = [idAt(0), idAt(count - 1)]
    for (const one of map.keys()) {
      if (seen.length === 0) {
        for (let i = 0; i < MANY; i++) map.set(idAt(1_000_000 + i), i)
        for (let i = 1; i < count; i++) if (idAt(i) !== one) map.delete(idAt(i))
      }
      seen.push(one)
      if (seen.length > 3 * MANY) break
    }
    const old = seen.filter((one) => one <= deleted)
    expect([old.length, new Set(old).size === old.length, old.includes(kept)]).toEqual([
      old[0] === kept ? 1 : 2,
      true,
      true,
    ])
    expect(view.size).toBe(count)
    view.close()
  })

  it.each([
    ['of one server', idAt],
    ['of servers that start anew for each', (i: number) => BigInt(i) << 16n],
    ['that differ in their first bits', (i: number) => BigInt.asIntN(64, BigInt(i) << 48n)],
  ])('copies no more than a small part of the ids at a time, with 16,000 ids %s', (_, at) => {
    const map = new SessionMap<number>()
    for (let i = 0; i < 16_000; i++) map.set(at(i), i)
    expect(map.longestShard).toBeLessThan(140)
  })
})

function equal(entries: Iterable<readonly [bigint, number]>, model: ReadonlyMap<bigint, number>): boolean {
  let count = 0
  for (const [id, value] of entries) {
    if (model.get(id) !== value) return false
    count++
  }
  return count === model.size
}
