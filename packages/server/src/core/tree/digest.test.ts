import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Bench, type Ask } from '../prepare/testdata/bench.ts'
import { plainDigest, plainNodeDigest } from '../testdata/plain-digest.ts'
import { crcPrefix, pathCrc, statDigest } from './digest.ts'
import { Tree } from './tree.ts'

const name = fc.constantFrom('a', 'b', 'é', 'zookeeper', '名')
const path = fc.array(name, { minLength: 1, maxLength: 3 }).map((names) => `/${names.join('/')}`)
const data = fc.option(fc.string({ maxLength: 40 }), { nil: undefined })
const ask: fc.Arbitrary<Ask> = fc.oneof(
  fc.record({ op: fc.constantFrom('create', 'create2', 'createContainer'), path, data }),
  fc.record({ op: fc.constant('create' as const), path, data, flags: fc.constantFrom(1, 2, 3) }),
  fc.record({ op: fc.constant('setData' as const), path, data }),
  fc.record({ op: fc.constant('setACL' as const), path }),
  fc.record({ op: fc.constant('delete' as const), path }),
) as fc.Arbitrary<Ask>

describe('the digest of a tree', () => {
  it('is the sum over all its nodes, and was foreseen, in random histories', () => {
    const step = fc.oneof({ weight: 4, arbitrary: ask }, fc.array(ask, { minLength: 1, maxLength: 4 }))
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const bench = new Bench()
        for (const each of steps) {
          bench.apply(each)
          expect(bench.tree.digest).toEqual(plainDigest(bench.tree))
          if (bench.digest !== undefined) expect(bench.tree.digest).toEqual(bench.digest)
        }
      }),
      { seed: 7, numRuns: 150 },
    )
  })

  it('is the sum over all nodes of a tree that comes from a snapshot, whose nodes may come twice', () => {
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
      tree.load(at, text, -1, { ...stat, mzxid, owner: at === '/é/b' ? 77n : 0n })
    tree.loaded(9)
    expect(tree.digest).toEqual(plainDigest(tree))
  })
})

it('a node adds what its path, data and stat have as a checksum', () => {
  const int = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 })
  const long = fc.integer({ min: 0, max: 2 ** 53 - 1 })
  const stat = fc.record({
    czxid: long,
    mzxid: long,
    pzxid: long,
    ctime: fc.integer({ min: -5, max: 2 ** 43 }),
    mtime: long,
    version: int,
    cversion: int,
    aversion: int,
    owner: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  })
  fc.assert(
    fc.property(stat, fc.option(fc.uint8Array()), (s, bytes) => {
      const prefix = crcPrefix(pathCrc('/a/é', '/a', pathCrc('/a', '/', 0)), bytes)
      const told = statDigest(
        prefix,
        s.czxid,
        s.mzxid,
        s.pzxid,
        s.ctime,
        s.mtime,
        s.version,
        s.cversion,
        s.aversion,
        s.owner,
      )
      expect(told).toBe(plainNodeDigest('/a/é', bytes, s))
    }),
    { seed: 8, numRuns: 300 },
  )
})
