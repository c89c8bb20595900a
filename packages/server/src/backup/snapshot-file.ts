import type { Compression, Disk } from '@zabra/runtime'
import { snapshotName, writeSnapshot } from '../persistence/index.ts'
import type { LoadedBackup } from './load-backup.ts'

/** A snapshot file. */
export interface SnapshotFile {
  readonly path: string
  readonly bytes: number
}

/** Writes a backup as one compressed snapshot file into a folder, which must exist. */
export async function writeSnapshotFile(
  { tree, sessions }: LoadedBackup,
  folder: string,
  { disk, compression: compressor }: { readonly disk: Disk; readonly compression: Compression },
): Promise<SnapshotFile> {
  const path = `${folder}/${snapshotName(tree.lastZxid, 'gz')}`
  const { bytes } = await writeSnapshot(tree, sessions, path, { disk, folder, compression: 'gz', compressor })
  return { path, bytes }
}
