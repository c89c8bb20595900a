import type { Compression, Disk, Logger } from '@zabra/runtime'
import {
  incomingName,
  replaceAllFiles,
  snapshotName,
  writeSnapshot,
  type DataFolders,
  type Recovery,
} from '../index.ts'

/**
 * Replaces the data of a stopped member by a snapshot of what was recovered of them and changed, as a whole, and sets the former files
 * aside. Returns the name of the snapshot.
 */
export async function replaceData(
  { tree, sessions }: Pick<Recovery, 'tree' | 'sessions'>,
  folders: DataFolders,
  {
    disk,
    logger,
    compression,
  }: { readonly disk: Disk; readonly logger: Logger; readonly compression: Compression },
): Promise<string> {
  const snapshot = snapshotName(tree.lastZxid, 'none')
  await writeSnapshot(tree, sessions, `${folders.snapshots}/${incomingName(snapshot)}`, {
    disk,
    folder: folders.snapshots,
    compression: 'none',
    compressor: compression,
  })
  await replaceAllFiles(disk, logger, folders, snapshot)
  return snapshot
}
