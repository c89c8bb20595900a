import type { Disk } from '@zabra/runtime'
import { RecoveryError } from '../errors.ts'
import { logsIn, snapshotsIn, VERSION_FOLDER } from '../file-names.ts'
import type { DatabaseLocation } from './read-database.ts'

/**
 * Makes the folders of a server that has no data yet (disk-format 2.5): `version-2`, `myid` where an id is given, and the file
 * `initialize`, with which a member may vote without data although `db.autocreate` is false. Rejects with a `RecoveryError` where
 * logs or snapshots exist.
 */
export async function initializeData(
  disk: Disk,
  { dataDir, dataLogDir }: DatabaseLocation,
  serverId?: number,
): Promise<void> {
  for (const base of new Set([dataDir, dataLogDir])) {
    const folder = `${base}/${VERSION_FOLDER}`
    await disk.makeFolder(folder)
    await disk.syncFolder(base)
    const names = await disk.list(folder)
    const [file] = [...snapshotsIn(names), ...logsIn(names)]
    if (file !== undefined)
      throw new RecoveryError(
        `Expected a folder without data, got ${file.name}`,
        folder,
        'Name another folder, or move the files away.',
      )
  }
  if (serverId !== undefined)
    await disk.replaceFile(`${dataDir}/myid`, new TextEncoder().encode(`${serverId}\n`))
  await disk.replaceFile(`${dataDir}/initialize`, new Uint8Array(0))
}
