import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { NONE, NodeStore } from './node-store.ts'
import type { NamespaceSize } from './namespaces.ts'

/** A store with a root, which nodes are added to by their paths. */
class Fixture {
  readonly store = new NodeStore(7)
  readonly #root = this.store.add('/', NONE)

  create(path: string, data = ''): number {
    const node = this.store.add(path, this.#find(path.slice(0, path.lastIndexOf('/'))))
    if (node !== NONE) this.store.setData(node, new TextEncoder().encode(data))
    return node
  }

  /** Removes a node that has no children. Returns whether there was one. */
  remove(path: string): boolean {
    const node = this.store.find(path)
    if (node === NONE || this.store.firstChildOf(node) !== NONE) return false
    this.store.remove(node)
    return true
  }

  set(path: string, data: string): void {
    const node = this.#find(path)
    if (node !== NONE) this.store.setData(node, new TextEncoder().encode(data))
  }

  /** Returns the largest first path elements by their paths, and the rest. */
  largest(count: number): [path: string, nodes: number, bytes: number][] {
    const { largest, rest } = this.store.namespaces.largest(count)
    return [
      ...largest.map(
        ({ top, nodes, bytes }) => [this.store.pathOf(top), nodes, bytes] as [string, number, number],
      ),
      ['other', rest.nodes, rest.bytes],
    ]
  }

  #find(path: string): number {
    return path === '' ? this.#root : this.store.find(path)
  }
}

describe('the sizes of first path elements', () => {
  it('are those of a walk over the tree, in random histories', () => {
    const name = fc.constantFrom('a', 'b', 'c', 'x'.repeat(120))
    const path = fc.array(name, { minLength: 1, maxLength: 3 }).map((names) => `/${names.join('/')}`)
    const step = fc.record({
      path,
      what: fc.constantFrom('create', 'create', 'remove', 'set'),
      bytes: fc.nat(50),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const fixture = new Fixture()
        const data = new Map<string, number>()
        for (const { path: at, what, bytes } of steps) {
          const parent = at.slice(0, at.lastIndexOf('/'))
          if (what === 'create' && !data.has(at) && (parent === '' || data.has(parent))) {
            fixture.create(at, 'x'.repeat(bytes))
            data.set(at, bytes)
          } else if (what === 'remove' && fixture.remove(at)) data.delete(at)
          else if (what === 'set' && data.has(at)) {
            fixture.set(at, 'x'.repeat(bytes))
            data.set(at, bytes)
          }
        }
        const expected = new Map<string, NamespaceSize>()
        for (const [at, bytes] of data) {
          const first = `/${at.split('/')[1]!}`
          const key = first.length > 100 ? 'other' : first
          const { nodes, bytes: before } = expected.get(key) ?? { nodes: 0, bytes: 0 }
          expected.set(key, { nodes: nodes + 1, bytes: before + at.length + bytes })
        }
        const found = fixture.largest(10).filter(([, nodes]) => nodes > 0)
        expect(new Map(found.map(([key, nodes, bytes]) => [key, { nodes, bytes }]))).toEqual(expected)
      }),
      { numRuns: 300 },
    )
  })

  it('name the largest ones, the largest first, and add up the others', () => {
    const fixture = new Fixture()
    for (const [i, bytes] of [5, 50, 20, 40, 10].entries()) fixture.create(`/n${i}`, 'x'.repeat(bytes))
    expect(fixture.largest(2)).toEqual([
      ['/n1', 1, 53],
      ['/n3', 1, 43],
      ['other', 3, 35 + 9],
    ])
  })

  it('of more than 10,000 are added up in the others as long as they exist, and take no more memory', () => {
    const fixture = new Fixture()
    for (let i = 0; i < 10_010; i++) fixture.create(`/n${i}`)
    fixture.create('/n10005/large', 'x'.repeat(1000))
    const { labels } = fixture.store.namespaces
    expect(labels.length).toBeLessThan(20_000)
    fixture.create('/n10000/large', 'x'.repeat(1000))
    fixture.create('/n9999/large', 'x'.repeat(900))
    expect(fixture.largest(1)[0]).toEqual(['/n9999', 2, 6 + 12 + 900])
    fixture.remove('/n9999/large')
    fixture.remove('/n10000/large')
    expect(fixture.largest(50).map(([path]) => path)).not.toContain('/n10005')
    for (let i = 0; i < 100; i++) fixture.remove(`/n${i}`)
    // It is not counted twice, although there is room now.
    fixture.create('/n10005/more', 'x'.repeat(1000))
    fixture.create('/new', 'x'.repeat(5000))
    expect(fixture.largest(1)).toEqual([
      ['/new', 1, 5004],
      ['other', 10_010 - 100 + 2, expect.any(Number)],
    ])
    expect(fixture.store.namespaces.labels).toBe(labels)
  })

  it('of a first path element that is removed and created again begin with 0', () => {
    const fixture = new Fixture()
    fixture.create('/a', 'x'.repeat(100))
    fixture.remove('/a')
    fixture.create('/b')
    expect(fixture.largest(5)).toEqual([
      ['/b', 1, 2],
      ['other', 0, 0],
    ])
  })

  it('are added up in the others where their paths are longer than 100 characters', () => {
    const fixture = new Fixture()
    const [counted, long, longer] = [100, 101, 102].map((length) => `/${'x'.repeat(length - 1)}`)
    for (const path of [counted!, long!, longer!]) fixture.create(path)
    expect(fixture.largest(5)).toEqual([
      [counted, 1, 100],
      ['other', 2, 203],
    ])
    // What is left of them goes on to count, and a new one is none of them.
    fixture.remove(long!)
    fixture.create('/new')
    expect(fixture.largest(5)).toEqual([
      [counted, 1, 100],
      ['/new', 1, 4],
      ['other', 1, 102],
    ])
  })

  it('come in the order of their sizes and then of their creation, each that exists', () => {
    const fixture = new Fixture()
    // As many as the counters have room for at first.
    const names = Array.from({ length: 62 }, (_, index) => `/n${index + 10}`)
    for (const path of names) fixture.create(path)
    expect(fixture.largest(100)).toEqual([...names.map((path) => [path, 1, 4]), ['other', 0, 0]])
    expect(fixture.largest(2)).toEqual([...names.slice(0, 2).map((path) => [path, 1, 4]), ['other', 60, 240]])
    fixture.set(names[50]!, 'xxx')
    fixture.set(names[40]!, 'xx')
    fixture.remove(names[0]!)
    const rest = names.filter((_, index) => ![0, 40, 50].includes(index))
    expect(fixture.largest(100)).toEqual([
      [names[50], 1, 7],
      [names[40], 1, 6],
      ...rest.map((path) => [path, 1, 4]),
      ['other', 0, 0],
    ])
  })
})
