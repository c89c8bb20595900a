import { Reader, Writer } from '@zabra/protocol'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { StoredStat } from '../types.ts'
import { Tree } from './index.ts'

interface Row {
  readonly path: string
  readonly data: Uint8Array | null
  readonly acl: number
  readonly stat: StoredStat
}

const options = { digest: true, extendedTypes: true, emulate353TTLNodes: false }
const READ_ALL = [{ perms: 1, id: { scheme: 'world', id: 'anyone' } }]

/** Loads rows by `Tree.loadNode` alone, or by `BulkLoader` where it accepts them. Returns how many it accepted. */
function loaded(rows: readonly Row[], inBulk: boolean): { tree: Tree; taken: number } {
  const tree = new Tree(options)
  tree.clear()
  tree.acls.load(3, READ_ALL)
  tree.acls.load(4, [{ perms: 31, id: { scheme: 'ip', id: '127.0.0.1' } }])
  const bulk = tree.bulkLoader()
  let taken = 0
  for (const { path, data, acl, stat } of rows) {
    const w = new Writer(64)
    w.raw(Uint8Array.of(9, 9, 9))
    w.buffer(data)
    w.longNumber(acl)
    for (const name of ['czxid', 'mzxid', 'ctime', 'mtime'] as const) w.longNumber(stat[name])
    for (const name of ['version', 'cversion', 'aversion'] as const) w.int(stat[name])
    w.long(stat.owner)
    w.longNumber(stat.pzxid)
    const bytes = w.take()
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    if (inBulk && bulk.tryLoad(path, bytes, view, 7, data === null ? -1 : data.length)) taken++
    else {
      bulk.flushAclUses()
      const r = new Reader(bytes, 3)
      expect(tree.loadNode(path, r.buffer(), acl, stat)).toBe(true)
    }
  }
  bulk.flushAclUses()
  tree.endLoad(77)
  return { tree, taken }
}

const DERIVED = ['childCount', 'length', 'pathCrc', 'crc', 'nodeDigest'] as const

function everything(tree: Tree) {
  const nodes: unknown[] = []
  const cursor = tree.scan()
  cursor.next(Infinity, (node) => {
    const path = tree.pathOf(node)
    const data = tree.dataOf(node)
    const columns = tree.store.columns(node)
    const derived = DERIVED.map((name) => columns[name][tree.store.slot(node)])
    nodes.push([path, data && [...data], tree.aclOf(node), tree.aclIdOf(node), tree.statOf(node), derived])
  })
  cursor.close()
  const ephemerals = [...tree.owners.sessions()].map((id) => [id, tree.owners.ofSession(id).size])
  const { digest, nodeCount, approximateDataSize } = tree
  return { nodes, digest, nodeCount, approximateDataSize, ephemerals, acls: tree.acls.entries() }
}

const number = fc.oneof(fc.nat(), fc.maxSafeNat(), fc.constantFrom(-1, -(2 ** 52), 2 ** 32, 2 ** 31))
const int = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 })
const stat: fc.Arbitrary<StoredStat> = fc.record({
  czxid: number,
  mzxid: number,
  pzxid: number,
  ctime: number,
  mtime: number,
  version: int,
  cversion: int,
  aversion: int,
  owner: fc.constantFrom(0n, 0n, 0n, 0x1234_5678_9abcn, -(2n ** 63n)),
})
const content = fc.record({
  data: fc.option(fc.uint8Array({ maxLength: 300 })),
  acl: fc.constantFrom(-1, 3, 3, 4),
  stat,
})

/** Rows with every parent before its children: depth first, breadth first, or mixed. */
const rows = fc
  .array(
    fc.record({
      below: fc.nat(),
      name: fc.constantFrom('a', 'b', 'cc', 'é', 'zookeeper', 'z', 'k0000001'),
      content,
    }),
    { minLength: 1, maxLength: 60 },
  )
  .map((list) => {
    const paths = ['']
    return [
      { path: '', data: new Uint8Array(0), acl: -1, stat: list[0]!.content.stat },
      ...list.map(({ below, name, content }): Row => {
        const path = `${paths[below % Math.min(paths.length, 12)]!}/${name}`
        if (!paths.includes(path)) paths.unshift(path)
        return { path, ...content }
      }),
    ]
  })

