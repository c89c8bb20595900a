import { randomUUID } from 'node:crypto'
import { mapConcurrent, type ACL, type Client, type WriteOp } from '@zabra/client'
import { childPath, ErrorCode, parentOf } from '@zabra/protocol'
import { hasCode } from '../exit-codes.ts'
import type { ExportedNodeLine } from './export-file.ts'
import { canChangeChildren, type Identities } from './identities.ts'
import { nextSequence } from './export-source.ts'
import { temporaryAcl, type ImportPlan } from './import-plan.ts'

/** Inputs and callbacks of an import. */
export interface ImportRun {
  readonly identities: Identities
  /** Reads the data of a node from the export. */
  readonly readData: (node: ExportedNodeLine) => Promise<Uint8Array | null>
  readonly signal: AbortSignal
  /** Receives the number of nodes created and replaced so far. */
  readonly onProgress: (nodes: number) => void
  /** Called for a node whose next sequential number stays low: it would take too many transactions, or this client may not raise it. */
  readonly onLowSequence: (path: string, sequence: number) => void
  /** Called before a rollback, with the number of created nodes. */
  readonly onRollback: (nodes: number) => void
}

/** An import failed, and so did its rollback. */
export class IncompleteRollbackError extends Error {
  override readonly name = 'ImportLeftover'
  /** Number of created nodes that were not deleted. */
  readonly nodes: number
  constructor(nodes: number, cause: unknown) {
    super(`${nodes} nodes that were created stay`, { cause })
    this.nodes = nodes
  }
}

/**
 * Executes a plan, parents first. When it fails or is aborted before all nodes are created, deletes the created nodes and
 * rejects with the reason, or with an `IncompleteRollbackError` when some could not be deleted. A killed import is completed by
 * the same import from the same address.
 */
export async function runImport(zk: Client, plan: ImportPlan, run: ImportRun): Promise<void> {
  const parents = new Set(plan.create.map(({ path }) => parentOf(path)))
  const withTemporaryAcl = new Map<string, ExportedNodeLine>()
  for (const node of plan.create)
    if (
      (parents.has(node.path) || node.sequence !== undefined) &&
      !canChangeChildren(node.acl, run.identities)
    )
      withTemporaryAcl.set(node.path, node)
  const created: string[] = []
  try {
    await createAll(zk, plan, withTemporaryAcl, created, run)
  } catch (error) {
    await rollBack(zk, created, withTemporaryAcl, run, error)
    throw error
  }
  const replaced: ExportedNodeLine[] = []
  try {
    await raiseSequences(zk, [...plan.create, ...plan.replace, ...plan.restore, ...plan.same], run)
    const toSetOp = async (node: ExportedNodeLine): Promise<WriteOp> => ({
      op: 'setData',
      path: node.path,
      data: await run.readData(node),
    })
    for await (const batch of batches(mapConcurrent(plan.replace, toSetOp, READ_CONCURRENCY))) {
      run.signal.throwIfAborted()
      await zk.multi(batch)
      replaced.push(...plan.replace.slice(replaced.length, replaced.length + batch.length))
      run.onProgress(created.length + replaced.length)
    }
  } finally {
    // Final access lists of parents come last, deepest first, since they may forbid the changes before.
    for (const { path, acl } of [...plan.restore, ...withTemporaryAcl.values(), ...replaced].toReversed())
      await zk.setACL(path, acl)
  }
  run.signal.throwIfAborted()
}

async function createAll(
  zk: Client,
  plan: ImportPlan,
  withTemporaryAcl: ReadonlyMap<string, unknown>,
  created: string[],
  { identities, signal, onProgress, readData }: ImportRun,
): Promise<void> {
  for (const path of plan.parents) {
    signal.throwIfAborted()
    try {
      await zk.create(path, { data: null })
      created.push(path)
    } catch (error) {
      if (!hasCode(error, ErrorCode.NODEEXISTS)) throw error
    }
  }
  const entries = withTemporaryAcl.size === 0 ? [] : temporaryAcl(identities)
  const toCreateOp = async (node: ExportedNodeLine): Promise<WriteOp> =>
    createOp(
      node,
      withTemporaryAcl.has(node.path) ? [...node.acl, ...entries] : node.acl,
      await readData(node),
    )
  for await (const batch of batches(mapConcurrent(plan.create, toCreateOp, READ_CONCURRENCY))) {
    signal.throwIfAborted()
    const paths = batch.map(({ path }) => path)
    try {
      await zk.multi(batch)
    } catch (error) {
      // The outcome is unknown: the rollback deletes whichever of these nodes exist.
      if ((error as { maybeApplied?: unknown }).maybeApplied === true) created.push(...paths)
      throw error
    }
    created.push(...paths)
    onProgress(created.length)
  }
}

