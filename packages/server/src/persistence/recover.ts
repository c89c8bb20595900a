import { formatZxid, ProtocolError } from '@zabra/protocol'
import type { Compression, Disk, Logger } from '@zabra/runtime'
import type { SessionMap } from '../core/session-map.ts'
import { OPEN_ACL_ID, Tree } from '../core/tree/index.ts'
import type { Digest, Zxid } from '../core/types.ts'
import { openDataFolders, removeTemporaryFiles, type DataFolders } from './data-folders.ts'
import { ADOPT_ADVICE, DamageError, MISSING_LOG_ADVICE, RecoveryError } from './errors.ts'
import { logsIn, snapshotsIn } from './file-names.ts'
import type { LogRange } from './log-range.ts'
import type { Pause } from './pause.ts'
import { finishReplacement } from './replacement.ts'
import type { RecoveryProgress } from './recovery-progress.ts'
import { neededLogs, Replay, type TornWrite, type TxnLocation } from './replay.ts'
import { loadSnapshot, looksComplete, type LoadedSnapshot } from './snapshot-reader.ts'

export interface RecoveryOptions {
  readonly disk: Disk
  readonly logger: Logger
  readonly compression: Compression
  /** The folders of the settings; files lie in `version-2` below them. */
  readonly dataDir: string
  readonly dataLogDir: string
  /** Creates missing folders; with false a missing folder is an error. */
  readonly autoCreate: boolean
  /** Accepts logs without any snapshot. */
  readonly trustEmptySnapshot: boolean
  /** Creates a tree for each attempt, so that nothing of a damaged snapshot is left in the next. */
  readonly createTree: () => Tree
  /** Reads the monotonic clock, in milliseconds. */
  readonly now?: () => number
  /** Reads the history only up to this transaction, from a snapshot that holds nothing later, and changes no file. */
  readonly upTo?: Zxid
  /** Called often: awaited where it returns a promise, so that a server can serve beside it. */
  readonly pause?: Pause | undefined
  /** Counts what is read. */
  readonly progress?: RecoveryProgress | undefined
}

export interface Recovery {
  readonly tree: Tree
  /** Sessions that have not ended, with their timeouts in milliseconds. */
  readonly sessions: SessionMap<number>
  readonly lastZxid: Zxid
  /** Whether neither a snapshot nor a transaction was found. */
  readonly wasEmpty: boolean
  readonly snapshot: string | undefined
  /** The same, if it holds nothing of later transactions. */
  readonly exactSnapshot: ExactSnapshot | undefined
  readonly nodes: number
  /** How long the snapshot and the log took to read, in milliseconds; 0 without `now`. */
  readonly snapshotMs: number
  readonly logMs: number
  readonly replayed: number
  readonly logs: readonly string[]
  readonly skipped: readonly SkippedSnapshot[]
  readonly tornWrites: readonly TornWrite[]
  /** The transactions that were read after the snapshot. */
  readonly logRange: LogRange
  /** Whether the digests of later transactions can be compared with the tree's. */
  readonly canCompareDigests: boolean
  /** The first transaction above `upTo`. */
  readonly firstAboveLimit: TxnLocation | undefined
}

/** A snapshot file that holds the tree after a transaction exactly. */
export interface ExactSnapshot {
  readonly file: string
  readonly zxid: Zxid
  readonly nodes: number
  /** Undefined where digests are disabled. */
  readonly digest: Digest | undefined
}

/** A snapshot that could not be used. */
export interface SkippedSnapshot {
  readonly file: string
  readonly reason: string
}

/**
 * Loads the newest sound snapshot and every later transaction of the log (disk-format 8). Changes nothing but the end of the
 * newest log, where a crash cut a write short, and only when everything else is sound. Rejects with a `DamageError` or
 * `RecoveryError`, whose message says what to do.
 */
export async function recover(options: RecoveryOptions): Promise<Recovery> {
  const { disk, logger, upTo, now = () => 0 } = options
  const folders = await openDataFolders(disk, options, options.autoCreate)
  if (upTo === undefined) {
    await finishReplacement(disk, logger, folders)
    await removeTemporaryFiles(disk, folders)
  }
  for (const folder of new Set([folders.logs, folders.snapshots])) await rejectImpossibleNames(disk, folder)
  const skipped: SkippedSnapshot[] = []
  const startedAt = now()
  const loaded = await loadNewestSnapshot(options, folders, skipped)
  const loadedAt = now()
  const tree = loaded?.tree ?? options.createTree()
  const exactSnapshot = exactOf(loaded)
  const files = logsIn(await disk.list(folders.logs))
  const { pause, progress } = options
  const replayOptions = { disk, logger, folder: folders.logs, upTo: upTo ?? Infinity, pause, progress }
  const replay = new Replay(replayOptions, tree, loaded?.snapshot)
  progress?.begin('replay', await bytesOfLogs(disk, folders.logs, loaded?.snapshot.zxid ?? 0))
  await replay.run(files)
  if (!loaded && replay.appliedCount > 0 && !options.trustEmptySnapshot) {
    throw new RecoveryError(
      'Expected a snapshot beside log entries, got none',
      folders.snapshots,
      'Bring the missing snapshot back, or set snapshot.trust.empty=true once if the log is complete from its first transaction.',
    )
  }
  if (loaded) rejectNodesWithoutAcl(tree, loaded, folders.snapshots)
  if (upTo === undefined) await replay.repairAndSync()
  return {
    tree,
    sessions: replay.sessions,
    lastZxid: tree.lastZxid,
    wasEmpty: !loaded && replay.appliedCount === 0,
    snapshot: loaded?.file,
    exactSnapshot,
    nodes: tree.nodeCount,
    snapshotMs: loadedAt - startedAt,
    logMs: now() - loadedAt,
    replayed: replay.appliedCount,
    logs: replay.readFiles,
    skipped,
    tornWrites: replay.tornWrites,
    logRange: replay.logRange,
    canCompareDigests: replay.canCompareDigests,
    firstAboveLimit: replay.firstAboveLimit,
  }
}

