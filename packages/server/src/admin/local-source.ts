import { counterOf } from '@zabra/protocol'
import type { DiskReader } from '@zabra/runtime'
import {
  BackupError,
  chunksOf,
  digestText,
  encodeLog,
  endable,
  endChunks,
  type BackupSource,
  type SourceLog,
} from '../backup/index.ts'
import type { Zxid } from '../core/types.ts'
import { DamageError, type RawTxn } from '../persistence/index.ts'
import { FULL_VERSION } from '../version.ts'
import type { AdminTarget } from './admin-target.ts'
import { takeSnapshot } from './http/snapshot-command.ts'
import type { ServerReport } from './server-report.ts'

/** Returns the tree of a server that follows a quorum; undefined for any other: between two roles it may hold transactions that were never committed. */
export function servedTree({ service }: AdminTarget): ServerReport['tree'] | undefined {
  return service === undefined || service.isReadOnly ? undefined : service.tree
}

/**
 * Returns a server as the source of its own backups, whose files are read by way of `limited`. `onSnapshot` is called before a snapshot
 * is written to the data folder.
 */
export function localSource(
  target: AdminTarget,
  limited = (chunks: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> => chunks,
  onSnapshot = (): void => {},
): BackupSource {
  const contentsOf = (reader: DiskReader): AsyncIterable<Uint8Array> =>
    endable(limited(chunksOf(reader)), () => reader.close())
  return {
    name: `${FULL_VERSION} of member ${target.settings.serverId}`,
    get cluster() {
      return target.clusterId
    },
    get level() {
      return target.features.finalized
    },
    async takeSnapshot() {
      servedTreeOf(target)
      onSnapshot()
      const taken = await takeSnapshot(target)
      servedTreeOf(target)
      if (taken === undefined)
        throw new BackupError('The snapshot could not be taken; the log of the server gives the reason.')
      const { path, zxid } = taken
      const reader = await target.platform.disk.openRead(path)
      return { file: path.slice(path.lastIndexOf('/') + 1), zxid, chunks: contentsOf(reader) }
    },
    async openBaseSnapshot(after) {
      const base = target.baseSnapshot
      if (base === undefined || base.zxid <= after) return undefined
      if ((await target.hasLogAfter(after)) || !(await target.hasLogAfter(base.zxid))) return undefined
      const { disk } = target.platform
      const path = `${target.directories.snapshots}/${base.file}`
      if (!(await disk.exists(path))) return undefined
      const reader = await disk.openRead(path)
      return { ...base, digest: digestText(base), chunks: contentsOf(reader) }
    },
    async readLog(after) {
      const log = await readLog(target, after)
      return log && { ...log, chunks: endable(limited(log.chunks), () => endChunks(log.chunks)) }
    },
  }
}

function servedTreeOf(target: AdminTarget): ServerReport['tree'] {
  const tree = servedTree(target)
  if (tree !== undefined) return tree
  throw new NotServingError(target.role)
}

/** Says that a server follows no quorum. */
export class NotServingError extends BackupError {
  constructor(role: AdminTarget['role']) {
    super(`The server serves no clients: it is ${role}. Back up another member.`)
  }
}

/**
 * Reads the committed transactions after a zxid as a log file; resolves to undefined when the server does not have them any more. Rejects
 * with a `NotServingError`.
 */
export async function readLog(target: AdminTarget, after: Zxid): Promise<SourceLog | undefined> {
  const facts = await consistentFacts(target, after)
  // Open from here on, it keeps the files from a purge.
  const cursor = target.readHistory(after, Math.max(after, facts.upTo))
  const close = async (): Promise<unknown> => cursor.return?.()
  try {
    if (!(await target.hasLogAfter(after))) {
      await close()
      return undefined
    }
    const first = await cursor.next()
    return { ...facts, chunks: endable(encodeLog(withFirst(first, cursor)), close) }
  } catch (error) {
    await close()
    if (error instanceof DamageError) return undefined
    throw error
  }
}

/** Describes a tree between two transactions. In a later turn the next large one may have changed half of it. */
function consistentFacts(target: AdminTarget, after: Zxid): Promise<Omit<SourceLog, 'chunks'>> {
  const tree = servedTreeOf(target)
  return new Promise((resolve, reject) => {
    tree.whenConsistent(() => {
      // A role that has ended meanwhile has applied the rest of its log, which may never be committed.
      if (servedTree(target) !== tree) return reject(new NotServingError(target.role))
      const upTo = lastTransaction(target, tree.lastZxid, after)
      resolve({ upTo, nodes: tree.nodeCount, digest: digestText(tree) })
    })
  })
}

/**
 * Returns the last committed transaction. The zxid of a tree at the begin of an epoch is no transaction: the last one is of an earlier
 * epoch, and `after` itself where it is at that begin.
 */
function lastTransaction({ logRange }: AdminTarget, applied: Zxid, after: Zxid): Zxid {
  if (counterOf(applied) > 0) return applied
  const last = logRange.epochEnds.findLast((end) => end <= applied) ?? logRange.after
  return after <= applied ? Math.max(last, after) : last
}

async function* withFirst(
  first: IteratorResult<RawTxn>,
  rest: AsyncIterableIterator<RawTxn>,
): AsyncGenerator<RawTxn> {
  try {
    if (first.done === true) return
    yield first.value
    yield* rest
  } finally {
    // Where this ends at the first one, `yield*` has not begun and ends nothing.
    await rest.return?.()
  }
}