describe('BulkLoader', () => {
  it('builds the same tree as loadNode, with repeated nodes and in any order of parents', () => {
    let taken = 0
    fc.assert(
      fc.property(rows, (list) => {
        const bulk = loaded(list, true)
        taken += bulk.taken
        expect(everything(bulk.tree)).toEqual(everything(loaded(list, false).tree))
      }),
      { numRuns: 500 },
    )
    expect(taken).toBeGreaterThan(1000)
  })

  const TAIL = { acl: 0, czxid: 8, mzxid: 16, ctime: 24, mtime: 32, owner: 52, pzxid: 60 }
  const emptyNode = (): DataView => {
    const view = new DataView(new ArrayBuffer(68))
    view.setBigInt64(TAIL.acl, -1n)
    return view
  }
  const load = (tree: Tree, view: DataView, path = '/x'): boolean =>
    tree.bulkLoader().tryLoad(path, new Uint8Array(view.buffer), view, 0, -1)

  it.each(['acl', 'czxid', 'mzxid', 'ctime', 'mtime', 'pzxid'] as const)(
    'refuses a node whose %s is no exact number, and takes the largest ones',
    (field) => {
      for (const high of [0x20_0000, -0x20_0000, 0x7fff_ffff]) {
        const view = emptyNode()
        view.setInt32(TAIL[field], high)
        expect(load(new Tree(options), view)).toBe(false)
      }
      if (field === 'acl') return
      for (const high of [0x1f_ffff, -0x1f_ffff]) {
        const view = emptyNode()
        view.setInt32(TAIL[field], high)
        const tree = new Tree(options)
        expect(load(tree, view)).toBe(true)
        expect(tree.statOf(tree.find('/x'))[field]).toBe(high * 2 ** 32)
      }
    },
  )

  it.each([0n, 5n, 5n << 32n, -1n])('sets the owner %s of a node, and none where it is 0', (owner) => {
    const view = emptyNode()
    view.setBigInt64(TAIL.owner, owner)
    const tree = new Tree({ ...options, extendedTypes: false })
    expect(load(tree, view)).toBe(true)
    expect(tree.statOf(tree.find('/x')).owner).toBe(owner)
    expect(tree.owners.ephemeralCount).toBe(owner === 0n ? 0 : 1)
  })

  it('needs no digest', () => {
    const tree = new Tree({ ...options, digest: false })
    expect([
      load(tree, emptyNode()),
      load(tree, emptyNode(), '/x/y'),
      load(tree, emptyNode(), '/x/y'),
    ]).toEqual([true, true, false])
    expect(tree.store.columns(0).pathCrc[tree.find('/x/y')]).toBe(0)
  })

  it('takes nodes in any order, a parent that is no ancestor of the last one too', () => {
    const tree = new Tree(options)
    const bulk = tree.bulkLoader()
    const view = emptyNode()
    const paths = [
      '/a',
      '/a/b',
      '/a/b/c',
      '/a/b/d',
      '/ab',
      '/ab/c',
      '/a/e',
      '/cd',
      '/a/b/f',
      '/x/b',
      '/cd/y',
      'x',
      '',
    ]
    const taken = paths.filter((path) => bulk.tryLoad(path, new Uint8Array(view.buffer), view, 0, -1))
    expect(taken).toEqual(paths.slice(0, -2).filter((path) => path !== '/x/b'))
    for (const path of taken)
      expect(tree.pathOf(tree.store.parentOf(tree.find(path)))).toBe(
        path.slice(0, path.lastIndexOf('/')) || '/',
      )
    bulk.flushAclUses()
  })

  it('refuses a node without a parent, with an unknown ACL id or with an inexact number', () => {
    const tree = new Tree(options)
    const bulk = tree.bulkLoader()
    const bytes = new Uint8Array(68)
    const view = new DataView(bytes.buffer)
    const before = everything(tree)
    bytes.fill(0xff, 0, 8)
    expect(bulk.tryLoad('/x/y', bytes, view, 0, -1)).toBe(false)
    expect(bulk.tryLoad('x', bytes, view, 0, -1)).toBe(false)
    expect(bulk.tryLoad('', bytes, view, 0, -1)).toBe(false)
    expect(bulk.tryLoad('/zookeeper/quota/x', bytes, view, 0, -1)).toBe(false)
    view.setInt32(60, 0x20_0000)
    expect(bulk.tryLoad('/x', bytes, view, 0, -1)).toBe(false)
    view.setInt32(60, 0)
    bytes.fill(0, 0, 8)
    expect(bulk.tryLoad('/x', bytes, view, 0, -1)).toBe(false)
    expect(everything(tree)).toEqual(before)
    bytes.fill(0xff, 0, 8)
    expect(bulk.tryLoad('/x', bytes, view, 0, -1)).toBe(true)
    expect(tree.has('/x')).toBe(true)
  })
})
