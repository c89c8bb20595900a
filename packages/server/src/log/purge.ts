import type { Disk } from '@zabra/runtime'
import { logsIn, snapshotsIn } from './file-names.ts'
import { looksWhole } from './snapshot-reader.ts'

/**
 * Removes snapshots and logs that recovery from any of the newest `retain` snapshots (at least 3) does not need
 * (`PurgeTxnLog`). Folders are those named `version-2`. Resolves to the names removed.
 */
export async function purge(
  disk: Disk,
  folders: { snapshots: string; logs: string },
  retain: number,
): Promise<string[]> {
  const snapshots = snapshotsIn(await disk.list(folders.snapshots))
  const sound: number[] = []
  for (const { name, zxid } of snapshots.toReversed()) {
    if (sound.length < Math.max(3, retain) && (await looksWhole(disk, `${folders.snapshots}/${name}`)))
      sound.push(zxid)
  }
  const oldest = sound.at(-1)
  if (oldest === undefined) return []
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
