import { mapConcurrent } from '@zabra/client'
import { ErrorCode, parentOf, type ACL } from '@zabra/protocol'
import { hasCode } from '../exit-codes.ts'
import type { ExportedNodeLine } from './export-file.ts'
import { canChangeChildren, type Identities } from './identities.ts'
import { temporaryAcl, type ImportPlan } from './import-plan.ts'
import type { CreateMode, WriteOp, ZooKeeper } from './zookeeper.ts'

/** Who hears of an import under way. */
export interface ImportRun {
  readonly identities: Identities
  /** What a node is to hold. */
  readonly dataOf: (node: ExportedNodeLine) => Promise<Uint8Array | null>
  readonly signal: AbortSignal
  /** So many nodes are there. */
  readonly onProgress: (nodes: number) => void
  /** What was created is about to be deleted again. */
  readonly onRollback: (nodes: number) => void
}

/** An import that did not come to its end, and could not take back what it had created. */
export class IncompleteRollbackError extends Error {
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
 * are deleted again and it rejects with the reason, or with an `IncompleteRollbackError` when some could not be. A killed import is
 * completed by another one from the same address.
 */
export async function runImport(zk: ZooKeeper, plan: ImportPlan, run: ImportRun): Promise<void> {
  const inner = new Set(plan.create.map(({ path }) => parentOf(path)))
  const opened = new Map<string, ExportedNodeLine>()
  for (const node of plan.create)
    if (inner.has(node.path) && !canChangeChildren(node.acl, run.identities)) opened.set(node.path, node)
  const made: string[] = []
  try {
    await createAll(zk, plan, opened, made, run)
  } catch (error) {
    await rollBack(zk, made, opened, run, error)
    throw error
  }
  const replaced: ExportedNodeLine[] = []
  try {
    const writing = async (node: ExportedNodeLine): Promise<WriteOp> => ({
      op: 'setData',
      path: node.path,
      data: await run.dataOf(node),
    })
    for await (const batch of batches(mapConcurrent(plan.replace, writing, READ_CONCURRENCY))) {
      run.signal.throwIfAborted()
      await zk.multi(batch)
      replaced.push(...plan.replace.slice(replaced.length, replaced.length + batch.length))
      run.onProgress(made.length + replaced.length)
    }
  } finally {
    // Lists of nodes that got children come last, the deepest first, as they may forbid what is still to do.
    for (const { path, acl } of [...plan.restore, ...opened.values(), ...replaced].toReversed())
      await zk.setACL(path, acl)
  }
  run.signal.throwIfAborted()
}

async function createAll(
  zk: ZooKeeper,
  plan: ImportPlan,
  opened: ReadonlyMap<string, unknown>,
  made: string[],
  { identities: us, signal, onProgress: done, dataOf }: ImportRun,
): Promise<void> {
  for (const path of plan.parents) {
    signal.throwIfAborted()
    try {
      await zk.create(path, null)
      made.push(path)
    } catch (error) {
      if (!hasCode(error, ErrorCode.NODEEXISTS)) throw error
    }
  }
  const opening = opened.size === 0 ? [] : temporaryAcl(us)
  const making = async (node: ExportedNodeLine): Promise<WriteOp> =>
    createOp(node, opened.has(node.path) ? [...node.acl, ...opening] : node.acl, await dataOf(node))
  for await (const batch of batches(mapConcurrent(plan.create, making, READ_CONCURRENCY))) {
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

function createOp(
  { path, kind, ttl }: ExportedNodeLine,
  acl: readonly ACL[],
  data: Uint8Array | null,
): WriteOp {
  const mode: CreateMode =
    kind === 'container' ? 'container' : kind === 'ttl' ? 'persistentWithTtl' : 'persistent'
  return { op: 'create', path, data, acl, mode, ...(ttl === undefined ? {} : { ttl }) }
}

/** Deletes what was created, the last first. What has to stay gets the list that it is to have. */
async function rollBack(
  zk: ZooKeeper,
  made: readonly string[],
  opened: ReadonlyMap<string, ExportedNodeLine>,
  { onRollback: takingBack }: ImportRun,
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
        for (const { path } of batch) if (!(await deleteIfEmpty(zk, path))) left.push(path)
      }
    }
    for (const path of left) {
      const node = opened.get(path)
      if (node !== undefined) await zk.setACL(path, node.acl)
    }
  } catch {
    // The connection is gone, and what it says of that is told by the cause already.
    throw new IncompleteRollbackError(made.length, cause)
  }
  if (left.length > 0) throw new IncompleteRollbackError(left.length, cause)
}

async function deleteIfEmpty(zk: ZooKeeper, path: string): Promise<boolean> {
  try {
    await zk.delete(path)
    return true
  } catch (error) {
    if (hasCode(error, ErrorCode.NONODE)) return true
    if (hasCode(error, ErrorCode.NOTEMPTY) || hasCode(error, ErrorCode.NOAUTH)) return false
    throw error
  }
}

/** Nodes in one transaction, and the bytes at which it is closed earlier; a server takes about a megabyte. */
const BATCH_NODES = 100
const BATCH_BYTES = 400_000
/** Nodes whose data are read ahead of the transaction that takes them. */
const READ_CONCURRENCY = 16

async function* batches(ops: Iterable<WriteOp> | AsyncIterable<WriteOp>): AsyncGenerator<WriteOp[]> {
  let batch: WriteOp[] = []
  let bytes = 0
  for await (const op of ops) {
    const size = op.path.length + (('data' in op && op.data?.length) || 0) + 100
    if (batch.length > 0 && (batch.length >= BATCH_NODES || bytes + size > BATCH_BYTES)) {
      yield batch
      batch = []
      bytes = 0
    }
    batch.push(op)
    bytes += size
  }
  if (batch.length > 0) yield batch
}
