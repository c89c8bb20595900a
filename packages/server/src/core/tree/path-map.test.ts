import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
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
      const map = new PathMap<number>(key)
      const index = new PathIndex(key)
      const plain = new Map<string, number>()
      for (const [number, { do: kind, path }] of steps.entries()) {
        const hash = index.hash(path)
        expect(map.hash(path)).toBe(hash)
        if (kind === 'set') {
          map.set(path, hash, number)
          plain.set(path, number)
        } else if (kind === 'delete') expect(map.delete(path, hash)).toBe(plain.delete(path))
        expect(map.get(path, hash)).toBe(plain.get(path))
        expect(map.size).toBe(plain.size)
      }
      expect(new Map(map)).toEqual(plain)
      expect([...map]).toHaveLength(plain.size)
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
    expect([...map]).toEqual([])
  }
})

describe('PathMap', () => {
  const mapOf = (paths: readonly string[]): PathMap<string> => {
    const map = new PathMap<string>()
    for (const path of paths) map.set(path, map.hash(path), path)
    return map
  }
  const remove = (map: PathMap<string>, path: string): void => {
    expect(map.delete(path, map.hash(path))).toBe(true)
  }
  const pathsOf = (map: PathMap<string>): string[] => Array.from(map, ([path]) => path)

  it('yields the last place first, and gives the places of deleted entries to new ones', () => {
    const map = mapOf(['/a', '/b', '/c'])
    remove(map, '/a')
    map.set('/d', map.hash('/d'), '/d')
    map.set('/e', map.hash('/e'), '/e')
    expect(pathsOf(map)).toEqual(['/e', '/c', '/b', '/d'])
  })

  it('gives no place behind its last entry away twice', () => {
    const map = mapOf(['/a', '/b', '/c'])
    remove(map, '/b')
    remove(map, '/c')
    for (const path of ['/d', '/e', '/f']) map.set(path, map.hash(path), path)
    expect(pathsOf(map)).toEqual(['/f', '/e', '/d', '/a'])
  })

  it.each([
    [100, true],
    [65_536, true],
    [65_537, false],
  ])('keeps its arrays after it had %i entries: %s', (count, isKept) => {
    const map = new PathMap<number>()
    const indexOf = (): unknown => {
      const find = vi.spyOn(PathIndex.prototype, 'find')
      map.get('/', 0)
      const [index] = find.mock.contexts
      find.mockRestore()
      return index
    }
    const before = indexOf()
    for (let n = 0; n < count; n++) map.set(`/${n}`, map.hash(`/${n}`), n)
    for (let n = 0; n < count; n++) map.delete(`/${n}`, map.hash(`/${n}`))
    expect([map.size, indexOf() === before]).toEqual([0, isKept])
  })

  it('yields what is left where entries are deleted and added while it yields', () => {
    const map = mapOf(Array.from({ length: 10 }, (_, at) => `/${at}`))
    const seen: string[] = []
    for (const [path, value] of map) {
      expect(value).toBe(path)
      seen.push(path)
      if (path === '/7') for (const gone of ['/9', '/8', '/7', '/6', '/5', '/2']) remove(map, gone)
      if (path === '/3') map.set('/late', map.hash('/late'), '/late')
    }
    expect(seen).toEqual(['/9', '/8', '/7', '/4', '/3', '/late', '/1', '/0'])
  })
})
