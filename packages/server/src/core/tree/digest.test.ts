import { CONTAINER_OWNER, OPEN_ACL_UNSAFE, OpCode } from '@zabra/protocol'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createOf } from '../testing/create-of.ts'
import { PreparerFixture, type RequestSpec } from '../prepare/testing/preparer-fixture.ts'
import { plainDigest, plainNodeDigest } from '../testing/plain-digest.ts'
import type { StoredStat, SubTxn } from '../types.ts'
import { crcPrefix, pathCrc, statDigest, updateStatDigest, type StatFields } from './digest.ts'
import { Tree } from './tree.ts'

const name = fc.constantFrom('a', 'b', 'é', 'zookeeper', '名')
const path = fc.array(name, { minLength: 1, maxLength: 3 }).map((names) => `/${names.join('/')}`)
const data = fc.option(fc.string({ maxLength: 40 }), { nil: undefined })
const ask: fc.Arbitrary<RequestSpec> = fc.oneof(
  fc.record({ op: fc.constantFrom('create', 'create2', 'createContainer'), path, data }),
  fc.record({ op: fc.constant('create' as const), path, data, flags: fc.constantFrom(1, 2, 3) }),
  fc.record({ op: fc.constant('setData' as const), path, data }),
  fc.record({ op: fc.constant('setACL' as const), path }),
  fc.record({ op: fc.constant('delete' as const), path }),
) as fc.Arbitrary<RequestSpec>

describe('the digest of a prepared tree', () => {
  it('equals the sum over all nodes and the digest predicted by the preparer, in random histories', () => {
    const step = fc.oneof({ weight: 4, arbitrary: ask }, fc.array(ask, { minLength: 1, maxLength: 4 }))
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const bench = new PreparerFixture()
        for (const each of steps) {
          bench.apply(each)
          expect(bench.tree.digest).toEqual(plainDigest(bench.tree))
          if (bench.digest !== undefined) expect(bench.tree.digest).toEqual(bench.digest)
        }
      }),
      { seed: 7, numRuns: 150 },
    )
  })

  it('stays correct when a node is created again with the same parent cversion', () => {
    const tree = new Tree({ digest: true, extendedTypes: false })
    const txns = [
      createOf('/a', { parentCVersion: 1 }),
      createOf('/a/b', { parentCVersion: 5 }),
      { type: OpCode.delete, path: '/a/b' },
      createOf('/a/b', { parentCVersion: 5 }),
    ] as const
    for (const [at, txn] of txns.entries()) {
      tree.apply({ sessionId: 1n, cxid: 0, zxid: at + 1, time: at * 1000 }, txn)
      expect(tree.digest).toEqual(plainDigest(tree))
    }
  })

  it('equals the sum over all nodes after loading a snapshot with repeated nodes', () => {
    const stat = { czxid: 3, mzxid: 4, pzxid: 5, ctime: 6, mtime: 7, version: 1, cversion: 2, aversion: 0 }
    const tree = new Tree({ digest: true, extendedTypes: false })
    tree.clear()
    const text = new TextEncoder().encode('text')
    for (const [at, mzxid] of [
      ['', 0],
      ['/é', 1],
      ['/é/b', 2],
      ['/é', 9],
    ] as const)
      tree.loadNode(at, text, -1, { ...stat, mzxid, owner: at === '/é/b' ? 77n : 0n })
    tree.endLoad(9)
    expect(tree.digest).toEqual(plainDigest(tree))
  })
})

const int = fc.oneof(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }), fc.nat(3))
const long = fc.oneof(fc.integer({ min: -(2 ** 53) + 1, max: 2 ** 53 - 1 }), fc.nat(3))
const owner = fc.oneof(fc.constant(0n), fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }))
const bytes = fc.option(fc.uint8Array())

