import type { Compression, Disk, Logger } from '@zabra/runtime'
import { Tree } from '../../core/tree/index.ts'
import type { Zxid } from '../../core/types.ts'
import { DamageError, recover, type Recovery } from '../index.ts'
import { readLog } from './read-log.ts'
import { nodesOf, type SnapshotNode } from './read-snapshot.ts'

export interface DatabaseLocation {
  /** The folders of the settings; files lie in `version-2` below them. */
  readonly dataDir: string
  readonly dataLogDir: string
}

/** The state that a server would have after a start on some files. */
export interface DatabaseContents {
  readonly snapshot: string | undefined
  /** Transactions applied after the snapshot. */
  readonly replayed: number
  readonly lastZxid: Zxid
  /** Parents before their children. */
  nodes(): Generator<SnapshotNode>
}

/**
 * Reads the newest sound snapshot and replays the log after it, as a server does at a start. Changes no file, and leaves out a last
 * write that a crash cut short. A server may write to the log meanwhile: then the last transactions may be left out. Rejects with a
 * `DamageError` or `RecoveryError` for files from which a server would not start.
 */
export async function readDatabase(
  disk: Disk,
  location: DatabaseLocation,
  compression: Compression,
  logger: Logger,
): Promise<DatabaseContents> {
  const read = (upTo: Zxid): Promise<Recovery> =>
    recover({
      ...location,
      disk,
      logger,
      compression,
      autoCreate: false,
      trustEmptySnapshot: false,
      createTree: () => new Tree({ digest: true, extendedTypes: true }),
      upTo,
    })
  const recovery = await read(Infinity).catch(async (error: unknown) => {
    if (!(error instanceof DamageError)) throw error
    const last = await lastOfGrowingLog(disk, error.file)
    if (last === undefined) throw error
    // The transaction after the limit is whole too, so nothing is read where a server writes.
    return read(last - 1)
  })
  const { tree, snapshot, replayed, lastZxid } = recovery
  return { snapshot, replayed, lastZxid, nodes: () => nodesOf(tree) }
}

/** Returns the last transaction of a log in which damage was seen only because a server was writing to it; else undefined. */
async function lastOfGrowingLog(disk: Disk, file: string): Promise<Zxid | undefined> {
  if (!/\/log\.[\da-f]+$/.test(file)) return undefined
  const report = await readLog(disk, file)
  return report.state === 'sound' ? report.last : undefined
}
