import {
  CONTAINER_OWNER,
  ErrorCode,
  nameOf,
  OPEN_ACL_UNSAFE,
  OpCode,
  READ_ACL_UNSAFE,
  Reader,
  readStat,
  Writer,
} from '@zabra/protocol'
import { SeededRandom } from '@zabra/runtime'
import { describe, expect, test, vi } from 'vitest'
import { createOf } from '../testing/create-of.ts'
import type { CreateTxn, Txn } from '../types.ts'
import { childPaths } from '../testing/child-paths.ts'
import { plainDigest } from '../testing/plain-digest.ts'
import { appliesInSteps, NamespaceTraffic, Tree, type ChangeSink } from './index.ts'

const options = { extendedTypes: true, digest: true }
const it = test.extend('tree', () => new Tree(options))
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const SESSION = 0x100001402ee0000n

function apply(tree: Tree, zxid: number, time: number, txn: Txn, sink?: ChangeSink): number {
  return tree.apply({ sessionId: SESSION, cxid: 1, zxid, time }, txn, sink)
}

const create = (path: string, parentCVersion: number, data = '', ephemeral = false): Txn =>
  createOf(path, { parentCVersion, data: bytes(data), ephemeral })

function visible(tree: Tree, path: string): ReturnType<typeof readStat> {
  const writer = new Writer()
  tree.writeStat(tree.find(path), writer)
  return readStat(new Reader(writer.bytes()))
}

describe('the digest of a tree', () => {
  it('equals that of Apache ZooKeeper after each transaction of a recorded history', ({ tree }) => {
    const value = (): bigint => BigInt.asIntN(64, (BigInt(tree.digest!.hi) << 32n) | BigInt(tree.digest!.lo))
    expect(value()).toBe(0x51c6d660n)
    apply(tree, 0x100000002, 0x1a1fb44a73e, create('/a', 1, 'hello'))
    expect(value()).toBe(0x152415ba6n)
    apply(tree, 0x100000003, 0x1a1fb44a9ad, create('/a/e', 1, 'x', true))
    expect(value()).toBe(0x1cd42bef9n)
    apply(tree, 0x100000004, 0x1a1fb44a9b6, {
      type: OpCode.setData,
      path: '/a',
      data: bytes('world'),
      version: 1,
    })
    expect(value()).toBe(0x211a3dbbdn)
    apply(tree, 0x100000005, 0x1a1fb44a9bd, { type: OpCode.error, err: -101 })
    expect(value()).toBe(0x211a3dbbdn)
    apply(tree, 0x100000006, 0x1a1fb44aa00, { type: OpCode.closeSession, paths2Delete: ['/a/e'] })
    expect(value()).toBe(0x1a0a47f30n)
  })
})

describe('a new tree', () => {
  it('has the stats of a new Apache server', ({ tree }) => {
    expect(visible(tree, '/')).toMatchObject({ cversion: -1, numChildren: 1, czxid: 0n })
    expect(visible(tree, '/zookeeper')).toMatchObject({ cversion: -2, numChildren: 2 })
    expect(visible(tree, '/zookeeper/quota')).toMatchObject({ cversion: 0, numChildren: 0 })
    expect(visible(tree, '/zookeeper/config')).toMatchObject({ aversion: -1 })
  })

  it('finds the root by the empty path too', ({ tree }) => {
    expect(tree.find('')).toBe(tree.find('/'))
  })
})

