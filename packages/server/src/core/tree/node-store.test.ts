import { Reader, readStat, Writer } from '@zabra/protocol'
import { SeededRandom } from '@zabra/runtime'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { NodeStore, NONE } from './node-store.ts'
import { PathIndex } from './path-index.ts'

const KEY = 7
const readerOf = (path: string): Reader => {
  const writer = new Writer()
  writer.string(path)
  return new Reader(writer.take())
}

it('NodeStore hashes paths as PathIndex does after the index of the node found last was reused for another path', () => {
  const store = new NodeStore(KEY)
  const index = new PathIndex(KEY)
  const root = store.add('/', NONE)
  const node = store.add('/first', root)
  expect(store.findFromReader(readerOf('/first'))).toBe(node)
  store.remove(node)
  expect(store.add('/second', root)).toBe(node)
  for (const path of ['/first', '/second', '/', '', '/ü', '/\u{1f600}'])
    expect(store.hash(path)).toBe(index.hash(path))
  expect([store.find('/first'), store.find('/second', index.hash('/second'))]).toEqual([NONE, node])
})

it('NodeStore knows that a path of ASCII is absent, and has others looked up as text', () => {
  const store = new NodeStore(KEY)
  const root = store.add('/', NONE)
  store.add('/a', root)
  store.add('/\u00fc', root)
  const isAbsent = (path: string): readonly [number, boolean] => [
    store.findFromReader(readerOf(path)),
    store.isAbsent,
  ]
  expect(store.isAbsent).toBe(false)
  expect(['/a', '/b', '/\u00fc', '/\u00e4', ''].map(isAbsent)).toEqual([
    [1, false],
    [NONE, true],
    [NONE, false],
    [NONE, false],
    [NONE, false],
  ])
  store.findFromReader(new Reader(Uint8Array.of(255, 255, 255, 255)))
  expect(store.isAbsent).toBe(false)
})

it('writeStat and writeStored write any numbers like the codecs of the protocol and of snapshots', () => {
  const exact = fc.maxSafeInteger()
  const int = fc.integer()
  const fields = fc.record({
    acl: int,
    czxid: exact,
    mzxid: exact,
    pzxid: exact,
    ctime: exact,
    mtime: exact,
    version: int,
    cversion: int,
    aversion: int,
    childCount: fc.nat(),
  })
  fc.assert(
    fc.property(
      fields,
      fc.oneof(fc.constant(0n), fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })),
      fc.nat(500),
      (values, owner, length) => {
        const store = new NodeStore()
        const node = store.add('/', NONE)
        store.setData(node, length === 0 ? null : new Uint8Array(length))
        const columns = store.columns(node)
        const slot = store.slot(node)
        for (const [name, value] of Object.entries(values)) columns[name as keyof typeof values][slot] = value
        const writer = new Writer(200)
        writer.int(1)
        // What the array holds from before must not remain.
        writer.raw(new Uint8Array(100).fill(255))
        writer.truncate(4)
        store.writeStat(node, owner, writer)
        expect(writer.length).toBe(72)
        const { czxid, mzxid, pzxid, ctime, mtime, version, cversion, aversion, childCount } = values
        expect(readStat(new Reader(writer.bytes(), 4))).toEqual({
          czxid: BigInt(czxid),
          mzxid: BigInt(mzxid),
          ctime: BigInt(ctime),
          mtime: BigInt(mtime),
          version,
          cversion: (cversion * 2 - childCount) | 0,
          aversion,
          ephemeralOwner: owner,
          dataLength: length,
          numChildren: childCount,
          pzxid: BigInt(pzxid),
        })
        const [stored, plain] = [new Writer(200), new Writer()]
        stored.raw(new Uint8Array(100).fill(255))
        stored.truncate(0)
        store.writeStored(node, owner, stored)
        for (const long of [values.acl, czxid, mzxid, ctime, mtime]) plain.longNumber(long)
        for (const number of [version, cversion, aversion]) plain.int(number)
        plain.long(owner)
        plain.longNumber(pzxid)
        expect(stored.bytes()).toEqual(plain.bytes())
      },
    ),
    { seed: 31, numRuns: 200 },
  )
})

