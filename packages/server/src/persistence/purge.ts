import type { Compression, Disk } from '@zabra/runtime'
import type { Zxid } from '../core/types.ts'
import type { DataFolders } from './data-folders.ts'
import { logsIn, snapshotsIn, type NamedFile } from './file-names.ts'
import { hasFinalSeal } from './snapshot-reader.ts'

/** Most bytes of logs that are kept for the next backup alone. */
const MAX_UNSAVED_BYTES = 1 << 30

export interface PurgeOptions {
  readonly compression: Compression
  /** The transaction after which an open reader reads; Infinity for none. */
  readonly keepFrom?: Zxid
  /** The transaction after which the next backup reads the log, by this server or another one; Infinity for none. */
  readonly unsavedAfter?: Zxid
  /** Called when logs that no backup has yet are removed because they are too long, with their bytes. */
  readonly droppedUnsaved?: (bytes: number) => void
}

/**
 * Removes snapshots and logs that neither recovery from the newest `retain` snapshots (at least 3) nor a reader of the log
 * after `keepFrom` needs (disk-format 10). Keeps up to 1 GiB of other logs that the next backup needs. Only snapshots with their final
 * seal count; a compressed one is decompressed to its end to find the seal. Resolves to the names removed.
 */
export async function purge(
  disk: Disk,
  folders: DataFolders,
  retain: number,
  options: PurgeOptions,
): Promise<string[]> {
  const { compression, keepFrom = Infinity } = options
  const snapshots = snapshotsIn(await disk.list(folders.snapshots))
  const sound: number[] = []
  for (const { name, zxid } of snapshots.toReversed()) {
    if (
      sound.length < Math.max(3, retain) &&
      (await hasFinalSeal(disk, folders.snapshots, name, compression))
    )
      sound.push(zxid)
  }
  if (sound.length === 0) return []
  const oldest = Math.min(sound.at(-1)!, keepFrom)
  const logs = logsIn(await disk.list(folders.logs))
  // The newest log that begins at or before the snapshot may hold transactions after it.
  const needed = Math.max(
    0,
    logs.findLastIndex(({ zxid }) => zxid <= oldest),
  )
  const unsaved = await unsavedBefore(needed, logs, disk, folders.logs, options)
  const removed: string[] = []
  const remove = async (folder: string, name: string): Promise<void> => {
    await disk.remove(`${folder}/${name}`)
    removed.push(name)
  }
  // Snapshots are removed first, so that none ever exists without the logs that it needs.
  for (const { name, zxid } of snapshots) if (zxid < oldest) await remove(folders.snapshots, name)
  for (const { name } of logs.slice(0, needed - unsaved)) await remove(folders.logs, name)
  if (removed.length > 0) {
    await disk.syncFolder(folders.snapshots)
    if (folders.logs !== folders.snapshots) await disk.syncFolder(folders.logs)
  }
  return removed
}

/** Resolves to how many logs before that of the index `needed` are kept for the next backup. `logs` are all, oldest first. */
async function unsavedBefore(
  needed: number,
  logs: readonly NamedFile[],
  disk: Disk,
  folder: string,
  { unsavedAfter = Infinity, droppedUnsaved = () => {} }: PurgeOptions,
): Promise<number> {
  const first = Math.max(
    0,
    logs.findLastIndex(({ zxid }) => zxid <= unsavedAfter + 1),
  )
  const unsaved = logs.slice(first, needed)
  let bytes = 0
  for (const { name } of unsaved) bytes += await disk.size(`${folder}/${name}`)
  if (bytes <= MAX_UNSAVED_BYTES) return unsaved.length
  droppedUnsaved(bytes)
  return 0
}
