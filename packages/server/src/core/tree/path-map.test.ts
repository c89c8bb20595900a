import fc from 'fast-check'
import { expect, it } from 'vitest'
import { PathIndex } from './path-index.ts'
import { PathMap } from './path-map.ts'

it('PathMap behaves like a Map in random histories', () => {
  const step = fc.record({
    do: fc.constantFrom('set', 'set', 'delete', 'get'),
    path: fc.oneof(
      fc.nat(200).map((n) => `/n-${n}`),
      fc.string({ unit: 'binary' }).map((text) => `/${text}`),
    ),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 400 }), fc.integer(), (steps, key) => {
      const map = new PathMap<number>()
      const index = new PathIndex(key)
      const plain = new Map<string, number>()
      for (const [number, { do: kind, path }] of steps.entries()) {
        const hash = index.hash(path)
        if (kind === 'set') {
          map.set(path, hash, number)
          plain.set(path, number)
        } else if (kind === 'delete') expect(map.delete(path, hash)).toBe(plain.delete(path))
        expect(map.get(path, hash)).toBe(plain.get(path))
        expect(map.size).toBe(plain.size)
      }
      for (const [path, number] of plain) expect(map.get(path, index.hash(path))).toBe(number)
    }),
    { seed: 9, numRuns: 300 },
  )
})

it('PathMap works after very many entries were removed', () => {
  const map = new PathMap<number>()
  const index = new PathIndex(0)
  for (let round = 0; round < 2; round++) {
    for (let n = 0; n < 70_000; n++) map.set(`/n-${n}`, index.hash(`/n-${n}`), n)
    expect(map.size).toBe(70_000)
    for (let n = 0; n < 70_000; n++) if (!map.delete(`/n-${n}`, index.hash(`/n-${n}`))) expect.fail(`/n-${n}`)
    expect(map.size).toBe(0)
    expect(map.get('/n-7', index.hash('/n-7'))).toBeUndefined()
  }
})
