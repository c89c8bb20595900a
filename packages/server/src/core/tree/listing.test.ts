import { OpCode, Reader, Writer } from '@zabra/protocol'
import { SeededRandom } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import { createOf } from '../testing/create-of.ts'
import type { Txn } from '../types.ts'
import {
  ChildPathsCursor,
  countDescendants,
  DescendantCounter,
  EphemeralPathsCursor,
  NamespaceTraffic,
  Tree,
  writeChildren,
} from './index.ts'

/** Creates and deletes random nodes below `/in` and `/out`. Those below `/in` are ephemerals of session 2, where `ephemeral` is set. */
class RandomTree {
  readonly random: SeededRandom
  readonly tree = new Tree({ extendedTypes: true, digest: false })
  readonly living = new Set<string>()
  readonly #areEphemeral: boolean
  #zxid = 0

  constructor(seed: number, { ephemeral = false } = {}) {
    this.random = new SeededRandom(seed)
    this.#areEphemeral = ephemeral
    for (const path of ['/in', '/out']) this.#create(path)
  }

  get inside(): string[] {
    return [...this.living].filter((path) => path.startsWith('/in/'))
  }

  change(): void {
    const path = `/${['in', 'out'][this.random.below(2)]}/${this.random.below(40)}`
    if (this.living.delete(path)) return this.#apply({ type: OpCode.delete, path })
    this.living.add(path)
    this.#create(path)
  }

  #create(path: string): void {
    const isOwned = path.startsWith('/in/')
    this.#apply(
      createOf(path, { ephemeral: this.#areEphemeral && path.lastIndexOf('/') > 0 }),
      isOwned ? 2n : 1n,
    )
  }

  #apply(txn: Txn, sessionId = 1n): void {
    this.tree.apply({ sessionId, cxid: 1, zxid: ++this.#zxid, time: 0 }, txn)
  }
}

const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8]

it.each(SEEDS)(
  'DescendantCounter counts the descendants that a path had at its start, whatever changes between its steps (seed %i)',
  (seed) => {
    const world = new RandomTree(seed)
    const { random, tree } = world
    for (let i = 0; i < 200; i++) {
      for (let j = random.below(20); j > 0; j--) world.change()
      const expected = world.inside.length
      const count = new DescendantCounter(tree, '/in')
      do for (let j = random.below(6); j > 0; j--) world.change()
      while (count.next(1 + random.below(10)))
      count.close()
      expect(count.count, `round ${i}`).toBe(expected)
    }
  },
)

it.each(SEEDS)(
  'ChildPathsCursor collects the children that a node had at its start, whatever changes between its steps (seed %i)',
  (seed) => {
    const world = new RandomTree(seed)
    const { random, tree } = world
    for (let i = 0; i < 400; i++) {
      for (let j = random.below(20); j > 0; j--) world.change()
      const expected = world.inside
      const children = new ChildPathsCursor(tree, tree.find('/in'))
      do for (let j = random.below(6); j > 0; j--) world.change()
      while (children.next(1 + random.below(10)))
      children.close()
      expect(children.lists.flat().toSorted(), `round ${i}`).toEqual(expected.toSorted())
      expect(children.bytes).toBe(
        expected.join('').length - expected.length * '/in/'.length + expected.length * 4,
      )
    }
  },
)

it.each(SEEDS)(
  'EphemeralPathsCursor collects the ephemerals that a session had at its start, whatever changes between its steps (seed %i)',
  (seed) => {
    const world = new RandomTree(seed, { ephemeral: true })
    const { random, tree } = world
    const isEven = (path: string): boolean => Number(path.at(-1)) % 2 === 0
    for (let i = 0; i < 400; i++) {
      for (let j = random.below(20); j > 0; j--) world.change()
      const expected = world.inside.filter(isEven)
      const ephemerals = new EphemeralPathsCursor(tree, 2n, isEven)
      do for (let j = random.below(6); j > 0; j--) world.change()
      while (ephemerals.next(1 + random.below(10)))
      ephemerals.close()
      const found = ephemerals.lists.flat()
      expect(found.toSorted(), `round ${i}`).toEqual(expected.toSorted())
      expect([ephemerals.count, ephemerals.bytes]).toEqual([
        expected.length,
        expected.join('').length + expected.length * 4,
      ])
    }
  },
)

