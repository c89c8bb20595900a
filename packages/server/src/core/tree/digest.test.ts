import { CONTAINER_OWNER, OPEN_ACL_UNSAFE, OpCode } from '@zabra/protocol'
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { createOf } from '../testing/create-of.ts'
import { PreparerFixture, type RequestSpec } from '../prepare/testing/preparer-fixture.ts'
import { plainDigest, plainNodeDigest } from '../testing/plain-digest.ts'
import type { Digest, StoredStat, SubTxn } from '../types.ts'
import {
  crcPrefix,
  DigestHistory,
  DigestSum,
  isExcludedFromDigest,
  pathCrc,
  sameDigest,
  StatFields,
  statDigest,
  updateStatDigest,
} from './digest.ts'
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

describe('the sum of what all nodes add', () => {
  const word = fc.oneof(fc.integer({ min: 0, max: 2 ** 32 - 1 }), fc.constantFrom(0, 1, 2 ** 31, 2 ** 32 - 1))
  const modulo = (sum: bigint): { hi: number; lo: number } => ({
    hi: Number(BigInt.asUintN(64, sum) >> 32n),
    lo: Number(sum & 0xffff_ffffn),
  })

  it('is modulo 2^64, in any order of additions and subtractions', () => {
    const step = fc.record({ adds: fc.boolean(), value: word })
    fc.assert(
      fc.property(word, word, fc.array(step, { maxLength: 40 }), (hi, lo, steps) => {
        const sum = new DigestSum()
        expect(sum.value()).toEqual({ hi: 0, lo: 0 })
        sum.set({ hi, lo })
        let expected = (BigInt(hi) << 32n) | BigInt(lo)
        for (const { adds, value } of steps) {
          if (adds) sum.add(value)
          else sum.subtract(value)
          expected += adds ? BigInt(value) : -BigInt(value)
          expect(sum.value()).toEqual(modulo(expected))
          expect([sum.hi, sum.lo]).toEqual([sum.value().hi, sum.value().lo])
        }
      }),
      { seed: 12, numRuns: 200 },
    )
    const edge = new DigestSum()
    edge.subtract(1)
    expect(edge.value()).toEqual({ hi: 2 ** 32 - 1, lo: 2 ** 32 - 1 })
    edge.add(1)
    expect(edge.value()).toEqual({ hi: 0, lo: 0 })
  })

  it('takes a changing node out until its change has ended', () => {
    const sum = new DigestSum()
    const [one, other] = [{}, {}]
    sum.add(1000)
    const was = sum.beginChange(one, 300)
    expect(sum.lo).toBe(700)
    Object.assign(was, { mzxid: 5, version: 2 })
    expect(sum.endChange(other)).toBe(false)
    // The change of `one` has ended, too: another node was changed in between.
    expect(sum.endChange(one)).toBe(false)
    sum.beginChange(one, 0)
    expect([sum.endChange(one), sum.endChange(one)]).toEqual([true, false])
    const now = Object.assign(new StatFields(), was, { version: 3 })
    expect(sum.updated(77, now)).toBe(updateStatDigest(77, was, now))
  })

  it('equals another one where both halves do', () => {
    const same = (hi: number, lo: number): boolean => sameDigest({ hi: 1, lo: 2 }, { hi, lo })
    expect([same(1, 2), same(1, 3), same(0, 2), same(2, 1)]).toEqual([true, false, false, false])
  })
})

describe('the digests of a tree', () => {
  it('match a digest from the log where both halves do', () => {
    const tree = new Tree({ digest: true, extendedTypes: true })
    const { hi, lo } = tree.digest!
    expect(tree.matches({ hi, lo })).toBe(true)
    expect([tree.matches({ hi: hi + 1, lo }), tree.matches({ hi, lo: lo + 1 })]).toEqual([false, false])
  })

  it('follow from the fields that a change has changed, without those that stay, such as the owner', () => {
    const tree = new Tree({ digest: true, extendedTypes: true })
    tree.apply({ sessionId: 7n, cxid: 0, zxid: 1, time: 1 }, createOf('/a', { ephemeral: true }))
    const of = vi.spyOn(tree.owners, 'of')
    tree.apply(
      { sessionId: 7n, cxid: 0, zxid: 2, time: 2 },
      { type: OpCode.setData, path: '/a', data: null, version: 1 },
    )
    expect(of).not.toHaveBeenCalled()
    of.mockRestore()
    expect(tree.digest).toEqual(plainDigest(tree))
  })

  it('are recorded after every 128th transaction, the last 1024 of them', () => {
    const tree: { digest: Digest | undefined } = { digest: { hi: 0, lo: 0 } }
    const history = new DigestHistory(tree)
    expect(history.entries).toEqual([])
    const first = 0x1_0000_0000
    for (let at = 0; at < 1030 * 128; at++) {
      tree.digest = { hi: 1, lo: at }
      history.record(first + at)
      if (at === 1024 * 128 - 1) expect(history.entries[0]!.zxid).toBe(first)
    }
    expect(history.entries).toHaveLength(1024)
    expect(history.entries.at(-1)).toEqual({ zxid: first + 1029 * 128, digest: { hi: 1, lo: 1029 * 128 } })
    expect(history.entries[0]).toEqual({ zxid: first + 6 * 128, digest: { hi: 1, lo: 6 * 128 } })
    tree.digest = undefined
    history.record(first + 1030 * 128)
    expect(history.entries.at(-1)!.zxid).toBe(first + 1029 * 128)
  })

  it('leave out what is below /zookeeper, and nothing else', () => {
    const excluded = ['/zookeeper/', '/zookeeper/quota/a']
    const counted = [
      '/',
      '/zookeeper',
      '/zookeeperx/a',
      '/a/zookeeper/',
      '/zebra',
      '/Zookeeper/a',
      'xzookeeper/',
    ]
    expect([...excluded, ...counted].filter(isExcludedFromDigest)).toEqual(excluded)
  })
})

it('the checksum of a long path is that of its characters, whatever was computed before', () => {
  const plain = (path: string): number => pathCrc(path, '/', 0)
  for (const length of [1023, 1024, 1025, 3000]) {
    const parent = `/${'p'.repeat(length - 10)}`
    const paths = ['child-', 'chil-d', 'other-', 'child-'].map((name) => `${parent}/${name.padEnd(9, 'x')}`)
    // `plain` computes it over the whole path: not what is remembered for the name alone.
    for (const path of [...paths, ...paths.toReversed()])
      expect(pathCrc(path, parent, plain(parent))).toBe(plain(path))
    // The caller decides what came before.
    expect(pathCrc(paths[0]!, parent, 5)).not.toBe(plain(paths[0]!))
    expect(pathCrc(paths[0]!, '/', 5)).toBe(plain(paths[0]!))
    expect(pathCrc(paths[0]!, parent, 0)).not.toBe(plain(paths[0]!))
    expect(pathCrc(paths[0]!, '/', 0)).toBe(plain(paths[0]!))
    expect(pathCrc(paths[0]!, parent, 6)).not.toBe(pathCrc(paths[0]!, parent, 5))
  }
})