describe('create and delete', () => {
  it('each increase the visible cversion of the parent by one, and set its pzxid', ({ tree }) => {
    const before = visible(tree, '/').cversion
    apply(tree, 1, 10, create('/a', 1))
    expect(visible(tree, '/')).toMatchObject({ cversion: before + 1, pzxid: 1n, numChildren: 2 })
    apply(tree, 2, 20, { type: OpCode.delete, path: '/a' })
    expect(visible(tree, '/')).toMatchObject({ cversion: before + 2, pzxid: 2n, numChildren: 1 })
  })

  it('a stat has the owner of an ephemeral, and 0 for containers and TTL nodes', ({ tree }) => {
    apply(tree, 1, 10, create('/e', 2, '', true))
    const given = { data: null, acl: OPEN_ACL_UNSAFE }
    apply(tree, 2, 10, { type: OpCode.createContainer, path: '/c', ...given, parentCVersion: 3 })
    apply(tree, 3, 10, { type: OpCode.createTTL, path: '/t', ...given, parentCVersion: 4, ttl: 5 })
    expect(visible(tree, '/e').ephemeralOwner).toBe(SESSION)
    expect(visible(tree, '/c').ephemeralOwner).toBe(0n)
    expect(visible(tree, '/t').ephemeralOwner).toBe(0n)
    expect([...tree.owners.containers].map((node) => tree.pathOf(node))).toEqual(['/c'])
    expect([...tree.owners.ttl].map((node) => tree.pathOf(node))).toEqual(['/t'])
  })

  it('applying a create again changes nothing', ({ tree }) => {
    apply(tree, 1, 10, create('/a', 2))
    const digest = tree.digest
    expect(apply(tree, 1, 10, create('/a', 2))).toBe(-110)
    expect(tree.digest).toEqual(digest)
  })

  it('applying an older create does not lower the cversion of the parent', ({ tree }) => {
    apply(tree, 2, 10, create('/b', 9))
    apply(tree, 1, 10, create('/a', 3))
    expect(tree.statOf(tree.find('/')).cversion).toBe(9)
  })

  it('children are in the order of their creation', ({ tree }) => {
    for (const [i, name] of ['c', 'a', 'b'].entries()) apply(tree, i + 1, 10, create(`/${name}`, i + 2))
    apply(tree, 9, 10, { type: OpCode.delete, path: '/a' })
    expect(childPaths(tree, tree.find('/')).map(nameOf)).toEqual(['zookeeper', 'c', 'b'])
  })
})

describe('a multi', () => {
  it('changes nothing when a part has failed', ({ tree }) => {
    apply(tree, 1, 10, {
      type: OpCode.multi,
      txns: [create('/a', 2) as never, { type: OpCode.error, err: -101 }],
    })
    expect(tree.has('/a')).toBe(false)
    expect(tree.lastZxid).toBe(1)
  })

  it('calls back after each part, before it applies the next one', ({ tree }) => {
    const seen: boolean[] = []
    tree.apply(
      { sessionId: 1n, cxid: 1, zxid: 1, time: 1 },
      { type: OpCode.multi, txns: [create('/a', 2) as never, { type: OpCode.delete, path: '/a' }] },
      undefined,
      () => seen.push(tree.has('/a')),
    )
    expect(seen).toEqual([true, false])
  })
})

describe('quotas', () => {
  it('count the subtree when the stats node is created, and follow its changes', ({ tree }) => {
    const stats = (): string =>
      new TextDecoder().decode(tree.dataOf(tree.find('/zookeeper/quota/a/zookeeper_stats'))!)
    apply(tree, 1, 1, create('/a', 2, '12345'))
    apply(tree, 2, 1, create('/zookeeper/quota/a', 1))
    apply(tree, 3, 1, create('/zookeeper/quota/a/zookeeper_limits', 1, 'count=5,bytes=100'))
    apply(tree, 4, 1, create('/zookeeper/quota/a/zookeeper_stats', 2, 'count=0,bytes=0'))
    expect(stats()).toBe('count=1,bytes=5')
    apply(tree, 5, 1, create('/a/b', 1, '123'))
    expect(stats()).toBe('count=2,bytes=8')
    apply(tree, 6, 1, { type: OpCode.setData, path: '/a/b', data: bytes('1'), version: 1 })
    expect(stats()).toBe('count=2,bytes=6')
    apply(tree, 7, 1, { type: OpCode.delete, path: '/a/b' })
    expect(stats()).toBe('count=1,bytes=5')
  })

  it.each([
    ['something else', 'garbage'],
    ['too long a number', `count=1,bytes=${'5'.repeat(2000)}`],
  ])(
    'continue from the last usage, without counting the subtree again, after a client has overwritten it with %s',
    (_what, garbage) => {
      const tree = new Tree(options)
      const stats = '/zookeeper/quota/a/zookeeper_stats'
      apply(tree, 1, 1, create('/a', 2))
      apply(tree, 2, 1, create('/zookeeper/quota/a', 1))
      apply(tree, 3, 1, create('/zookeeper/quota/a/zookeeper_limits', 1, 'count=5'))
      apply(tree, 4, 1, create(stats, 2))
      apply(tree, 5, 1, { type: OpCode.setData, path: stats, data: bytes(garbage), version: 1 })
      const visit = vi.spyOn(tree.store, 'successor')
      apply(tree, 6, 1, create('/a/b', 1, '123'))
      expect(new TextDecoder().decode(tree.dataOf(tree.find(stats))!)).toBe('count=2,bytes=3')
      expect(visit).not.toHaveBeenCalled()
    },
  )

  it('are counted in several turns where a node of any kind is created as the stats node of a large tree', () => {
    const tree = new Tree(options)
    for (let i = 0; i <= 10_000; i++) apply(tree, i + 1, 1, create(`/n${i}`, i + 2))
    const node = create('/zookeeper/quota/a/zookeeper_stats', 1) as CreateTxn
    const { path, data, acl, parentCVersion } = node
    for (const txn of [
      node,
      { type: OpCode.createContainer, path, data, acl, parentCVersion },
      { type: OpCode.createTTL, path, data, acl, parentCVersion, ttl: 1 },
    ] as const)
      expect(appliesInSteps(tree, txn)).toBe(true)
  })
})

