import {
  nameOf,
  CreateMode,
  OPEN_ACL_UNSAFE,
  OpCode,
  READ_ACL_UNSAFE,
  Reader,
  Writer,
  writeCreateRequest,
  writeDeleteRequest,
  writeSetACLRequest,
  writeSetDataRequest,
} from '@zabra/protocol'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { AclRules } from '../auth/index.ts'
import { Preparer } from '../prepare/index.ts'
import { runToEnd } from '../steps.ts'
import type { LoggedTxn, StoredStat } from '../types.ts'
import { childPaths } from '../testing/child-paths.ts'
import { Tree } from './index.ts'

const SESSIONS = [11n, 12n]

type Step =
  | {
      readonly do: 'create'
      readonly path: string
      readonly mode: number
      readonly session: number
      readonly acl: boolean
    }
  | { readonly do: 'delete' | 'set' | 'acl'; readonly path: string }
  | { readonly do: 'close'; readonly session: number }
  | { readonly do: 'walk'; readonly nodes: number }

const path = fc.constantFrom('/a', '/b', '/a/x', '/a/y', '/b/x', '/a/x/p', '/a/x/q')
const session = fc.nat(1)
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('create' as const),
      path,
      mode: fc.constantFrom(0, 0, 0, 1, 2),
      session,
      acl: fc.boolean(),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constantFrom('delete' as const, 'delete' as const, 'set' as const, 'acl' as const),
      path,
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('close' as const), session }) },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('walk' as const), nodes: fc.integer({ min: 1, max: 3 }) }),
  },
)

/** A tree with a log, and a snapshot that is written a few nodes at a time between changes. */
class SnapshotFixture {
  readonly tree = new Tree({ extendedTypes: true, digest: true })
  readonly log: LoggedTxn[] = []
  readonly snapshot: { path: string; data: Uint8Array | null; acl: number; stat: StoredStat }[] = []
  readonly #preparer = new Preparer({
    tree: this.tree,
    acls: new AclRules({ skipACL: true }),
    sessions: { check: () => 0 },
    enforceQuota: false,
    reconfigEnabled: false,
  })
  #zxid = 0

  take({ do: what, ...step }: Exclude<Step, { do: 'walk' }>): void {
    const w = new Writer()
    const acl = OPEN_ACL_UNSAFE
    if (what === 'close') {
      const closing = SESSIONS[(step as { session: number }).session]!
      this.#apply(closing, runToEnd(this.#preparer.closeSession(closing, this.#zxid + 1)))
      return
    }
    const { path: at } = step as { path: string }
    let owner = 0n
    let type: number = OpCode.delete
    if (what === 'create') {
      const create = step as { mode: number; session: number; acl: boolean }
      owner = SESSIONS[create.session]!
      type = OpCode.create
      const mode = create.mode === 2 ? CreateMode.PERSISTENT_SEQUENTIAL : create.mode
      writeCreateRequest(w, {
        path: at,
        data: new Uint8Array([this.#zxid & 255]),
        acl: create.acl ? acl : READ_ACL_UNSAFE,
        flags: mode,
      })
    } else if (what === 'set') {
      type = OpCode.setData
      writeSetDataRequest(w, { path: at, data: new Uint8Array([this.#zxid & 255, 7]), version: -1 })
    } else if (what === 'acl') {
      type = OpCode.setACL
      writeSetACLRequest(w, { path: at, acl: READ_ACL_UNSAFE, version: -1 })
    } else {
      writeDeleteRequest(w, { path: at, version: -1 })
    }
    const prepared = this.#preparer.prepare(
      { sessionId: owner, type, identities: [] },
      new Reader(w.bytes()),
      this.#zxid + 1,
      1000 + this.#zxid,
    )
    if (typeof prepared !== 'number') this.#apply(owner, prepared)
  }

  #apply(sessionId: bigint, { txn, digest }: { txn: LoggedTxn['txn']; digest: LoggedTxn['digest'] }): void {
    this.#zxid++
    const header = { sessionId, cxid: 1, zxid: this.#zxid, time: 1000 + this.#zxid }
    this.log.push({ header, txn, digest })
    this.tree.apply(header, txn)
    this.#preparer.forgetApplied(this.#zxid)
  }

  keep(node: number): void {
    const { tree } = this
    this.snapshot.push({
      path: tree.pathOf(node),
      data: tree.dataOf(node)?.slice() ?? null,
      acl: tree.aclIdOf(node),
      stat: tree.statOf(node),
    })
  }
}

/** Returns everything that clients can see of a tree. */
function seen(tree: Tree): object {
  const nodes: Record<string, unknown> = {}
  const cursor = tree.scan()
  cursor.next(Infinity, (node) => {
    nodes[tree.pathOf(node)] = {
      stat: tree.statOf(node),
      data: [...(tree.dataOf(node) ?? [-1])],
      acl: tree.aclOf(node),
      children: childPaths(tree, node).map(nameOf).sort(),
    }
  })
  cursor.close()
  const owned = SESSIONS.map((id) => [...tree.owners.ofSession(id)].map((node) => tree.pathOf(node)).sort())
  return { nodes, owned, digest: tree.digest, lastZxid: tree.lastZxid, lists: tree.acls.size }
}

function recovered(
  fixture: SnapshotFixture,
  before: number,
  lists: [number, typeof OPEN_ACL_UNSAFE][],
): Tree {
  const tree = new Tree({ extendedTypes: true, digest: true })
  tree.clear()
  for (const [id, list] of lists) tree.acls.load(id, list)
  for (const { path: at, data, acl, stat } of fixture.snapshot) tree.loadNode(at, data, acl, stat)
  tree.endLoad(before)
  for (const { header, txn } of fixture.log) if (header.zxid > before) tree.apply(header, txn)
  return tree
}

describe('a fuzzy snapshot', () => {
  it('and the log after it rebuild the tree, in 5,000 random histories', () => {
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 12 }),
        fc.array(step, { minLength: 5, maxLength: 40 }),
        (before, during) => {
          const fixture = new SnapshotFixture()
          for (const one of before) if (one.do !== 'walk') fixture.take(one)
          const start = fixture.tree.lastZxid
          const lists = fixture.tree.acls.entries() as [number, typeof OPEN_ACL_UNSAFE][]
          const cursor = fixture.tree.scan()
          for (const one of during) {
            if (one.do === 'walk') cursor.next(one.nodes, (node) => fixture.keep(node))
            else fixture.take(one)
          }
          cursor.next(Infinity, (node) => fixture.keep(node))
          cursor.close()
          expect(seen(recovered(fixture, start, lists))).toEqual(seen(fixture.tree))
        },
      ),
      { numRuns: 5000 },
    )
  })
})
