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
  writeCheckVersionRequest,
  writeCreateRequest,
  writeCreateTTLRequest,
  writeDeleteRequest,
  writeMultiHeader,
  Writer,
  writeSetACLRequest,
  writeSetDataRequest,
} from '@zabra/protocol'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { AclRules } from '../auth/index.ts'
import { Preparer, type PreparedTxn } from '../prepare/index.ts'
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
const encoded = (value: string | null): Uint8Array | null =>
  value === null ? null : new TextEncoder().encode(value)

function write(w: Writer, one: NaiveOperation): void {
  switch (one.do) {
    case 'create': {
      const request = { path: one.path, data: encoded(one.data), acl: lists[one.acl], flags: modes[one.kind] }
      if (one.kind.startsWith('ttl')) writeCreateTTLRequest(w, { ...request, ttl: 1000n })
      else writeCreateRequest(w, request)
      return
    }
    case 'delete':
      return writeDeleteRequest(w, one)
    case 'set':
      return writeSetDataRequest(w, { ...one, data: encoded(one.data) })
    case 'acl':
      return writeSetACLRequest(w, { ...one, acl: lists[one.acl] })
    case 'check':
      return writeCheckVersionRequest(w, one)
  }
}

function typeOf(one: NaiveOperation): number {
  const types = { delete: OpCode.delete, set: OpCode.setData, acl: OpCode.setACL, check: OpCode.check }
  if (one.do !== 'create') return types[one.do]
  if (one.kind === 'container') return OpCode.createContainer
  if (one.kind.startsWith('ttl')) return OpCode.createTTL
  return one.data === null ? OpCode.create : OpCode.create2
}

const errorsOf = (txn: Txn): number[] => {
  if (txn.type === OpCode.multi)
    return Array.from(txn.txns, (sub) => (sub.type === OpCode.error ? sub.err : 0))
  return [txn.type === OpCode.error ? txn.err : 0]
}

/** The tree with its preparer, and the model, which runs each request when it is prepared. */
class TreeModelFixture {
  readonly tree = new Tree({ extendedTypes: true, digest: true })
  readonly model = new NaiveTree()
  readonly #preparer = new Preparer({
    tree: this.tree,
    acls: new AclRules({ skipACL: false }),
    sessions: { check: () => 0 },
    enforceQuota: false,
    reconfigEnabled: false,
  })
  readonly #waiting: { logged: LoggedTxn; hint: ApplyHint; after: Map<string, NaiveNode> }[] = []
  /** A tree that applies without hints. */
  readonly #plain = new Tree({ extendedTypes: true, digest: true })
  readonly #seen: Map<number, number>
  #zxid = 0

  /** `seen` counts the outcomes. */
  constructor(seen: Map<number, number>) {
    this.#seen = seen
  }

  take(one: Step): void {
    if (one.do === 'commit') return this.commit(one.count)
    const zxid = ++this.#zxid
    const time = 5000 + zxid
    if (one.do === 'close') {
      const owner = SESSIONS[one.session]!
      this.model.closeSession(owner, zxid)
      return this.#prepared(owner, runToEnd(this.#preparer.closeSession(owner, zxid)), [0])
    }
    if (one.do === 'reap')
      return this.#prepared(0n, this.#preparer.deleteContainer(one.path, zxid), [
        this.model.reap(one.path, zxid),
      ])
    const owner = SESSIONS[one.session]!
    const w = new Writer()
    let type: number = OpCode.multi
    let expected: number[]
    if (one.do === 'one') {
      type = typeOf(one.operation)
      write(w, one.operation)
      expected = [this.model.apply(one.operation, owner, zxid, time)]
    } else {
      for (const sub of one.operations) {
        writeMultiHeader(w, { type: typeOf(sub), done: false, err: -1 })
        write(w, sub)
      }
      writeMultiHeader(w, { type: -1, done: true, err: -1 })
      expected = this.model.multi(one.operations, owner, zxid, time)
    }
    const prepared = this.#preparer.prepare(
      { sessionId: owner, type, identities: [] },
      new Reader(w.take()),
      zxid,
      time,
    )
    if (typeof prepared === 'number') throw new Error(`The request could not be decoded: ${prepared}`)
    this.#prepared(owner, prepared, expected)
  }

  commit(count: number): void {
    for (const { logged, hint, after } of this.#waiting.splice(0, count)) {
      const err = this.tree.apply(logged.header, logged.txn, undefined, undefined, hint)
      expect(this.#plain.apply(logged.header, logged.txn)).toBe(err)
      expect(this.#plain.digest).toEqual(this.tree.digest)
      expect(err).toBe(logged.txn.type === OpCode.error ? logged.txn.err : 0)
      this.#preparer.forgetApplied(logged.header.zxid)
      expect(visible(this.tree)).toEqual(expectedOf(after))
      expect(indices(this.tree)).toEqual(expectedIndices(after))
      if (logged.digest) expect(this.tree.matches(logged.digest)).toBe(true)
    }
    if (this.#waiting.length === 0) expect(this.#preparer.pendingNodes).toBe(0)
  }

  #prepared(sessionId: bigint, prepared: PreparedTxn, expected: number[]): void {
    const { txn, digest } = prepared
    expect(errorsOf(txn)).toEqual(expected)
    for (const code of expected) this.#seen.set(code, (this.#seen.get(code) ?? 0) + 1)
    const header = { sessionId, cxid: 0, zxid: this.#zxid, time: 5000 + this.#zxid }
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

describe('Preparer and Tree', () => {
  it('give the same results as a naive model, in 3,000 random histories with transactions in flight', () => {
    const seen = new Map<number, number>()
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 30, size: 'max' }), (steps) => {
        const fixture = new TreeModelFixture(seen)
        for (const one of steps) fixture.take(one)
        fixture.commit(Infinity)
      }),
      { numRuns: 3_000 },
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
    for (const code of codes) expect(seen.get(code), `outcomes with ${code}`).toBeGreaterThan(100)
  }, 300_000)
})