describe('a cursor', () => {
  it('visits parents before children while nodes are created and deleted', ({ tree }) => {
    let zxid = 0
    for (let i = 0; i < 50; i++) apply(tree, ++zxid, 1, create(`/n${i}`, i + 2))
    for (let i = 0; i < 50; i++) apply(tree, ++zxid, 1, create(`/n${i}/x`, 1))
    const cursor = tree.scan()
    const seen: string[] = []
    for (let step = 0, more = true; more; step++) {
      more = cursor.next(3, (node) => seen.push(tree.pathOf(node)))
      if (step < 45) {
        apply(tree, ++zxid, 1, { type: OpCode.delete, path: `/n${49 - step}/x` })
        apply(tree, ++zxid, 1, { type: OpCode.delete, path: `/n${49 - step}` })
      }
    }
    cursor.close()
    expect(seen[0]).toBe('/')
    for (const path of seen) {
      if (path !== '/')
        expect(seen.indexOf(path.slice(0, path.lastIndexOf('/')) || '/')).toBeLessThan(seen.indexOf(path))
    }
    expect(new Set(seen).size).toBe(seen.length)
  })
})

describe('a transaction', () => {
  const READ = [{ perms: 3, id: { scheme: 'world', id: 'anyone' } }]
  const OTHER = [{ perms: 31, id: { scheme: 'digest', id: 'ann:x' } }]
  const missing = -101

  /** Returns what a sink receives. */
  function recorded(): { events: unknown[]; sink: ChangeSink } {
    const events: unknown[] = []
    return {
      events,
      sink: {
        created: (...all) => events.push(['created', ...all]),
        deleted: (...all) => events.push(['deleted', ...all]),
        dataChanged: (...all) => events.push(['changed', ...all]),
      },
    }
  }

  it('passes what it has changed to its sink, with the lists of the node and of its parent', ({ tree }) => {
    const { events, sink } = recorded()
    apply(tree, 1, 1, createOf('/a', { acl: OTHER }), sink)
    apply(tree, 2, 1, createOf('/a/b', { acl: READ }), sink)
    apply(tree, 3, 1, { type: OpCode.setData, path: '/a/b', data: null, version: 1 }, sink)
    apply(tree, 4, 1, { type: OpCode.setACL, path: '/a/b', acl: OTHER, version: 1 }, sink)
    apply(tree, 5, 1, { type: OpCode.delete, path: '/a/b' }, sink)
    expect(events).toEqual([
      ['created', '/a', OTHER, '/', OPEN_ACL_UNSAFE],
      ['created', '/a/b', READ, '/a', OTHER],
      ['changed', '/a/b', READ],
      ['deleted', '/a/b', OTHER, '/a', OTHER],
    ])
    expect(tree.acls.entries().map(([, list]) => list)).not.toContainEqual(READ)
  })

  it('for a node or a parent that is missing, or was created later, changes nothing', ({ tree }) => {
    apply(tree, 1, 1, create('/p', 2))
    apply(tree, 9, 1, create('/p/late', 1, 'data'))
    apply(tree, 9, 1, create('/p/late/x', 1))
    const { events, sink } = recorded()
    const before = { digest: tree.digest, stat: tree.statOf(tree.find('/p/late')) }
    const txns = (path: string): Txn[] => [
      { type: OpCode.setData, path, data: bytes('new'), version: 3 },
      { type: OpCode.reconfig, path, data: bytes('new'), version: 3 },
      { type: OpCode.setACL, path, acl: READ, version: 3 },
      create(`${path}/x`, 5),
    ]
    for (const path of ['/none', '/p/late'])
      for (const txn of txns(path)) expect(apply(tree, 5, 1, txn, sink)).toBe(missing)
    expect(apply(tree, 5, 1, { type: OpCode.delete, path: '/none/x' }, sink)).toBe(missing)
    expect({ digest: tree.digest, stat: tree.statOf(tree.find('/p/late')) }).toEqual(before)
    // The parent counts that a child was removed, also where it is gone or not there yet.
    expect(apply(tree, 11, 1, { type: OpCode.delete, path: '/p/none' }, sink)).toBe(missing)
    expect(tree.statOf(tree.find('/p'))).toMatchObject({ pzxid: 11, cversion: 1 })
    expect(apply(tree, 8, 1, { type: OpCode.delete, path: '/p/late' }, sink)).toBe(missing)
    expect(tree.statOf(tree.find('/p')).pzxid).toBe(11)
    expect(events).toEqual([])
    expect(tree.has('/p/late/x')).toBe(true)
  })

  it('that creates a node again sets its list, unless the node was created later', ({ tree }) => {
    apply(tree, 5, 1, createOf('/a', { acl: READ, data: bytes('kept') }))
    const acl = (): unknown => tree.aclOf(tree.find('/a'))
    expect(apply(tree, 4, 1, createOf('/a', { acl: OTHER }))).toBe(-110)
    expect(acl()).toEqual(READ)
    expect(apply(tree, 5, 1, createOf('/a', { acl: OTHER }))).toBe(-110)
    expect(acl()).toEqual(OTHER)
    expect(tree.dataOf(tree.find('/a'))).toEqual(bytes('kept'))
    expect(tree.acls.entries()).toHaveLength(2)
  })

  it('sets the numbers of its kind alone', ({ tree }) => {
    apply(tree, 1, 10, create('/a', 2, 'one'))
    const stat = { czxid: 1, ctime: 10, pzxid: 1, cversion: 0, owner: 0n }
    apply(tree, 2, 20, { type: OpCode.setData, path: '/a', data: bytes('longer'), version: 7 })
    expect(tree.statOf(tree.find('/a'))).toEqual({ ...stat, mzxid: 2, mtime: 20, version: 7, aversion: 0 })
    apply(tree, 3, 30, { type: OpCode.setACL, path: '/a', acl: READ, version: 4 })
    expect(tree.statOf(tree.find('/a'))).toEqual({ ...stat, mzxid: 2, mtime: 20, version: 7, aversion: 4 })
    expect(tree.statOf(tree.find('/')).cversion).toBe(2)
  })

  it('counts a child of a parent whose cversion it does not say', ({ tree }) => {
    const top = (): number => tree.statOf(tree.find('/')).cversion
    const before = top()
    apply(tree, 1, 1, create('/a', -1))
    expect(top()).toBe(before + 1)
    tree.store.columns(tree.find('/')).cversion[tree.store.slot(tree.find('/'))] = 2 ** 31 - 1
    apply(tree, 2, 1, create('/b', -1))
    expect(top()).toBe(2 ** 31 - 1)
  })

  it('that is older, or counts as many children, leaves the parent as it is', ({ tree }) => {
    apply(tree, 5, 1, create('/a', 5))
    apply(tree, 4, 1, create('/b', 5))
    expect(tree.statOf(tree.find('/'))).toMatchObject({ cversion: 5, pzxid: 5 })
    apply(tree, 5, 1, { type: OpCode.delete, path: '/b' })
    apply(tree, 3, 1, { type: OpCode.delete, path: '/none' })
    expect(tree.statOf(tree.find('/')).pzxid).toBe(5)
  })

  it('tells its hint where the node is that it creates', ({ tree }) => {
    const parent = { path: '/', hash: tree.store.hash('/'), index: tree.find('/'), parent: undefined }
    const node = { path: '/a', hash: tree.store.hash('/a'), index: -1, parent }
    const header = { sessionId: SESSION, cxid: 1, zxid: 1, time: 1 }
    expect(tree.apply(header, create('/a', 2), undefined, undefined, { node, crc: 0 })).toBe(0)
    expect(node.index).toBe(tree.find('/a'))
  })

  it('of other kinds returns its error, or none', ({ tree }) => {
    expect(apply(tree, 1, 1, { type: OpCode.error, err: -7 })).toBe(-7)
    expect(apply(tree, 2, 1, { type: OpCode.createSession, timeOut: 5 })).toBe(0)
    expect(apply(tree, 3, 1, { type: OpCode.check, path: '/none', version: 5 } as Txn)).toBe(0)
    expect([tree.lastZxid, tree.nodeCount]).toEqual([3, 4])
  })

  it('that deletes a node removes what a fuzzy snapshot holds below it', ({ tree }) => {
    const before = [tree.nodeCount, tree.acls.size, tree.approximateDataSize]
    apply(tree, 1, 1, create('/b', 2))
    // The snapshot was written while /b was deleted (3), and created again with all that is below it.
    for (const [i, path] of ['/b/x', '/b/x/p', '/b/x/q', '/b/y'].entries())
      apply(tree, 5 + i, 1, createOf(path, { data: bytes(path), acl: READ_ACL_UNSAFE, ephemeral: i === 3 }))
    const removed: string[] = []
    const end = tree.addTraversal({
      added() {},
      removing: (node) => removed.push(`${tree.pathOf(node)} ${tree.childCount(node)}`),
      applied() {},
    })
    expect(apply(tree, 3, 1, { type: OpCode.delete, path: '/b' })).toBe(0)
    end()
    expect(removed).toEqual(['/b/x/p 0', '/b/x/q 0', '/b/x 0', '/b/y 0', '/b 0'])
    expect([tree.nodeCount, tree.acls.size, tree.approximateDataSize]).toEqual(before)
    expect([tree.owners.sessionCount, tree.digest]).toEqual([0, plainDigest(tree)])
  })

  it('is refused where it deletes a node that has an older child', ({ tree }) => {
    apply(tree, 1, 1, create('/a', 2))
    apply(tree, 2, 1, create('/a/b', 1))
    expect(() => apply(tree, 3, 1, { type: OpCode.delete, path: '/a' })).toThrow(
      'A znode with children is never deleted.',
    )
  })

  it('never deletes the root', ({ tree }) => {
    expect(apply(tree, 1, 1, { type: OpCode.delete, path: '/' })).toBe(ErrorCode.NONODE)
    expect(tree.nodeCount).toBe(4)
  })

  it('is passed to traversals once, while they want it, and only where its zxid is new', ({ tree }) => {
    const seen: unknown[] = []
    const end = tree.addTraversal({
      added: (node, path) => seen.push(['added', tree.pathOf(node), path]),
      removing: (node) => seen.push(['removing', tree.pathOf(node)]),
      applied: (zxid) => seen.push(['applied', zxid, tree.lastZxid]),
    })
    apply(tree, 5, 1, create('/a', 2))
    apply(tree, 5, 1, create('/b', 3))
    apply(tree, 4, 1, { type: OpCode.error, err: -1 })
    apply(tree, 6, 1, { type: OpCode.delete, path: '/a' })
    end()
    apply(tree, 7, 1, create('/c', 4))
    expect(seen).toEqual([
      ['added', '/a', '/a'],
      ['applied', 5, 5],
      ['added', '/b', '/b'],
      ['removing', '/a'],
      ['applied', 6, 6],
    ])
  })

  it('counts as traffic of clients where a sink receives it', () => {
    const traffic = new NamespaceTraffic()
    const tree = new Tree({ ...options, traffic })
    const written = (): number => traffic.measured.reduce((sum, { written: one }) => sum + one.totalSum, 0)
    const { sink } = recorded()
    const sums = [undefined, sink].flatMap((to, round) =>
      [
        create('/a', round * 9 + 2, '12345'),
        createOf('/a/n'),
        { type: OpCode.setData, path: '/a', data: bytes('123'), version: 1 } as const,
        { type: OpCode.setData, path: '/a', data: null, version: 1 } as const,
        { type: OpCode.delete, path: '/a/n' } as const,
        { type: OpCode.delete, path: '/a' } as const,
      ].map((txn, at) => {
        expect(apply(tree, round * 9 + at + 1, 1, txn, to)).toBe(0)
        return written()
      }),
    )
    expect(sums).toEqual([0, 0, 0, 0, 0, 0, 7, 11, 16, 18, 22, 24])
  })
})

