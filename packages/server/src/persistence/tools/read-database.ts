import type { Compression, Disk, Logger } from '@zabra/runtime'
import type { Zxid } from '../../core/types.ts'
import { DamageError, readData, type Recovery } from '../index.ts'
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
  readonly nodes: () => Generator<SnapshotNode>
}

/**
 * Reads the newest sound snapshot and replays the log after it, as a server does at a start. Changes no file, and leaves out a last
 * write that a crash cut short. A server may write to the log meanwhile: then transactions that it has just written may be left out. Rejects with a
 * `DamageError` or `RecoveryError` for files from which a server would not start.
 */
export async function readDatabase(
  disk: Disk,
  location: DatabaseLocation,
  compression: Compression,
  logger: Logger,
): Promise<DatabaseContents> {
  const read = (from: Disk): Promise<Recovery> => readData({ ...location, disk: from, logger, compression })
  const recovery = await read(disk).catch(async (error: unknown) => {
    const end = error instanceof DamageError ? await endOfGrowingLog(disk, error.file) : undefined
    if (end === undefined) throw error
    return read(withEnd(disk, (error as DamageError).file, end))
  })
  const { tree, snapshot, replayed, lastZxid } = recovery
  return { snapshot, replayed, lastZxid, nodes: () => nodesOf(tree) }
}

/** Returns the bytes that are whole in a log in which damage was seen only because a server was writing to it; else undefined. */
async function endOfGrowingLog(disk: Disk, file: string): Promise<number | undefined> {
  if (!/\/log\.[\da-f]+$/.test(file)) return undefined
  const report = await readLog(disk, file)
  return report.state === 'sound' ? report.end : undefined
}

/** Returns a disk to read, on which a file ends at `end`. */
function withEnd(disk: Disk, file: string, end: number): Disk {
  const view: Pick<Disk, 'list' | 'exists' | 'openRead'> = {
    list: (folder) => disk.list(folder),
    exists: (path) => disk.exists(path),
    openRead: async (path) => {
      const reader = await disk.openRead(path)
      if (path !== file) return reader
      return {
        read: (into, position) => reader.read(into.subarray(0, Math.max(0, end - position)), position),
        size: () => Promise.resolve(end),
        close: () => reader.close(),
      }
    },
  }
  return view as Disk
}
