import { Reader, readStat, Writer } from '@zabra/protocol'
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
      fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
      fc.nat(500),
      (values, owner, length) => {
        const store = new NodeStore()
        const node = store.add('/', NONE)
        store.setData(node, length === 0 ? null : new Uint8Array(length))
        const columns = store.columns(node)
        const slot = store.slot(node)
        for (const [name, value] of Object.entries(values)) columns[name as keyof typeof values][slot] = value
        const writer = new Writer(4)
        writer.int(1)
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
        const [stored, plain] = [new Writer(4), new Writer()]
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