describe('a tree', () => {
  it('is consistent again at the end of an incremental apply, and then runs what waits', ({ tree }) => {
    const ran: unknown[] = []
    tree.whenConsistent(() => ran.push('at once'))
    expect([ran, tree.isApplying]).toEqual([['at once'], false])
    tree.beginApply()
    for (const name of ['one', 'two'])
      tree.whenConsistent(() => {
        ran.push([name, tree.isApplying, tree.lastZxid])
        tree.whenConsistent(() => ran.push(`within ${name}`))
      })
    expect([ran.length, tree.isApplying]).toEqual([1, true])
    tree.endApply(8)
    const all = ['at once', ['one', false, 8], 'within one', ['two', false, 8], 'within two']
    expect(ran).toEqual(all)
    tree.beginApply()
    tree.endApply(9)
    expect(ran).toEqual(all)
  })

  it('finds the node that was written last without a lookup, and others with one', ({ tree }) => {
    const find = tree.store.find.bind(tree.store)
    let lookups = 0
    tree.store.find = (path, hash) => (lookups++, find(path, hash))
    const looked = (path: string): [number, number] => {
      lookups = 0
      return [tree.findWritten(path), lookups]
    }
    expect(looked('/')).toEqual([find('/'), 1])
    apply(tree, 1, 1, create('/a', 2))
    apply(tree, 2, 1, create('/b', 3))
    apply(tree, 3, 1, { type: OpCode.setData, path: '/b', data: null, version: 1 })
    const [a, b] = [tree.find('/a'), tree.find('/b')]
    expect([looked('/b'), looked('/a')]).toEqual([
      [b, 0],
      [a, 1],
    ])
    apply(tree, 4, 1, { type: OpCode.delete, path: '/b' })
    expect(looked('/b')).toEqual([-1, 1])
    apply(tree, 5, 1, create('/c', 5))
    expect([looked('/b'), looked('/c')]).toEqual([
      [-1, 1],
      [b, 0],
    ])
  })

  it('knows the version of the node that was deleted last, and the size of all nodes', ({ tree }) => {
    const size = tree.approximateDataSize
    expect(size).toBe(['/', '/zookeeper', '/zookeeper/quota', '/zookeeper/config'].join('').length)
    apply(tree, 1, 1, create('/a', 2, '12345'))
    apply(tree, 2, 1, { type: OpCode.setData, path: '/a', data: bytes('123'), version: 6 })
    expect([tree.approximateDataSize, tree.nodeCount]).toEqual([size + 2 + 3, 5])
    apply(tree, 3, 1, { type: OpCode.delete, path: '/a' })
    expect([tree.deletedVersion, tree.approximateDataSize, tree.nodeCount]).toEqual([6, size, 4])
  })

  it('writes data with their length, and the stored fields with any owner', ({ tree }) => {
    const { acl } = createOf('/')
    apply(tree, 1, 1, { type: OpCode.createContainer, path: '/c', data: null, acl, parentCVersion: 2 })
    apply(tree, 2, 1, create('/d', 3, 'data'))
    apply(tree, 3, 1, create('/d/e', 1, '', true))
    const written = (path: string): unknown[] => {
      const writer = new Writer()
      tree.writeData(tree.find(path), writer)
      tree.writeStored(tree.find(path), writer)
      const reader = new Reader(writer.take())
      const data = reader.buffer()
      return [data && new TextDecoder().decode(data), reader.bytes.length, reader.longNumber()]
    }
    const list = tree.aclIdOf(tree.find('/c'))
    expect(['/c', '/d', '/d/e'].map(written)).toEqual([
      [null, 72, list],
      ['data', 76, list],
      ['', 72, list],
    ])
    expect(tree.statOf(tree.find('/c')).owner).toBe(CONTAINER_OWNER)
  })

  it('without digests has none, and is the same otherwise', () => {
    const [plain, counted] = [false, true].map((digest) => new Tree({ ...options, digest }))
    const txns = [
      create('/a', 2),
      create('/a/b', 1, 'x', true),
      { type: OpCode.delete, path: '/a/b' } as const,
    ]
    for (const tree of [plain!, counted!]) {
      for (const [at, txn] of txns.entries()) expect(apply(tree, at + 1, 1, txn)).toBe(0)
      apply(tree, 9, 1, { type: OpCode.setData, path: '/a', data: bytes('y'), version: 1 })
    }
    expect([plain!.digest, counted!.digest === undefined]).toEqual([undefined, false])
    const columns = (tree: Tree, name: 'crc' | 'pathCrc' | 'nodeDigest'): number[] =>
      ['/', '/a', '/zookeeper'].map((path) => {
        const node = tree.find(path)
        return tree.store.columns(node)[name][tree.store.slot(node)]!
      })
    for (const name of ['crc', 'pathCrc', 'nodeDigest'] as const)
      expect(columns(plain!, name)).toEqual([0, 0, 0])
    expect(visible(plain!, '/a')).toEqual(visible(counted!, '/a'))
  })
})

