import type { Compression, Disk } from '@zabra/runtime'
import { logsIn, snapshotsIn, type DataFolders } from './file-names.ts'
import { hasFinalSeal } from './snapshot-reader.ts'

/**
 * Removes snapshots and logs that recovery from any of the newest `retain` snapshots (at least 3) does not need, nor who reads
 * the log behind `keepFrom` (`PurgeTxnLog`). A snapshot counts when its end is there; a compressed one is unpacked for
 * that, since its beginning says nothing. Resolves to the names removed.
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
  // The newest log that begins at or before the snapshot may hold transactions behind it.
  const reaching = logs.findLast(({ zxid }) => zxid <= oldest)
  const removed: string[] = []
  const take = async (folder: string, name: string): Promise<void> => {
    await disk.remove(`${folder}/${name}`)
    removed.push(name)
  }
  // Snapshots go first, so that no snapshot is ever there without the logs that it needs.
  for (const { name, zxid } of snapshots) if (zxid < oldest) await take(folders.snapshots, name)
  for (const file of logs)
    if (file.zxid < oldest && file.name !== reaching?.name) await take(folders.logs, file.name)
  if (removed.length > 0) {
    await disk.syncFolder(folders.snapshots)
    if (folders.logs !== folders.snapshots) await disk.syncFolder(folders.logs)
  }
  return removed
}
