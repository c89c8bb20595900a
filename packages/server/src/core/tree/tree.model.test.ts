import {
  nameOf,
  CONTAINER_OWNER,
  CreateMode,
  ErrorCode,
  OPEN_ACL_UNSAFE,
  OpCode,
  READ_ACL_UNSAFE,
  Reader,
  readStat,
  ttlOwner,
  Writer,
} from '@zabra/protocol'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { PreparedTxn } from '../prepare/index.ts'
import { encodeRequest, PreparerFixture, type RequestSpec } from '../prepare/testing/preparer-fixture.ts'
import { runToEnd } from '../steps.ts'
import {
  NaiveTree,
  type NaiveAcl,
  type NaiveKind,
  type NaiveNode,
  type NaiveOperation,
} from '../testing/naive-tree.ts'
import type { LoggedTxn, Txn } from '../types.ts'
import { childPaths } from '../testing/child-paths.ts'
import { Tree, type ApplyHint } from './index.ts'
import { randomRuns } from '../../testing/random-runs.ts'

type Step =
  | { readonly do: 'one'; readonly operation: NaiveOperation; readonly session: number }
  | { readonly do: 'multi'; readonly operations: NaiveOperation[]; readonly session: number }
  | { readonly do: 'close'; readonly session: number }
  | { readonly do: 'reap'; readonly path: string }
  /** Number of prepared transactions to apply. */
  | { readonly do: 'commit'; readonly count: number }

const SESSIONS = [101n, BigInt.asIntN(64, 0xfe00000000000007n)]
/** Mostly few nodes, so that operations affect the same ones, and a few invalid paths. */
const path = fc.oneof(
  { weight: 12, arbitrary: fc.constantFrom('/a', '/a', '/b', '/a/x', '/a/x', '/b/q', '/a/x/p') },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      '/a/x/',
      '/none/x',
      '/',
      '/a//b',
      '/zookeeper',
      '/a/x0000000000',
      '/a/x0000000001',
    ),
  },
)
const version = fc.constantFrom(-1, -1, -1, 0, 1, 2)
const data = fc.constantFrom(null, '', 'd', 'longer data')
const acl: fc.Arbitrary<NaiveAcl> = fc.constantFrom(
  ...Array.from({ length: 11 }, () => 'open' as const),
  'read',
)
const kind: fc.Arbitrary<NaiveKind> = fc.constantFrom(
  'persistent',
  'persistent',
  'persistent',
  'ephemeral',
  'sequential',
  'ephemeral sequential',
  'container',
  'ttl',
  'ttl sequential',
)
const operation: fc.Arbitrary<NaiveOperation> = fc.oneof(
  { weight: 9, arbitrary: fc.record({ do: fc.constant('create' as const), path, data, acl, kind }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('delete' as const), path, version }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('set' as const), path, data, version }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('acl' as const), path, acl, version }) },
)
const part: fc.Arbitrary<NaiveOperation> = fc.oneof(
  { weight: 4, arbitrary: operation.filter((one) => one.do !== 'acl') },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('check' as const), path, version }) },
)
const session = fc.nat(1)
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ do: fc.constant('one' as const), operation, session }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('multi' as const),
      operations: fc.array(part, { maxLength: 4 }),
      session,
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('close' as const), session }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('reap' as const),
      path: path.filter((one) => one !== '/zookeeper' && one !== '/'),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('commit' as const), count: fc.integer({ min: 1, max: 4 }) }),
  },
)

const lists = { open: OPEN_ACL_UNSAFE, read: READ_ACL_UNSAFE }
const modes: Record<NaiveKind, number> = {
  persistent: CreateMode.PERSISTENT,
  ephemeral: CreateMode.EPHEMERAL,
  sequential: CreateMode.PERSISTENT_SEQUENTIAL,
  'ephemeral sequential': CreateMode.EPHEMERAL_SEQUENTIAL,
  container: CreateMode.CONTAINER,
  ttl: CreateMode.PERSISTENT_WITH_TTL,
  'ttl sequential': CreateMode.PERSISTENT_SEQUENTIAL_WITH_TTL,
}