/** Does the same for a program that is no server, and changes no file. */
export const readData = (
  options: Pick<RecoveryOptions, 'disk' | 'logger' | 'compression' | 'dataDir' | 'dataLogDir' | 'pause'>,
): Promise<Recovery> =>
  recover({
    ...options,
    autoCreate: false,
    trustEmptySnapshot: false,
    createTree: () => new Tree({ digest: true, extendedTypes: true }),
    upTo: Infinity,
  })

/**
 * Throws a `RecoveryError` for a file whose name holds a zxid beyond `Number.MAX_SAFE_INTEGER`: it would always be the newest, and
 * hide what was written after it.
 */
async function rejectImpossibleNames(disk: Disk, folder: string): Promise<void> {
  const names = await disk.list(folder)
  const file = [...logsIn(names), ...snapshotsIn(names)].find(({ zxid }) => !Number.isSafeInteger(zxid))
  if (file === undefined) return
  throw new RecoveryError(
    `Expected a zxid of at most ${formatZxid(Number.MAX_SAFE_INTEGER)} in the name of a file, got ${file.name}`,
    folder,
    'No server of this ensemble can have written it. Move it away, or give it back the name that it had.',
  )
}

interface Loaded {
  readonly tree: Tree
  readonly file: string
  readonly snapshot: LoadedSnapshot
}

/** Describes a snapshot that was loaded, before the log is replayed; undefined if the tree may have changed while it was written. */
function exactOf(loaded: Loaded | undefined): ExactSnapshot | undefined {
  if (loaded === undefined) return undefined
  const { tree, file, snapshot } = loaded
  const { zxid, lastZxid } = snapshot
  return lastZxid === zxid ? { file, zxid, nodes: tree.nodeCount, digest: tree.digest } : undefined
}

/** Loads the newest snapshot that is sound. Rejects when there are snapshots and none is. */
async function loadNewestSnapshot(
  { disk, createTree, compression, logger, upTo = Infinity, pause, progress }: RecoveryOptions,
  { snapshots: folder, logs }: DataFolders,
  skipped: SkippedSnapshot[],
): Promise<Loaded | undefined> {
  let failure: unknown
  for (const file of snapshotsIn(await disk.list(folder)).toReversed()) {
    if (file.zxid > upTo) continue
    const tree = createTree()
    try {
      if (!(await looksComplete(disk, `${folder}/${file.name}`))) {
        skipped.push({ file: file.name, reason: 'its writing was not finished' })
      } else {
        const path = `${folder}/${file.name}`
        progress?.begin('snapshot', (await disk.size(path)) + (await bytesOfLogs(disk, logs, file.zxid)))
        const counted = progress?.counting(disk) ?? disk
        const snapshot = await loadSnapshot(counted, folder, file, tree, compression, pause)
        if (upTo !== Infinity && !endsAtOrBefore(snapshot, upTo)) continue
        return { tree, file: file.name, snapshot }
      }
    } catch (error) {
      if (
        !(error instanceof DamageError) &&
        !(error instanceof ProtocolError) &&
        !(error instanceof RangeError)
      )
        throw error
      failure = error
      skipped.push({ file: file.name, reason: error.message })
    }
    logger.warn(
      { id: 'recovery.snapshot-skipped', ...skipped.at(-1) },
      `Skipping ${file.name}: ${skipped.at(-1)!.reason}`,
    )
  }
  if (skipped.length === 0) return undefined
  throw new RecoveryError(
    `Expected one sound snapshot, got ${skipped.length} that are damaged (${skipped[0]!.file}: ${skipped[0]!.reason})`,
    folder,
    `Restore one from a backup or from another server; or, ${ADOPT_ADVICE}.`,
    { cause: failure },
  )
}

/** Resolves to the bytes of the log files that are read after a snapshot. */
async function bytesOfLogs(disk: Disk, folder: string, zxid: Zxid): Promise<number> {
  const files = neededLogs(logsIn(await disk.list(folder)), zxid)
  const sizes = await Promise.all(files.map(({ name }) => disk.size(`${folder}/${name}`)))
  return sizes.reduce((sum, size) => sum + size, 0)
}

/** Returns whether a snapshot has no effects of transactions above `limit`. False if it does not record where it ends. */
function endsAtOrBefore({ lastZxid, digest, zxid }: LoadedSnapshot, limit: Zxid): boolean {
  const end = lastZxid ?? digest?.zxid
  return end !== undefined && end >= zxid && end <= limit
}

/** Throws a `RecoveryError` if a node whose list the snapshot lacks has not got one from the log (disk-format 7.8). */
function rejectNodesWithoutAcl(tree: Tree, { file, snapshot }: Loaded, folder: string): void {
  const left = snapshot.nodesWithoutAcl.find(
    (path) => tree.has(path) && tree.aclIdOf(tree.find(path)) === OPEN_ACL_ID,
  )
  if (left === undefined) return
  throw new RecoveryError(
    `Expected the access list of ${left} in the table of ${file} or in the log after it, got neither`,
    folder,
    MISSING_LOG_ADVICE,
  )
}