describe('a tree that is loaded from a snapshot', () => {
  const stat = {
    czxid: 3,
    mzxid: 4,
    pzxid: 5,
    ctime: 6,
    mtime: 7,
    version: 1,
    cversion: 2,
    aversion: 8,
    owner: 0n,
  }
  const READ = [{ perms: 1, id: { scheme: 'world', id: 'anyone' } }]

  function emptied(digest = true): Tree {
    const tree = new Tree({ ...options, digest })
    tree.clear()
    return tree
  }

  it('is empty at first but for its root, with no list in use', () => {
    for (const digest of [true, false]) {
      const tree = emptied(digest)
      expect([tree.nodeCount, tree.has('/'), tree.find('/zookeeper')]).toEqual([1, true, -1])
      expect(tree.acls.entries()).toEqual([])
      expect(tree.digest === undefined).toBe(!digest)
      if (digest) expect(tree.digest).toEqual(plainDigest(tree))
    }
  })

  it('has the fields of each node, the later ones where a node comes twice', () => {
    for (const digest of [true, false]) {
      const tree = emptied(digest)
      tree.acls.load(3, READ)
      expect(tree.loadNode('', bytes('root'), -1, stat)).toBe(true)
      expect(tree.loadNode('/a', bytes('first'), 3, { ...stat, owner: 9n })).toBe(true)
      expect(tree.loadNode('/a/b', null, 3, { ...stat, owner: 9n })).toBe(true)
      expect(tree.loadNode('/a', null, -1, { ...stat, version: 9 })).toBe(true)
      expect(tree.loadNode('/none/x', null, -1, stat)).toBe(false)
      tree.endLoad(77)
      expect(tree.lastZxid).toBe(77)
      const [root, a, b] = ['/', '/a', '/a/b'].map((path) => tree.find(path))
      expect([tree.statOf(root!), tree.statOf(a!), tree.statOf(b!)]).toEqual([
        stat,
        { ...stat, version: 9 },
        { ...stat, owner: 9n },
      ])
      expect([tree.dataOf(root!), tree.dataOf(a!), tree.dataOf(b!)]).toEqual([bytes('root'), null, null])
      expect([tree.aclOf(a!), tree.aclOf(b!)]).toEqual([OPEN_ACL_UNSAFE, READ])
      expect([[...tree.owners.ofSession(9n)], tree.owners.ephemeralCount]).toEqual([[b], 1])
      const { crc, pathCrc } = tree.store.columns(a!)
      expect([crc, pathCrc].map((column) => column[tree.store.slot(a!)] === 0)).toEqual([!digest, !digest])
      if (digest) expect(tree.digest).toEqual(plainDigest(tree))
    }
  })

  it('gets the nodes of the system that the snapshot lacks, and keeps those that it has', () => {
    const tree = emptied()
    tree.loadNode('', null, -1, stat)
    tree.endLoad(1)
    expect(childPaths(tree, tree.find('/'))).toEqual(['/zookeeper'])
    expect(childPaths(tree, tree.find('/zookeeper'))).toEqual(['/zookeeper/quota', '/zookeeper/config'])
    const lists = (of: Tree): unknown[] =>
      ['/zookeeper', '/zookeeper/quota', '/zookeeper/config'].map((path) => of.aclOf(of.find(path)))
    expect(lists(tree)).toEqual([OPEN_ACL_UNSAFE, OPEN_ACL_UNSAFE, READ])
    const kept = emptied()
    kept.acls.load(3, READ)
    kept.loadNode('', null, -1, stat)
    for (const path of ['/zookeeper', '/zookeeper/quota', '/zookeeper/config'])
      kept.loadNode(path, bytes('kept'), 3, stat)
    kept.endLoad(1)
    expect(lists(kept)).toEqual([READ, READ, READ])
    expect(kept.dataOf(kept.find('/zookeeper/config'))).toEqual(bytes('kept'))
  })

  it('drops lists that no node uses, and takes the open one where a list is unknown', () => {
    const tree = emptied()
    tree.acls.load(3, READ)
    tree.acls.load(4, [{ perms: 2, id: { scheme: 'world', id: 'anyone' } }])
    tree.loadNode('', null, -1, stat)
    tree.loadNode('/a', null, 3, stat)
    tree.loadNode('/b', null, 99, stat)
    tree.endLoad(1)
    expect(tree.acls.entries().map(([id]) => id)).toEqual([3])
    expect(tree.aclOf(tree.find('/b'))).toEqual(OPEN_ACL_UNSAFE)
  })

  it('has the quotas of the snapshot, counted again', () => {
    const tree = emptied()
    const quota = '/zookeeper/quota/a'
    for (const [path, data] of [
      ['', ''],
      ['/a', '12345'],
      ['/zookeeper', ''],
      ['/zookeeper/quota', ''],
      [quota, ''],
      [`${quota}/zookeeper_limits`, 'count=5,bytes=100'],
      [`${quota}/zookeeper_stats`, 'count=9,bytes=9'],
    ] as const)
      tree.loadNode(path, bytes(data), -1, stat)
    tree.endLoad(1)
    const stats = tree.dataOf(tree.find(`${quota}/zookeeper_stats`))!
    expect(new TextDecoder().decode(stats)).toBe('count=1,bytes=5')
    apply(tree, 9, 1, create('/a/b', 3, '1'))
    const after = tree.dataOf(tree.find(`${quota}/zookeeper_stats`))!
    expect(new TextDecoder().decode(after)).toBe('count=2,bytes=6')
  })
})