it('NodeStore keeps all numbers of nodes while it grows from a few nodes to several segments', () => {
  const store = new NodeStore(KEY)
  const root = store.add('/', NONE)
  const nodes = Array.from({ length: 20_000 }, (_, at) => {
    const node = store.add(`/n${at}`, root)
    const columns = store.columns(node)
    columns.mzxid[store.slot(node)] = 2 ** 40 + at
    columns.version[store.slot(node)] = at - 7
    columns.crc[store.slot(node)] = 2 ** 31 + at
    return node
  })
  const isRight = (node: number, at: number): boolean => {
    const [columns, slot] = [store.columns(node), store.slot(node)]
    const next = nodes[at + 1] ?? NONE
    return (
      columns.mzxid[slot] === 2 ** 40 + at &&
      columns.version[slot] === at - 7 &&
      columns.crc[slot] === 2 ** 31 + at &&
      columns.length[slot] === -1 &&
      store.parentOf(node) === root &&
      store.nextOf(node) === next
    )
  }
  expect(nodes.filter((node, at) => !isRight(node, at))).toEqual([])
})

interface PlainNode {
  readonly index: number
  data: Uint8Array | null
  readonly parent: string
  readonly children: string[]
}

/** A store beside a map of the same nodes. */
class StoreFixture {
  readonly store = new NodeStore(KEY)
  readonly plain = new Map<string, PlainNode>()
  largestData = 0
  mostChildren = 0
  /** The most nodes at once. */
  used = 0

  constructor() {
    this.#added('/', this.store.add('/', NONE), '')
  }

  add(path: string, hash?: number): void {
    const parent = path.slice(0, path.lastIndexOf('/')) || '/'
    const above = this.plain.get(parent)
    if (above === undefined) return
    const node = this.store.add(path, above.index, hash)
    expect(node === NONE).toBe(this.plain.has(path))
    if (node === NONE) return
    this.#added(path, node, parent)
    above.children.push(path)
    this.mostChildren = Math.max(this.mostChildren, above.children.length)
  }