/** Returns the request that makes an operation of the model. */
function requestOf(one: NaiveOperation): RequestSpec {
  const { path, version } = { version: -1, ...one }
  const data = 'data' in one && one.data !== null ? { data: one.data } : {}
  if (one.do === 'delete' || one.do === 'check') return { op: one.do, path, version }
  if (one.do === 'set') return { op: 'setData', path, version, ...data }
  const acl = lists[one.acl]
  if (one.do === 'acl') return { op: 'setACL', path, version, acl }
  const plain = one.data === null ? 'create' : 'create2'
  const op = one.kind === 'container' ? 'createContainer' : one.kind.startsWith('ttl') ? 'createTTL' : plain
  return { op, path, acl, flags: modes[one.kind], ttl: 1000n, ...data }
}

const errorsOf = (txn: Txn): number[] => {
  if (txn.type === OpCode.multi)
    return Array.from(txn.txns, (sub) => (sub.type === OpCode.error ? sub.err : 0))
  return [txn.type === OpCode.error ? txn.err : 0]
}

/** The tree with its preparer, and the model, which runs each request when it is prepared. */
class TreeModelFixture {
  readonly #requests = new PreparerFixture()
  readonly tree = this.#requests.tree
  readonly model = new NaiveTree()
  readonly #waiting: { logged: LoggedTxn; hint: ApplyHint; after: Map<string, NaiveNode> }[] = []
  /** A tree that applies without hints. */
  readonly #plain = new Tree({ extendedTypes: true, digest: true })
  readonly #seen: Map<number, number>

  /** `seen` counts the outcomes. */
  constructor(seen: Map<number, number>) {
    this.#seen = seen
  }

  take(one: Step): void {
    if (one.do === 'commit') return this.commit(one.count)
    const { preparer } = this.#requests
    const zxid = this.#requests.zxid + 1
    const time = 5000 + zxid
    if (one.do === 'reap') {
      this.#requests.zxid = zxid
      const expected = [this.model.reap(one.path, zxid)]
      return this.#prepared(0n, preparer.deleteContainer(one.path, zxid), expected)
    }
    const owner = SESSIONS[one.session]!
    if (one.do === 'close') {
      this.#requests.zxid = zxid
      this.model.closeSession(owner, zxid)
      return this.#prepared(owner, runToEnd(preparer.closeSession(owner, zxid)), [0])
    }
    const { type, body } = encodeRequest(
      one.do === 'one' ? requestOf(one.operation) : one.operations.map(requestOf),
    )
    const expected =
      one.do === 'one'
        ? [this.model.apply(one.operation, owner, zxid, time)]
        : this.model.multi(one.operations, owner, zxid, time)
    const prepared = this.#requests.prepareWith({ sessionId: owner, type, identities: [] }, body, time)
    if (typeof prepared === 'number') throw new Error(`The request could not be decoded: ${prepared}`)
    this.#prepared(owner, prepared, expected)
  }

  commit(count: number): void {
    for (const { logged, hint, after } of this.#waiting.splice(0, count)) {
      const err = this.tree.apply(logged.header, logged.txn, undefined, undefined, hint)
      expect(this.#plain.apply(logged.header, logged.txn)).toBe(err)
      expect(this.#plain.digest).toEqual(this.tree.digest)
      expect(err).toBe(logged.txn.type === OpCode.error ? logged.txn.err : 0)
      this.#requests.preparer.forgetApplied(logged.header.zxid)
      expect(visible(this.tree)).toEqual(expectedOf(after))
      expect(indices(this.tree)).toEqual(expectedIndices(after))
      if (logged.digest) expect(this.tree.matches(logged.digest)).toBe(true)
    }
    if (this.#waiting.length === 0) expect(this.#requests.preparer.pendingNodes).toBe(0)
  }

  #prepared(sessionId: bigint, prepared: PreparedTxn, expected: number[]): void {
    const { txn, digest } = prepared
    expect(errorsOf(txn)).toEqual(expected)
    for (const code of expected) this.#seen.set(code, (this.#seen.get(code) ?? 0) + 1)
    const { zxid } = this.#requests
    const header = { sessionId, cxid: 0, zxid, time: 5000 + zxid }
    this.#waiting.push({
      logged: { header, txn, digest },
      hint: prepared,
      after: structuredClone(this.model.nodes),
    })
  }
}

interface Seen {
  readonly stat: object
  readonly data: string | null
  readonly acl: unknown
  readonly owner: bigint
  readonly children: string[]
}

