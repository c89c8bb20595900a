import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { WatchBits, WatchTable, type Watcher } from './index.ts'

class TestWatcher implements Watcher {
  readonly watchedPaths = new Set<string>()
  readonly name: number

  constructor(name: number) {
    this.name = name
  }
}

const visited = (table: WatchTable<TestWatcher>, path: string): [number, number][] => {
  const seen: [number, number][] = []
  table.forEach(path, (watcher, modes) => void seen.push([watcher.name, modes]))
  return seen
}

describe('WatchTable', () => {
  it('holds several modes of a watcher on a path as one entry', () => {
    const table = new WatchTable<TestWatcher>()
    const one = new TestWatcher(1)
    for (const mode of [WatchBits.ONE_SHOT, WatchBits.PERSISTENT, WatchBits.RECURSIVE, WatchBits.ONE_SHOT])
      table.add('/a', one, mode)
    expect([table.size, table.pathCount, table.modes('/a', one)]).toEqual([1, 1, 7])
    expect(table.remove('/a', one, WatchBits.ONE_SHOT | WatchBits.RECURSIVE)).toBe(5)
    expect(table.remove('/a', one, WatchBits.ONE_SHOT)).toBe(0)
    expect([table.size, table.modes('/a', one)]).toEqual([1, WatchBits.PERSISTENT])
    expect(table.remove('/a', one, ~0)).toBe(WatchBits.PERSISTENT)
    expect([table.size, table.pathCount, table.modes('/a', one)]).toEqual([0, 0, 0])
  })

  it('yields a long path that it holds all the time, though short ones are replaced while it is iterated', () => {
    const table = new WatchTable<TestWatcher>()
    const one = new TestWatcher(1)
    const long = `/${'x'.repeat(20_000)}`
    for (const path of ['/a', '/b', long]) table.add(path, one, WatchBits.ONE_SHOT)
    const seen: string[] = []
    for (const [path] of table.entries()) {
      seen.push(path)
      if (path !== '/a') continue
      for (const gone of ['/a', '/b']) table.remove(gone, one, ~0)
      for (const added of ['/c', '/d']) table.add(added, one, WatchBits.ONE_SHOT)
    }
    expect(seen).toEqual(['/a', '/c', long])
  })

  it('distinguishes another watcher from the only watcher of a path', () => {
    const table = new WatchTable<TestWatcher>()
    const [one, two] = [new TestWatcher(1), new TestWatcher(2)]
    table.add('/a', one, WatchBits.ONE_SHOT)
    expect([table.modes('/a', two), table.remove('/a', two, ~0), table.remove('/b', one, ~0)]).toEqual([
      0, 0, 0,
    ])
    expect([table.size, table.modes('/a', one)]).toEqual([1, WatchBits.ONE_SHOT])
  })

  it('visits each of 20,000 watchers of a path once while each removes itself', () => {
    const table = new WatchTable<TestWatcher>()
    const many = Array.from({ length: 20_000 }, (_, i) => new TestWatcher(i))
    for (const one of many) table.add('/shared', one, WatchBits.ONE_SHOT)
    for (const one of many) table.add('/shared', one, WatchBits.ONE_SHOT)
    expect([table.size, table.pathCount]).toEqual([20_000, 1])
    const seen: number[] = []
    table.forEach('/shared', (one) => {
      seen.push(one.name)
      table.remove('/shared', one, WatchBits.ONE_SHOT)
    })
    expect(seen).toEqual(many.map(({ name }) => name))
    expect([table.size, table.pathCount, visited(table, '/shared')]).toEqual([0, 0, []])
  })

  it('is empty after many watchers have left a path, and accepts new ones', () => {
    const table = new WatchTable<TestWatcher>()
    const many = Array.from({ length: 5 }, (_, i) => new TestWatcher(i))
    for (let round = 0; round < 3; round++) {
      for (const one of many) table.add('/a', one, WatchBits.PERSISTENT)
      for (const one of many.slice(1)) table.remove('/a', one, ~0)
      expect([table.size, visited(table, '/a')]).toEqual([1, [[0, WatchBits.PERSISTENT]]])
      table.remove('/a', many[0]!, ~0)
      expect([table.size, table.pathCount]).toEqual([0, 0])
    }
  })

  it('behaves like a Map of Maps, in 2,000 random histories', () => {
    const step = fc.record({
      add: fc.boolean(),
      path: fc.constantFrom('/', '/a', '/b'),
      who: fc.nat(3),
      modes: fc.integer({ min: 1, max: 7 }),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const people = Array.from({ length: 4 }, (_, i) => new TestWatcher(i))
        const table = new WatchTable<TestWatcher>()
        const model = new Map<string, Map<number, number>>()
        for (const { add, path, who, modes } of steps) {
          const watchers = model.get(path) ?? new Map<number, number>()
          const before = watchers.get(who) ?? 0
          const after = add ? before | modes : before & ~modes
          if (add) table.add(path, people[who]!, modes)
          else expect(table.remove(path, people[who]!, modes)).toBe(before & modes)
          if (after === 0) watchers.delete(who)
          else watchers.set(who, after)
          if (watchers.size === 0) model.delete(path)
          else model.set(path, watchers)
        }
        const listed = [...table.entries()].map(([path, watchers]) => [
          path,
          new Set(watchers.map(({ name }) => name)),
        ])
        expect(listed).toEqual([...model].map(([path, watchers]) => [path, new Set(watchers.keys())]))
        for (const [path, watchers] of model) {
          expect(new Map(visited(table, path))).toEqual(watchers)
          for (const one of people) expect(table.modes(path, one)).toBe(watchers.get(one.name) ?? 0)
        }
        const pairs = [...model.values()].reduce((sum, watchers) => sum + watchers.size, 0)
        expect([table.size, table.pathCount]).toEqual([pairs, model.size])
      }),
      { numRuns: 2000 },
    )
  })
})