/** Limit of a raise, in numbers: each takes a create and a delete. */
const MAX_RAISE = 100_000

/** Raises the number of the next sequential child to the exported one, by creating and deleting children. */
async function raiseSequences(
  zk: Client,
  nodes: readonly ExportedNodeLine[],
  { signal, onLowSequence }: ImportRun,
): Promise<void> {
  const children = new Map<string, number>()
  for (const { path } of nodes) {
    if (path === '/') continue
    const parent = parentOf(path)
    children.set(parent, (children.get(parent) ?? 0) + 1)
  }
  for (const { path, sequence = 0 } of nodes) {
    // Creating the children has raised the number by as many.
    if (sequence <= (children.get(path) ?? 0)) continue
    signal.throwIfAborted()
    const stat = await zk.exists(path)
    const missing = stat === undefined ? 0 : sequence - nextSequence(stat)
    if (missing > MAX_RAISE) {
      onLowSequence(path, sequence)
      continue
    }
    const child = childPath(path, `zabra-import-${randomUUID()}`)
    // A create and its delete are in one transaction: an interruption leaves no child behind.
    const size = Math.max(1, Math.min(BATCH_NODES / 2, Math.floor(BATCH_BYTES / (2 * (child.length + 100)))))
    const pair: readonly WriteOp[] = [
      { op: 'create', path: child },
      { op: 'delete', path: child },
    ]
    try {
      for (let left = missing; left > 0; left -= size) {
        signal.throwIfAborted()
        await zk.multi(Array.from({ length: Math.min(size, left) }, () => pair).flat())
      }
    } catch (error) {
      if (!hasCode(error, ErrorCode.NOAUTH)) throw error
      onLowSequence(path, sequence)
    }
  }
}

function createOp(
  { path, kind, ttl }: ExportedNodeLine,
  acl: readonly ACL[],
  data: Uint8Array | null,
): WriteOp {
  const node = { op: 'create', path, data, acl } as const
  return kind === 'ttl' && ttl !== undefined
    ? { ...node, mode: 'persistentWithTtl', ttlMs: ttl }
    : { ...node, mode: kind === 'container' ? 'container' : 'persistent' }
}

/** Deletes the created nodes, last first. Nodes that cannot be deleted get their final access list. */
async function rollBack(
  zk: Client,
  created: readonly string[],
  withTemporaryAcl: ReadonlyMap<string, ExportedNodeLine>,
  { onRollback }: ImportRun,
  cause: unknown,
): Promise<void> {
  if (created.length === 0) return
  onRollback(created.length)
  const remaining: string[] = []
  try {
    const deletions = created.toReversed().map((path): WriteOp => ({ op: 'delete', path }))
    for await (const batch of batches(deletions)) {
      try {
        await zk.multi(batch)
      } catch {
        // One by one: nodes that other clients have filled or deleted must not block the rest.
        for (const { path } of batch) if (!(await deleteIfEmpty(zk, path))) remaining.push(path)
      }
    }
    for (const path of remaining) {
      const node = withTemporaryAcl.get(path)
      if (node !== undefined) await zk.setACL(path, node.acl)
    }
  } catch {
    // The connection is lost; the cause says so already.
    throw new IncompleteRollbackError(created.length, cause)
  }
  if (remaining.length > 0) throw new IncompleteRollbackError(remaining.length, cause)
}

async function deleteIfEmpty(zk: Client, path: string): Promise<boolean> {
  try {
    await zk.delete(path)
    return true
  } catch (error) {
    if (hasCode(error, ErrorCode.NONODE)) return true
    if (hasCode(error, ErrorCode.NOTEMPTY) || hasCode(error, ErrorCode.NOAUTH)) return false
    throw error
  }
}

/** Nodes and bytes per transaction; a server accepts requests of about a megabyte. */
const BATCH_NODES = 100
const BATCH_BYTES = 400_000
/** Number of nodes whose data is read concurrently. */
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