function visible(tree: Tree): Record<string, Seen> {
  const all: Record<string, Seen> = {}
  const cursor = tree.scan()
  cursor.next(Infinity, (node) => {
    const w = new Writer()
    tree.writeStat(node, w)
    const bytes = tree.dataOf(node)
    const at = tree.pathOf(node)
    expect(tree.find(at)).toBe(node)
    all[at] = {
      stat: readStat(new Reader(w.bytes())),
      data: bytes === null ? null : new TextDecoder().decode(bytes),
      acl: tree.aclOf(node),
      owner: tree.statOf(node).owner,
      children: childPaths(tree, node).map(nameOf).sort(),
    }
  })
  cursor.close()
  expect(tree.nodeCount).toBe(Object.keys(all).length)
  return all
}

function expectedOf(nodes: Map<string, NaiveNode>): Record<string, Seen> {
  const all: Record<string, Seen> = {}
  for (const [at, node] of nodes) {
    const { owner } = node
    const raw =
      owner === 'persistent'
        ? 0n
        : owner === 'container'
          ? CONTAINER_OWNER
          : 'ttl' in owner
            ? ttlOwner(owner.ttl)
            : owner.session
    all[at] = {
      stat: {
        czxid: BigInt(node.czxid),
        mzxid: BigInt(node.mzxid),
        ctime: BigInt(node.ctime),
        mtime: BigInt(node.mtime),
        version: node.version,
        cversion: node.creations * 2 - node.children.size,
        aversion: node.aversion,
        ephemeralOwner: typeof owner === 'object' && 'session' in owner ? owner.session : 0n,
        dataLength: node.data?.length ?? 0,
        numChildren: node.children.size,
        pzxid: BigInt(node.pzxid),
      },
      data: node.data,
      acl: lists[node.acl],
      owner: raw,
      children: [...node.children].sort(),
    }
  }
  return all
}

interface Indices {
  readonly ephemerals: Record<string, string[]>
  readonly ephemeralCount: number
  readonly containers: string[]
  readonly ttl: string[]
}

function indices(tree: Tree): Indices {
  const { owners } = tree
  const paths = (nodes: Iterable<number>): string[] => [...nodes].map((node) => tree.pathOf(node)).sort()
  return {
    ephemerals: Object.fromEntries(
      [...owners.sessions()].map((id) => [`${id}`, paths(owners.ofSession(id))]),
    ),
    ephemeralCount: owners.ephemeralCount,
    containers: paths(owners.containers),
    ttl: paths(owners.ttl),
  }
}

function expectedIndices(nodes: Map<string, NaiveNode>): Indices {
  const all: Indices & { ephemeralCount: number } = {
    ephemerals: {},
    ephemeralCount: 0,
    containers: [],
    ttl: [],
  }
  for (const at of [...nodes.keys()].sort()) {
    const { owner } = nodes.get(at)!
    if (owner === 'persistent') continue
    if (owner === 'container') all.containers.push(at)
    else if ('ttl' in owner) all.ttl.push(at)
    else {
      ;(all.ephemerals[`${owner.session}`] ??= []).push(at)
      all.ephemeralCount++
    }
  }
  return all
}

const RUNS = randomRuns(3000)

describe('Preparer and Tree', () => {
  it(`give the same results as a naive model, in ${RUNS} random histories with transactions in flight`, () => {
    const seen = new Map<number, number>()
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 30, size: 'max' }), (steps) => {
        const fixture = new TreeModelFixture(seen)
        for (const one of steps) fixture.take(one)
        fixture.commit(Infinity)
      }),
      { numRuns: RUNS },
    )
    // The histories have covered every outcome.
    const codes = [
      ErrorCode.OK,
      ErrorCode.RUNTIMEINCONSISTENCY,
      ErrorCode.BADARGUMENTS,
      ErrorCode.NONODE,
      ErrorCode.NOAUTH,
      ErrorCode.BADVERSION,
      ErrorCode.NOCHILDRENFOREPHEMERALS,
      ErrorCode.NODEEXISTS,
      ErrorCode.NOTEMPTY,
    ]
    for (const code of codes) expect(seen.get(code), `outcomes with ${code}`).toBeGreaterThan(RUNS / 30)
  }, 300_000)
})