describe('the digest of a tree without a preparer', () => {
  const some = fc.constantFrom('/a', '/a/b', '/a/é', '/zookeeper/q')
  const acl = OPEN_ACL_UNSAFE
  const session = fc.constantFrom(0n, 7n, BigInt.asIntN(64, 0xfe00000000000007n), CONTAINER_OWNER)
  const txn: fc.Arbitrary<SubTxn> = fc.oneof(
    fc.record({
      type: fc.constant(OpCode.create),
      path: some,
      data: bytes,
      acl: fc.constant(acl),
      ephemeral: fc.boolean(),
      parentCVersion: fc.oneof(int, fc.constant(-1)),
    }),
    fc.record({ type: fc.constant(OpCode.setData), path: some, data: bytes, version: int }),
    fc.record({ type: fc.constant(OpCode.setACL), path: some, acl: fc.constant(acl), version: int }),
    fc.record({ type: fc.constant(OpCode.delete), path: fc.constantFrom('/a/b', '/a/é', '/zookeeper/q') }),
  )
  const step = fc.record({
    zxid: fc.oneof(fc.nat(20), fc.nat(2 ** 53 - 1)),
    time: long,
    sessionId: session,
    txn: fc.oneof(
      { weight: 3, arbitrary: txn },
      fc.record({ type: fc.constant(OpCode.multi), txns: fc.array(txn, { maxLength: 4 }) }),
    ),
  })

  it('equals the sum over all nodes after any transactions, on a snapshot with repeated nodes too', () => {
    const node = fc.record({ path: some, data: bytes, stat: statOf(session), at: fc.nat(20) })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 20 }), fc.array(node, { maxLength: 2 }), (steps, nodes) => {
        const tree = new Tree({ digest: true, extendedTypes: true })
        for (const [at, { txn: each, ...header }] of steps.entries()) {
          for (const { path: loaded, data: held, stat } of nodes.filter((one) => one.at === at))
            tree.loadNode(loaded, held, -1, stat)
          tree.apply({ ...header, cxid: 0 }, each)
          expect(tree.digest).toEqual(plainDigest(tree))
        }
      }),
      { seed: 9, numRuns: 300 },
    )
  })
})

describe('the digest of a node', () => {
  const crcOf = (data: Uint8Array | null): number =>
    crcPrefix(pathCrc('/a/é', '/a', pathCrc('/a', '/', 0)), data)
  const numbersOf = (stat: StoredStat, data: Uint8Array | null): StatFields => ({
    ...stat,
    crcPrefix: crcOf(data),
  })

  const changes = fc.subarray([
    'mzxid' as const,
    'pzxid' as const,
    'mtime' as const,
    'version' as const,
    'cversion' as const,
    'aversion' as const,
  ])

  it('is the CRC-32 of its path, data and stat', () => {
    fc.assert(
      fc.property(statOf(owner), bytes, (stat, data) => {
        const computed = statDigest(numbersOf(stat, data), stat.czxid, stat.ctime, stat.owner)
        expect(computed).toBe(plainNodeDigest('/a/é', data, stat))
      }),
      { seed: 8, numRuns: 300 },
    )
  })

  it('is the CRC-32 of its path, data and stat after any change', () => {
    fc.assert(
      fc.property(
        statOf(owner),
        statOf(owner),
        bytes,
        bytes,
        changes,
        (was, other, before, after, changed) => {
          const now = { ...was }
          for (const key of changed) now[key] = other[key]
          const counted = plainNodeDigest('/a/é', before, was)
          const computed = updateStatDigest(counted, numbersOf(was, before), numbersOf(now, after))
          expect(computed).toBe(plainNodeDigest('/a/é', after, now))
        },
      ),
      { seed: 10, numRuns: 1000 },
    )
  })
})

function statOf(
  owner: fc.Arbitrary<bigint>,
): fc.Arbitrary<{ -readonly [key in keyof StoredStat]: StoredStat[key] }> {
  return fc.record({
    czxid: long,
    mzxid: long,
    pzxid: long,
    ctime: long,
    mtime: long,
    version: int,
    cversion: int,
    aversion: int,
    owner,
  })
}