  #added(path: string, index: number, parent: string): void {
    this.plain.set(path, { index, data: null, parent, children: [] })
    this.used = Math.max(this.used, this.plain.size)
    const { store } = this
    const [columns, slot] = [store.columns(index), store.slot(index)]
    const numbers = ['czxid', 'mzxid', 'pzxid', 'ctime', 'mtime', 'version', 'cversion', 'aversion'] as const
    for (const name of [...numbers, 'acl', 'pathCrc', 'crc', 'nodeDigest', 'childCount', 'offset'] as const) {
      expect(columns[name][slot], name).toBe(0)
      // Whatever the node leaves, the next one at its index begins without.
      if (name !== 'childCount' && name !== 'offset') columns[name][slot] = 77
    }
  }

  set(path: string, data: Uint8Array | null, isInitial: boolean): void {
    const node = this.plain.get(path)
    if (node === undefined) return
    if (isInitial && data !== null && node.data === null) {
      const within = new Uint8Array(data.length + 9)
      within.set(data, 4)
      this.store.setInitialData(node.index, new DataView(within.buffer), 4, 4 + data.length)
    } else this.store.setData(node.index, data)
    node.data = data
    this.largestData = Math.max(this.largestData, data?.length ?? 0)
  }

  remove(path: string, hash?: number): void {
    const node = this.plain.get(path)
    if (node === undefined || path === '/' || node.children.length > 0) return
    this.store.remove(node.index, hash)
    this.plain.delete(path)
    const { children } = this.plain.get(node.parent)!
    children.splice(children.indexOf(path), 1)
  }

  check(): void {
    const { store, plain } = this
    const all = [...plain]
    expect(store).toMatchObject({
      count: plain.size,
      used: this.used,
      dataBytes: all.reduce((sum, [, { data }]) => sum + (data?.length ?? 0), 0),
      pathChars: [...plain.keys()].join('').length,
      largestData: this.largestData,
      mostChildren: this.mostChildren,
    })
    const paths = new Set(Array.from({ length: store.used }, (_, index) => store.pathAt(index)))
    paths.delete(undefined)
    expect(paths).toEqual(new Set(plain.keys()))
    for (const [path, node] of all) this.#checkNode(path, node)
    const sums = new Map<string, { nodes: number; bytes: number }>()
    for (const [path, { data }] of all) {
      const top = path.split('/', 2).join('/')
      const { nodes, bytes } = sums.get(top) ?? { nodes: 0, bytes: 0 }
      sums.set(top, { nodes: nodes + 1, bytes: bytes + path.length + (data?.length ?? 0) })
    }
    sums.delete('/')
    const { largest } = store.namespaces.largest(sums.size + 1)
    expect(new Map(largest.map(({ top, nodes, bytes }) => [store.pathOf(top), { nodes, bytes }]))).toEqual(
      sums,
    )
    expect(this.#walk('/')).toEqual(this.#preOrder('/'))
  }

  #checkNode(path: string, { index, data, parent, children }: PlainNode): void {
    const { store } = this
    const hash = store.hash(path)
    // A wrong hash shows that there is no lookup.
    expect(store.resolve({ path, hash: hash + 1, index })).toBe(index)
    for (const known of [NONE, index + 1, store.used + 8])
      expect(store.resolve({ path, hash, index: known })).toBe(index)
    expect(store.resolve({ path: `${path}?`, hash: store.hash(`${path}?`), index })).toBe(NONE)
    expect(store.parentOf(index)).toBe(this.plain.get(parent)?.index ?? NONE)
    expect(store.columns(index).childCount[store.slot(index)]).toBe(children.length)
    expect(store.firstChildOf(index)).toBe(this.#indexOf(children[0]))
    for (const [at, child] of children.entries())
      expect(store.nextOf(this.#indexOf(child))).toBe(this.#indexOf(children[at + 1]))
    expect(this.#walk(path)).toEqual(this.#preOrder(path))
    const held = store.data(index)
    expect(held === null).toBe(data === null)
    if (data === null || held === null) return
    expect(Buffer.compare(held, data)).toBe(0)
    const view = store.dataViewOf(index)
    const offset = data.length === 0 ? 0 : store.columns(index).offset[store.slot(index)]!
    expect(Buffer.compare(new Uint8Array(view.buffer).subarray(offset, offset + data.length), data)).toBe(0)
    expect(store.ownArrayOf(index) !== undefined).toBe(data.length > 16_384)
    if (data.length > 16_384) expect(Buffer.compare(store.ownArrayOf(index)!, data)).toBe(0)
  }

  #indexOf(path: string | undefined): number {
    return path === undefined ? NONE : this.plain.get(path)!.index
  }

  #walk(top: string): string[] {
    const seen = [top]
    const { store } = this
    const first = this.#indexOf(top)
    for (let node = store.successor(first, first); node !== NONE; node = store.successor(node, first))
      seen.push(store.pathOf(node))
    return seen
  }

  #preOrder(top: string): string[] {
    return [top, ...this.plain.get(top)!.children.flatMap((child) => this.#preOrder(child))]
  }
}

it.each([1, 2, 3, 4])(
  'NodeStore has nodes, data, order of children and sums as a Map has them, in a random history (seed %i)',
  (seed) => {
    const random = new SeededRandom(seed)
    const index = new PathIndex(KEY)
    const fixture = new StoreFixture()
    const names = ['a', 'b', 'c', 'd', 'e', 'f', 'ü', 'long name']
    const sizes = [0, 1, 16, 17, 100, 130, 3000, 16_384, 16_385, 17_000]
    for (let step = 0; step < 400; step++) {
      const length = 1 + random.below(3)
      const path = Array.from({ length }, () => `/${names[random.below(names.length)]}`).join('')
      const hash = random.below(2) === 0 ? undefined : index.hash(path)
      const kind = random.below(8)
      if (kind < 4) fixture.add(path, hash)
      else if (kind < 6) fixture.remove(path, hash)
      else {
        const size = sizes[random.below(sizes.length)]!
        const data = random.below(5) === 0 ? null : new Uint8Array(size).fill(step)
        fixture.set(path, data, random.below(2) === 0)
      }
      if (step % 10 === 0) fixture.check()
    }
    fixture.check()
  },
)

it('NodeStore knows the most bytes that a node had, also those that it had at first', () => {
  const store = new NodeStore(KEY)
  const node = store.add('/', NONE)
  store.setInitialData(node, new DataView(new ArrayBuffer(20)), 3, 13)
  expect([store.largestData, store.dataBytes]).toEqual([10, 10])
  store.setData(node, new Uint8Array(11))
  store.setData(node, null)
  const other = store.add('/b', node)
  store.setInitialData(other, new DataView(new ArrayBuffer(20)), 3, 12)
  expect([store.largestData, store.dataBytes]).toEqual([11, 9])
  expect(store.namespaces.largest(1).largest).toEqual([{ top: other, nodes: 1, bytes: 2 + 9 }])
})

it('NodeStore skips descendants, and ends at the end of a subtree', () => {
  const store = new NodeStore(KEY)
  const add = (path: string, parent: number): number => store.add(path, parent)
  const root = add('/', NONE)
  const a = add('/a', root)
  const deep = add('/a/b/c', add('/a/b', a))
  const last = add('/d', root)
  expect(store.successorBehind(a, root)).toBe(last)
  expect(store.successorBehind(deep, root)).toBe(last)
  expect(store.successorBehind(deep, a)).toBe(NONE)
  expect(store.successorBehind(a, a)).toBe(NONE)
  expect(store.successor(deep, deep)).toBe(NONE)
  expect(store.successorBehind(last, NONE)).toBe(NONE)
})

it('NodeStore reads paths one after the other, and remembers the last one that it found', () => {
  const store = new NodeStore(KEY)
  const index = new PathIndex(KEY)
  const root = store.add('/', NONE)
  const [a, b] = [store.add('/a', root), store.add('/b', root)]
  const writer = new Writer()
  for (const path of ['/a', '/b', '/missing']) writer.string(path)
  const reader = new Reader(writer.take())
  expect([store.findFromReader(reader), reader.offset]).toEqual([a, 6])
  expect(store.hash('/a')).toBe(index.hash('/a'))
  expect([store.findFromReader(reader), reader.offset]).toEqual([b, 12])
  expect([store.findFromReader(reader), reader.offset, store.isAbsent]).toEqual([NONE, 12, true])
  // A wrong hash shows which paths are looked up.
  expect([store.find('/b', 0), store.find('/a', 0)]).toEqual([b, NONE])
  expect(store.findFromReader(new Reader(Uint8Array.of(255, 255, 255, 255)))).toBe(NONE)
  expect([store.find('/b', 0), store.hash('/a')]).toEqual([b, index.hash('/a')])
})

it('NodeStore counts what removed nodes have left for others', () => {
  const store = new NodeStore(KEY)
  const root = store.add('/', NONE)
  const nodes = Array.from({ length: 300 }, (_, at) => store.add(`/${at}`, root))
  expect(store.freeBytes).toBe(0)
  for (const node of nodes.slice(0, 20)) store.remove(node)
  expect(store.freeBytes).toBe(2000)
  store.setData(nodes[50]!, new Uint8Array(16))
  expect(store.freeBytes).toBe(2000 + 16_384 - 16)
  expect(nodes.slice(0, 20)).toContain(store.add('/again', root))
  store.setData(nodes[50]!, null)
  expect(store.freeBytes).toBe(1900 + 16_384)
})

it('NodeStore has room for a few nodes at first, and for a whole segment once a second one begins', () => {
  const store = new NodeStore(KEY)
  const root = store.add('/', NONE)
  const sizes = new Set<number>()
  let node = root
  for (let at = 1; at <= 8192 + 256; at++) {
    sizes.add(store.columns(node).size)
    node = store.add(`/${at}`, root)
  }
  expect([...sizes]).toEqual([256, 512, 1024, 2048, 4096, 8192])
  expect([store.columns(8192).size, store.columns(root).size]).toEqual([256 * 32, 8192])
})
