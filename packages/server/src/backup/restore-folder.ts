import { epochOf, makeZxid, OpCode } from '@zabra/protocol'
import type { Compression, Disk } from '@zabra/runtime'
import type { Tree } from '../core/tree/index.ts'
import type { Zxid } from '../core/types.ts'
import {
  logsIn,
  snapshotName,
  snapshotsIn,
  VERSION_FOLDER,
  writeFeatureState,
  writeSnapshot,
} from '../persistence/index.ts'
import { BackupUsageError } from './errors.ts'
import type { LoadedBackup } from './load-backup.ts'

export interface RestoreOptions {
  readonly disk: Disk
  readonly compression: Compression
  /** The folder of the snapshots, which also gets the epoch files. */
  readonly dataDir: string
  readonly dataLogDir: string
  /** Keeps sessions with their ephemeral nodes; they are closed otherwise. */
  readonly keepSessions: boolean
  /** The last transaction that any client may have seen: zxids go on in a later epoch. */
  readonly lastSeen: Zxid
  /** For the transactions that close sessions, in milliseconds since 1970. */
  readonly now: number
}

/** A restored data folder. */
export interface RestoredFolder {
  readonly snapshot: string
  /** The last transaction in the folder, in an epoch that no client has seen. */
  readonly zxid: Zxid
  readonly nodes: number
  readonly closedSessions: number
}

/**
 * Writes the tree of a backup as a data folder from which a server starts. Rejects with a `BackupError` when the folders hold data.
 * The tree must not be used afterwards.
 */
export async function restoreFolder(
  { tree, sessions, level }: LoadedBackup,
  options: RestoreOptions,
): Promise<RestoredFolder> {
  const { disk, dataDir, dataLogDir, keepSessions, lastSeen, compression } = options
  await rejectData(disk, [dataDir, dataLogDir])
  const epoch = epochOf(Math.max(lastSeen, tree.lastZxid)) + 1
  const before = sessions.size
  if (!keepSessions) {
    for (const _ of closeSessions(tree, sessions.keys(), makeZxid(epoch, 0), options.now));
    sessions.clear()
  }
  tree.lastZxid = Math.max(tree.lastZxid, makeZxid(epoch, 0))
  const folder = `${dataDir}/${VERSION_FOLDER}`
  for (const base of new Set([dataDir, dataLogDir])) await disk.makeFolder(`${base}/${VERSION_FOLDER}`)
  const snapshot = snapshotName(tree.lastZxid, 'none')
  const epochFile = new TextEncoder().encode(String(epoch))
  for (const name of ['currentEpoch', 'acceptedEpoch']) await disk.replaceFile(`${folder}/${name}`, epochFile)
  // Before the data: a release below the level must not start on them.
  if (level > 0) await writeFeatureState(disk, folder, { finalized: level, proposed: 0 })
  // The snapshot gets its name last: without it the folder holds no data, and the restore can be run again.
  const unfinished = `${folder}/writing.${snapshot}.tmp`
  await writeSnapshot(tree, sessions, unfinished, {
    disk,
    folder,
    compression: 'none',
    compressor: compression,
  })
  await disk.rename(unfinished, `${folder}/${snapshot}`)
  await disk.syncFolder(folder)
  return {
    snapshot,
    zxid: tree.lastZxid,
    nodes: tree.nodeCount,
    closedSessions: keepSessions ? 0 : before,
  }
}

/**
 * Ends sessions by transactions, as a leader does, so that parents know of the removal of their ephemeral nodes. Yields after each, so
 * that a server can do something else in between.
 */
export function* closeSessions(
  tree: Tree,
  ids: Iterable<bigint>,
  epochStart: Zxid,
  time: number,
): Generator<void> {
  let zxid = epochStart
  // An ephemeral node may belong to a session that the log lacks.
  for (const sessions of [ids, tree.owners.sessions()])
    for (const sessionId of sessions) {
      const paths2Delete = [...tree.owners.ofSession(sessionId)].map((node) => tree.pathOf(node))
      zxid++
      tree.apply({ sessionId, cxid: 0, zxid, time }, { type: OpCode.closeSession, paths2Delete })
      yield
    }
}

async function rejectData(disk: Disk, folders: readonly string[]): Promise<void> {
  for (const base of new Set(folders)) {
    const folder = `${base}/${VERSION_FOLDER}`
    if (!(await disk.exists(folder))) continue
    const names = await disk.list(folder)
    const [file] = [...snapshotsIn(names), ...logsIn(names)]
    if (file !== undefined)
      throw new BackupUsageError(
        `Expected a folder without data, got ${file.name} in ${folder}. Name another folder, or move ${VERSION_FOLDER} away.`,
      )
  }
}
