import { mapConcurrent } from '@zabra/client'
import { ErrorCode, parentOf, type ACL } from '@zabra/protocol'
import { isCode } from '../exit-codes.ts'
import type { NodeLine } from './export-file.ts'
import { letsChange, type Identities } from './identities.ts'
import { openingFor, type Plan } from './import-plan.ts'
import type { CreateMode, WriteOp, ZooKeeper } from './zookeeper.ts'

/** Who hears of an import under way. */
export interface ImportRun {
  readonly us: Identities
  /** What a node is to hold. */
  readonly dataOf: (node: NodeLine) => Promise<Uint8Array | null>
  readonly signal: AbortSignal
  /** So many nodes are there. */
  readonly done: (nodes: number) => void
  /** What was created is about to be deleted again. */
  readonly takingBack: (nodes: number) => void
}

/** An import that did not come to its end, and could not take back what it had created. */
export class ImportLeftover extends Error {
  override readonly name = 'ImportLeftover'
  /** Nodes that it has created and that stay. */
  readonly nodes: number
  constructor(nodes: number, cause: unknown) {
    super(`${nodes} nodes that were created stay`, { cause })
    this.nodes = nodes
  }
}

/**
 * Carries a plan out, parents first. When it fails or is told to stop before all nodes are created, those that are there
 * are deleted again and it rejects with the reason, or with an `ImportLeftover` when some could not be. A killed import is
 * completed by another one from the same address.
 */
export async function carryOut(zk: ZooKeeper, plan: Plan, run: ImportRun): Promise<void> {
  const inner = new Set(plan.create.map(({ path }) => parentOf(path)))
  const opened = new Map<string, NodeLine>()
  for (const node of plan.create)
    if (inner.has(node.path) && !letsChange(node.acl, run.us)) opened.set(node.path, node)
  const made: string[] = []
  try {
    await createAll(zk, plan, opened, made, run)
  } catch (error) {
    await takeBack(zk, made, opened, run, error)
    throw error
  }
  const replaced: NodeLine[] = []
  try {
    const writing = async (node: NodeLine): Promise<WriteOp> => ({
      op: 'setData',
      path: node.path,
      data: await run.dataOf(node),
    })
    for await (const batch of batches(mapConcurrent(plan.replace, writing, AHEAD))) {
      run.signal.throwIfAborted()
      await zk.multi(batch)
      replaced.push(...plan.replace.slice(replaced.length, replaced.length + batch.length))
      run.done(made.length + replaced.length)
    }
  } finally {
    // Lists of nodes that got children come last, the deepest first, as they may forbid what is still to do.
    for (const { path, acl } of [...plan.close, ...opened.values(), ...replaced].toReversed())
      await zk.setACL(path, acl)
  }
  run.signal.throwIfAborted()
}

async function createAll(
  zk: ZooKeeper,
  plan: Plan,
  opened: ReadonlyMap<string, unknown>,
  made: string[],
  { us, signal, done, dataOf }: ImportRun,
): Promise<void> {
  for (const path of plan.parents) {
    signal.throwIfAborted()
    try {
      await zk.create(path, null)
      made.push(path)
    } catch (error) {
      if (!isCode(error, ErrorCode.NODEEXISTS)) throw error
    }
  }
  const opening = opened.size === 0 ? [] : openingFor(us)
  const making = async (node: NodeLine): Promise<WriteOp> =>
    creationOf(node, opened.has(node.path) ? [...node.acl, ...opening] : node.acl, await dataOf(node))
  for await (const batch of batches(mapConcurrent(plan.create, making, AHEAD))) {
    signal.throwIfAborted()
    const paths = batch.map(({ path }) => path)
    try {
      await zk.multi(batch)
    } catch (error) {
      // Nobody knows whether they are there now; what is deleted again is whatever is found.
      if ((error as { maybeApplied?: unknown }).maybeApplied === true) made.push(...paths)
      throw error
    }
    made.push(...paths)
    done(made.length)
  }
}

function creationOf({ path, kind, ttl }: NodeLine, acl: readonly ACL[], data: Uint8Array | null): WriteOp {
  const mode: CreateMode =
    kind === 'container' ? 'container' : kind === 'ttl' ? 'persistentWithTtl' : 'persistent'
  return { op: 'create', path, data, acl, mode, ...(ttl === undefined ? {} : { ttl }) }
}

/** Deletes what was created, the last first. What has to stay gets the list that it is to have. */
async function takeBack(
  zk: ZooKeeper,
  made: readonly string[],
  opened: ReadonlyMap<string, NodeLine>,
  { takingBack }: ImportRun,
  cause: unknown,
): Promise<void> {
  if (made.length === 0) return
  takingBack(made.length)
  const left: string[] = []
  try {
    const deletions = made.toReversed().map((path): WriteOp => ({ op: 'delete', path }))
    for await (const batch of batches(deletions)) {
      try {
        await zk.multi(batch)
      } catch {
        // One by one: those that others have filled or deleted meanwhile must not keep the rest.
        for (const { path } of batch) if (!(await isGone(zk, path))) left.push(path)
      }
    }
    for (const path of left) {
      const node = opened.get(path)
      if (node !== undefined) await zk.setACL(path, node.acl)
    }
  } catch {
    // The connection is gone, and what it says of that is told by the cause already.
    throw new ImportLeftover(made.length, cause)
  }
  if (left.length > 0) throw new ImportLeftover(left.length, cause)
}

async function isGone(zk: ZooKeeper, path: string): Promise<boolean> {
  try {
    await zk.delete(path)
    return true
  } catch (error) {
    if (isCode(error, ErrorCode.NONODE)) return true
    if (isCode(error, ErrorCode.NOTEMPTY) || isCode(error, ErrorCode.NOAUTH)) return false
    throw error
  }
}

/** Nodes in one transaction, and the bytes at which it is closed earlier; a server takes about a megabyte. */
const BATCH = 100
const BATCH_BYTES = 400_000
/** Nodes whose data are read ahead of the transaction that takes them. */
const AHEAD = 16

async function* batches(ops: Iterable<WriteOp> | AsyncIterable<WriteOp>): AsyncGenerator<WriteOp[]> {
  let batch: WriteOp[] = []
  let bytes = 0
  for await (const op of ops) {
    const size = op.path.length + (('data' in op && op.data?.length) || 0) + 100
    if (batch.length > 0 && (batch.length >= BATCH || bytes + size > BATCH_BYTES)) {
      yield batch
      batch = []
      bytes = 0
    }
    batch.push(op)
    bytes += size
  }
  if (batch.length > 0) yield batch
}
