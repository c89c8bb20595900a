import type { Compression, Disk } from '@zabra/runtime'
import type { DataFolders } from './data-folders.ts'
import { logsIn, snapshotsIn } from './file-names.ts'
import { hasFinalSeal } from './snapshot-reader.ts'

/**
 * Removes snapshots and logs that neither recovery from the newest `retain` snapshots (at least 3) nor a reader of the log
 * after `keepFrom` needs (disk-format 10). Only snapshots with their final seal count; a compressed one is decompressed to its
 * end to find the seal. Resolves to the names removed.
 */
export async function purge(
  disk: Disk,
  folders: DataFolders,
  retain: number,
  { compression, keepFrom = Infinity }: { readonly compression: Compression; readonly keepFrom?: number },
): Promise<string[]> {
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
  const newestBefore = logs.findLast(({ zxid }) => zxid <= oldest)
  const removed: string[] = []
  const remove = async (folder: string, name: string): Promise<void> => {
    await disk.remove(`${folder}/${name}`)
    removed.push(name)
  }
  // Snapshots are removed first, so that none ever exists without the logs that it needs.
  for (const { name, zxid } of snapshots) if (zxid < oldest) await remove(folders.snapshots, name)
  for (const file of logs)
    if (file.zxid < oldest && file.name !== newestBefore?.name) await remove(folders.logs, file.name)
  if (removed.length > 0) {
    await disk.syncFolder(folders.snapshots)
    if (folders.logs !== folders.snapshots) await disk.syncFolder(folders.logs)
  }
  return removed
}