describe('a cursor over a subtree', () => {
  it('visits what is there from its begin to its end once, parents first, whatever changes meanwhile', () => {
    for (let seed = 1; seed <= 12; seed++) {
      const random = new SeededRandom(seed)
      const tree = new Tree(options)
      const living = new Set(['/top'])
      let zxid = 0
      apply(tree, ++zxid, 1, create('/top', 2))
      const change = (): void => {
        const path = `/top${Array.from({ length: 1 + random.below(3) }, () => `/${random.below(3)}`).join('')}`
        const hasChildren = [...living].some((one) => one.startsWith(`${path}/`))
        if (living.has(path) && !hasChildren) {
          living.delete(path)
          apply(tree, ++zxid, 1, { type: OpCode.delete, path })
        } else if (!living.has(path) && living.has(path.slice(0, path.lastIndexOf('/')))) {
          living.add(path)
          apply(tree, ++zxid, 1, create(path, zxid))
        }
      }
      for (let i = 0; i < 60; i++) change()
      const cursor = tree.scan(tree.find('/top'))
      expect([cursor.isFinished, cursor.lastZxid]).toEqual([false, zxid])
      const throughout = new Set(living)
      const seen: string[] = []
      for (let more = true; more;) {
        const limit = 1 + random.below(4)
        const before = seen.length
        more = cursor.next(limit, (node) => seen.push(tree.pathOf(node)))
        if (more) expect(seen.length - before).toBe(limit)
        expect(seen.length - before).toBeLessThanOrEqual(limit)
        expect(cursor.isFinished).toBe(!more)
        for (let i = random.below(3); i > 0; i--) change()
        for (const path of throughout) if (!living.has(path)) throughout.delete(path)
        expect(cursor.lastZxid).toBe(zxid)
      }
      expect(seen[0]).toBe('/top')
      expect(new Set(seen).size).toBe(seen.length)
      for (const path of throughout) expect(seen).toContain(path)
      for (const [at, path] of seen.entries())
        if (at > 0) expect(seen.slice(0, at)).toContain(path.slice(0, path.lastIndexOf('/')))
      expect(cursor.next(5, () => expect.fail('visited a node behind the end'))).toBe(false)
      const last = zxid
      cursor.close()
      for (let i = 0; i < 5; i++) change()
      apply(tree, ++zxid, 1, { type: OpCode.error, err: -1 })
      expect(cursor.lastZxid).toBe(last)
    }
  })
})
