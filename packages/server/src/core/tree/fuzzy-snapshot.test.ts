import { CreateMode, nameOf, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE, type ACL } from '@zabra/protocol'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { encodeRequest, PreparerFixture, type RequestSpec } from '../prepare/testing/preparer-fixture.ts'
import { runToEnd } from '../steps.ts'
import type { LoggedTxn, StoredStat } from '../types.ts'
import { childPaths } from '../testing/child-paths.ts'
import { Tree } from './index.ts'
import { randomRuns } from '../../testing/random-runs.ts'

const RUNS = randomRuns(5000)

const SESSIONS = [11n, 12n]

type Step =
  | { readonly do: 'ask'; readonly ask: RequestSpec; readonly session: number }
  | { readonly do: 'close'; readonly session: number }
  | { readonly do: 'replace'; readonly path: string; readonly session: number }
  | { readonly do: 'walk'; readonly nodes: number }

const path = fc.constantFrom('/a', '/b', '/a/x', '/a/y', '/b/x', '/a/x/p', '/a/x/q')
const session = fc.nat(1)
const { PERSISTENT, EPHEMERAL, PERSISTENT_SEQUENTIAL } = CreateMode
const create = fc.record({
  op: fc.constant('create' as const),
  path,
  flags: fc.constantFrom(PERSISTENT, PERSISTENT, PERSISTENT, EPHEMERAL, PERSISTENT_SEQUENTIAL),
  acl: fc.constantFrom(OPEN_ACL_UNSAFE, READ_ACL_UNSAFE),
})
const change = fc.record({
  op: fc.constantFrom('delete' as const, 'delete' as const, 'setData' as const, 'setACL' as const),
  path,
  acl: fc.constant(READ_ACL_UNSAFE),
})
const asked = (ask: fc.Arbitrary<RequestSpec>) => fc.record({ do: fc.constant('ask' as const), ask, session })
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: asked(create) },
  { weight: 4, arbitrary: asked(change) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('close' as const), session }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('replace' as const),
      path: fc.constantFrom('/a', '/a/x', '/b'),
      session,
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('walk' as const), nodes: fc.integer({ min: 1, max: 3 }) }),
  },
)

/** How a snapshot is written: parents before children. */
interface Walk {
  /** Visits up to `limit` nodes. */
  next(limit: number, visit: (node: number) => void): unknown
  close(): void
}

/**
 * Walks a tree as Apache ZooKeeper does (`DataTree.serializeNode`): the children of a node are listed when it is visited, and found by their
 * paths when it is their turn. So a node may be written before it is deleted, and a child after both were created again.
 */
function apacheWalk(tree: Tree): Walk {
  const left = ['/']
  return {
    next(limit, visit) {
      for (let visited = 0; visited < limit && left.length > 0;) {
        const node = tree.find(left.pop()!)
        if (node === -1) continue
        visited++
        visit(node)
        left.push(...childPaths(tree, node).reverse())
      }
    },
    close() {},
  }
}

/** A tree with a log, and a snapshot that is written a few nodes at a time between changes. */
class SnapshotFixture {
  readonly #requests = new PreparerFixture({ skipACL: true })
  readonly tree = this.#requests.tree
  readonly log: LoggedTxn[] = []
  readonly snapshot: { path: string; data: Uint8Array | null; acl: number; stat: StoredStat }[] = []

  take(step: Exclude<Step, { do: 'walk' }>): void {
    if (step.do === 'replace') return this.#replace(step.path, step.session)
    const sessionId = SESSIONS[step.session]!
    const { preparer, zxid } = this.#requests
    if (step.do === 'close') {
      this.#requests.zxid++
      return this.#apply(sessionId, runToEnd(preparer.closeSession(sessionId, zxid + 1)))
    }
    const { type, body } = encodeRequest({ ...step.ask, data: `${zxid} ${step.ask.op}` })
    const prepared = this.#requests.prepareWith({ sessionId, type, identities: [] }, body, 1000 + zxid)
    if (typeof prepared !== 'number') this.#apply(sessionId, prepared)
  }

  /** Deletes a node with all that is below it, and creates all of it again. */
  #replace(path: string, session: number): void {
    const paths: string[] = []
    const cursor = this.tree.scan()
    cursor.next(Infinity, (node) => void paths.push(this.tree.pathOf(node)))
    cursor.close()
    const below = paths.filter((one) => one === path || one.startsWith(`${path}/`))
    for (const one of below.toReversed()) this.take({ do: 'ask', ask: { op: 'delete', path: one }, session })
    for (const one of below) this.take({ do: 'ask', ask: { op: 'create', path: one }, session })
  }

  #apply(sessionId: bigint, { txn, digest }: { txn: LoggedTxn['txn']; digest: LoggedTxn['digest'] }): void {
    const { zxid } = this.#requests
    const header = { sessionId, cxid: 1, zxid, time: 1000 + zxid }
    this.log.push({ header, txn, digest })
    this.tree.apply(header, txn)
    this.#requests.preparer.forgetApplied(zxid)
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
  lists: readonly (readonly [number, readonly ACL[]])[],
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
  it.each<[string, (tree: Tree) => Walk]>([
    ['this server', (tree) => tree.scan()],
    ['Apache ZooKeeper', apacheWalk],
  ])(`of %s and the log after it rebuild the tree, in ${RUNS} random histories`, (_, walk) => {
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 12 }),
        fc.array(step, { minLength: 5, maxLength: 40 }),
        (before, during) => {
          const fixture = new SnapshotFixture()
          for (const one of before) if (one.do !== 'walk') fixture.take(one)
          const start = fixture.tree.lastZxid
          const acls = fixture.tree.acls.view()
          const left = acls.lists[Symbol.iterator]()
          const lists: (readonly [number, readonly ACL[]])[] = []
          const takeList = (): boolean => {
            const { done, value } = left.next()
            if (done !== true) lists.push(value)
            return done !== true
          }
          const cursor = walk(fixture.tree)
          for (const one of during) {
            if (one.do === 'walk') cursor.next(one.nodes, (node) => fixture.keep(node))
            else fixture.take(one)
            takeList()
          }
          while (takeList());
          expect(lists).toHaveLength(acls.count)
          acls.close()
          cursor.next(Infinity, (node) => fixture.keep(node))
          cursor.close()
          expect(seen(recovered(fixture, start, lists))).toEqual(seen(fixture.tree))
        },
      ),
      { numRuns: RUNS },
    )
  })
})
