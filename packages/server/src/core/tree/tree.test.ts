import { nameOf, OPEN_ACL_UNSAFE, OpCode, Reader, readStat, Writer } from '@zabra/protocol'
import { describe, expect, test, vi } from 'vitest'
import { createOf } from '../testing/create-of.ts'
import type { CreateTxn, Txn } from '../types.ts'
import { childPaths } from '../testing/child-paths.ts'
import { appliesInSteps, Tree, type ChangeSink } from './index.ts'

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
