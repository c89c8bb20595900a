import type { Compression, Disk, Logger } from '@zabra/runtime'
import { Tree } from '../../core/tree/index.ts'
import type { Zxid } from '../../core/types.ts'
import { recover } from '../index.ts'
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
 * write that a crash cut short. Rejects with a `DamageError` or `RecoveryError` for files from which a server would not start.
 */
export async function readDatabase(
  disk: Disk,
  location: DatabaseLocation,
  compression: Compression,
  logger: Logger,
): Promise<DatabaseContents> {
  const recovery = await recover({
    ...location,
    disk,
    logger,
    compression,
    autoCreate: false,
    trustEmptySnapshot: false,
    createTree: () => new Tree({ digest: true, extendedTypes: true }),
    upTo: Infinity,
  })
  const { tree, snapshot, replayed, lastZxid } = recovery
  return { snapshot, replayed, lastZxid, nodes: () => nodesOf(tree) }
}