describe('lists of children and ephemerals', () => {
  const SESSION = 2n
  function treeWith(paths: readonly string[], options: { traffic?: NamespaceTraffic } = {}) {
    const tree = new Tree({ extendedTypes: true, digest: false, ...options })
    let zxid = 0
    const apply = (txn: Txn, sessionId = SESSION): void => {
      expect(tree.apply({ sessionId, cxid: 1, zxid: ++zxid, time: 0 }, txn)).toBe(0)
    }
    const create = (path: string, session = SESSION): void =>
      apply(createOf(path, { ephemeral: path.includes('/e') }), session)
    const remove = (path: string): void => apply({ type: OpCode.delete, path })
    for (const path of paths) create(path)
    return { tree, create, remove, top: tree.find('/in') }
  }
  const named = (count: number, length = 1): string[] => [
    '/in',
    ...Array.from({ length: count }, (_, at) => `/in/e${String(at).padStart(length - 1, '0')}`),
  ]
  const sumOf = (traffic: NamespaceTraffic): number[] =>
    traffic.measured.map(({ read }) => read.totalSum).filter((sum) => sum > 0)

  it('writeChildren writes the names as a vector, and counts the read', () => {
    const traffic = new NamespaceTraffic()
    const { tree, top } = treeWith(['/in', '/in/b', '/in/ü', '/in/b/x', '/in/a'], { traffic })
    const writer = new Writer()
    expect(writeChildren(tree, top, writer)).toBe(true)
    const reader = new Reader(writer.take())
    const names = Array.from({ length: reader.vectorLength() }, () => reader.string())
    expect(names).toEqual(['b', 'ü', 'a'])
    expect(reader.remaining).toBe(0)
    expect(sumOf(traffic)).toEqual(['/in'.length + 3 + 68])
  })

  it('writeChildren stops where the names are too long to be written at once, and counts nothing', () => {
    const traffic = new NamespaceTraffic()
    // Names of 4096 bytes with their lengths, but for the last one: with the count they end at the limit, or one byte behind it.
    for (const [last, fits] of [
      [4088, true],
      [4089, false],
    ] as const) {
      const names = [...named(63, 4092), `/in/${'l'.repeat(last)}`, '/in/behind']
      const { tree, top } = treeWith(names, { traffic })
      const writer = new Writer()
      writer.raw(new Uint8Array(100))
      expect(writeChildren(tree, top, writer)).toBe(fits)
    }
    expect(sumOf(traffic)).toEqual([63 * 4092 + 4088 + 'behind'.length + '/in'.length + 68])
  })

  it('writeChildren needs nothing that measures', () => {
    const { tree, top } = treeWith(['/in', '/in/a'])
    const writer = new Writer()
    expect([writeChildren(tree, top, writer), writer.length]).toEqual([true, 4 + 4 + 1])
  })

  it('countDescendants counts up to a limit', () => {
    const { tree, top } = treeWith(['/in', '/in/a', '/in/a/b', '/in/c', '/out', '/in/a/b/d'])
    expect([3, 4, 5].map((most) => countDescendants(tree, top, most))).toEqual([undefined, 4, 4])
    expect(countDescendants(tree, tree.find('/out'), 0)).toBe(0)
  })

  it.each([
    ['/in', 10],
    ['/in'.padEnd(511, 'x'), 5],
    ['/in'.padEnd(1023, 'x'), 4],
  ])('DescendantCounter visits fewer nodes in a step below a longer path (case %#)', (path, visited) => {
    const { tree } = treeWith([path, ...Array.from({ length: 40 }, (_, at) => `${path}/${at}`)])
    const count = new DescendantCounter(tree, path)
    let steps = 1
    while (count.next(10)) steps++
    expect(steps).toBe(Math.ceil(tree.store.used / visited))
    expect(count.count).toBe(40)
    count.close()
  })

  it('DescendantCounter counts a removed node as it was, in front of its place and behind it', () => {
    const paths = Array.from({ length: 20 }, (_, at) => `/in/${at}`)
    const { tree, create, remove } = treeWith(['/in', ...paths, '/inside'])
    const count = new DescendantCounter(tree, '/in')
    // The nodes of the system, `/in` and the first of its children.
    count.next(6)
    remove('/in/0')
    remove('/in/1')
    remove('/in/19')
    create('/in/late')
    create('/in/later')
    remove('/in/later')
    remove('/inside')
    while (count.next(3));
    expect(count.count).toBe(20)
    count.close()
    remove('/in/2')
    expect(count.count).toBe(20)
  })

  const cursors = {
    ChildPathsCursor: (tree: Tree) => new ChildPathsCursor(tree, tree.find('/in')),
    EphemeralPathsCursor: (tree: Tree) => new EphemeralPathsCursor(tree, SESSION, () => true),
  }
  const kinds = Object.keys(cursors) as (keyof typeof cursors)[]

  it.each(kinds)('%s makes lists of at most 2000 paths', (kind) => {
    for (const [count, lengths] of [
      [0, []],
      [2000, [2000]],
      [2001, [2000, 1]],
      [4500, [2000, 2000, 500]],
    ] as const) {
      const { tree } = treeWith(named(count, 5))
      const cursor = cursors[kind](tree)
      while (cursor.next(777));
      expect(cursor.lists.map(({ length }) => length).filter((length) => length > 0)).toEqual(lengths)
      expect(cursor.count).toBe(count)
      cursor.close()
    }
  })

  it.each(kinds)('%s takes as many steps as its limit asks for', (kind) => {
    const { tree } = treeWith(named(10))
    for (const [limit, steps] of [
      [1, 10],
      [3, 4],
      [5, 2],
      [10, 1],
      [11, 1],
    ] as const) {
      const cursor = cursors[kind](tree)
      let taken = 1
      while (cursor.next(limit)) taken++
      expect(taken).toBe(steps)
      cursor.close()
    }
  })

  it.each([
    ['ChildPathsCursor', 4096],
    ['EphemeralPathsCursor', 4092],
  ] as const)('%s takes names of 256 KiB in a step', (kind, length) => {
    // 64 names, or paths, have as many characters as a step may take; the 65th waits for the next one.
    const { tree } = treeWith(named(130, length))
    const cursor = cursors[kind](tree)
    const taken: number[] = []
    for (let more = true; more;) {
      more = cursor.next(Infinity)
      taken.push(cursor.lists.flat().length)
    }
    expect(taken).toEqual([64, 128, 130])
    cursor.close()
  })

  it.each(kinds)('%s ignores what is created, and takes what is removed, until it has all', (kind) => {
    const { tree, create, remove } = treeWith(named(20))
    const expected = named(20).slice(1)
    const cursor = cursors[kind](tree)
    cursor.next(3)
    create('/in/early')
    remove('/in/e1')
    remove('/in/e19')
    remove('/in/e3')
    // They get the indices of nodes that are gone.
    for (const name of ['ea', 'eb', 'ec']) create(`/in/${name}`)
    remove('/in/eb')
    create('/e-elsewhere')
    remove('/e-elsewhere')
    while (cursor.next(2));
    create('/in/ez')
    remove('/in/e4')
    remove('/in/ez')
    expect(cursor.lists.flat().toSorted()).toEqual(expected.toSorted())
    expect(cursor.count).toBe(20)
    expect(cursor.next(1)).toBe(false)
    cursor.close()
  })

  it('ChildPathsCursor keeps the order of creation, and counts its read though the node is gone', () => {
    const traffic = new NamespaceTraffic()
    const { tree, remove } = treeWith(['/in', '/in/c', '/in/a', '/in/bb'], { traffic })
    const cursor = new ChildPathsCursor(tree, tree.find('/in'))
    while (cursor.next(1));
    for (const path of ['/in/c', '/in/a', '/in/bb', '/in']) remove(path)
    cursor.countRead()
    expect(cursor.lists).toEqual([['/in/c', '/in/a', '/in/bb']])
    expect([cursor.bytes, sumOf(traffic)]).toEqual([4 + 3 * 4, ['/in'.length + 4 + 68]])
    cursor.close()
  })

  it('EphemeralPathsCursor leaves out what its filter refuses, and ephemerals of other sessions', () => {
    const { tree, create, remove } = treeWith(named(10))
    create('/in/e20', 3n)
    const cursor = new EphemeralPathsCursor(tree, SESSION, (path) => Number(path.at(-1)) % 2 === 0)
    cursor.next(1)
    remove('/in/e3')
    remove('/in/e4')
    remove('/in/e20')
    while (cursor.next(1));
    const found = ['/in/e0', '/in/e2', '/in/e4', '/in/e6', '/in/e8']
    expect(cursor.lists.flat().toSorted()).toEqual(found)
    expect([cursor.count, cursor.bytes]).toEqual([5, 5 * ('/in/e0'.length + 4)])
    cursor.close()
  })

  it('EphemeralPathsCursor leaves out new ephemerals that come before older ones', () => {
    const fillers = Array.from({ length: 1 << 14 }, (_, at) => `/in/${at}`)
    const { tree, create, remove } = treeWith(['/in', '/in/e1', ...fillers, '/in/e2'])
    const cursor = new EphemeralPathsCursor(tree, SESSION, () => true)
    cursor.next(1)
    // The index of a filler is in the range of the first ephemeral, which is iterated first.
    remove('/in/7')
    create('/in/e3')
    while (cursor.next(1));
    expect(cursor.lists.flat()).toEqual(['/in/e1', '/in/e2'])
    cursor.close()
  })

  it('DescendantCounter and the tree go on without each other once it is closed', () => {
    const { tree, remove } = treeWith(named(9))
    const count = new DescendantCounter(tree, '/in')
    count.close()
    remove('/in/e8')
    expect(count.count).toBe(0)
  })

  it.each(kinds)('%s and the tree go on without each other once it is closed', (kind) => {
    const { tree, remove } = treeWith(named(3))
    const cursor = cursors[kind](tree)
    cursor.close()
    remove('/in/e1')
    expect(cursor.lists.flat()).toEqual([])
  })
})
