import type { Disk } from '@zabra/runtime'
import { RecoveryError } from './errors.ts'
import { logsIn, snapshotsIn, VERSION_FOLDER } from './file-names.ts'

/** The two folders named `version-2`. They are one when `dataLogDir` is `dataDir`. */
export interface DataFolders {
  readonly snapshots: string
  readonly logs: string
}

/** The folders of the settings; files lie in `version-2` below them. */
export interface DataFolderSettings {
  readonly dataDir: string
  readonly dataLogDir: string
}

/** Returns the folders in which files lie. */
export const dataFoldersOf = ({ dataDir, dataLogDir }: DataFolderSettings): DataFolders => ({
  snapshots: `${dataDir}/${VERSION_FOLDER}`,
  logs: `${dataLogDir}/${VERSION_FOLDER}`,
})

/**
 * Creates missing folders, or rejects with a `RecoveryError` when one is missing and `autoCreate` is false, or when a folder
 * holds files of the other one: those would not be read, and what they hold would be lost silently.
 */
export async function openDataFolders(
  disk: Disk,
  settings: DataFolderSettings,
  autoCreate: boolean,
): Promise<DataFolders> {
  const folders = dataFoldersOf(settings)
  await ensureFolder(disk, settings.dataDir, autoCreate)
  if (folders.logs !== folders.snapshots) await ensureFolder(disk, settings.dataLogDir, autoCreate)
  await rejectMixedFolders(disk, folders)
  return folders
}

async function ensureFolder(disk: Disk, base: string, autoCreate: boolean): Promise<void> {
  const folder = `${base}/${VERSION_FOLDER}`
  if (await disk.exists(folder)) return
  if (!autoCreate) {
    throw new RecoveryError(
      'Expected an existing folder, got none',
      folder,
      'Create it, or set datadir.autocreate=true.',
    )
  }
  await disk.makeFolder(folder)
  await disk.syncFolder(base)
}

/** Rejects with a `RecoveryError` when one of two folders holds files of the other one. */
export async function rejectMixedFolders(disk: Disk, { snapshots, logs }: DataFolders): Promise<void> {
  if (logs === snapshots) return
  const log = logsIn(await disk.list(snapshots))[0]
  if (log !== undefined) {
    throw new RecoveryError(
      `Expected logs in ${logs} only, as dataLogDir says, got ${log.name}`,
      snapshots,
      'Move all log.* files to the folder of dataLogDir, or remove dataLogDir from the configuration.',
    )
  }
  const snapshot = snapshotsIn(await disk.list(logs))[0]
  if (snapshot !== undefined) {
    throw new RecoveryError(
      `Expected snapshots in ${snapshots} only, as dataDir says, got ${snapshot.name}`,
      logs,
      'Move all snapshot.* files to the folder of dataDir, or name that folder in dataDir.',
    )
  }
}

/** The name of a snapshot in the folder of snapshots while it is received, but for its ending; it becomes no part of the data. */
export const RECEIVED_FILE = 'restoring'
const TEMPORARY = /^writing\..*\.tmp$|^space-probe\.tmp$|^restoring(?:\.gz|\.snappy)?$/

/** Removes the temporary files that a crash has left: of snapshots, of probes for space, and snapshots that were received. */
export async function removeTemporaryFiles(disk: Disk, { snapshots, logs }: DataFolders): Promise<void> {
  for (const folder of new Set([snapshots, logs])) {
    for (const name of await disk.list(folder)) {
      if (TEMPORARY.test(name)) await disk.remove(`${folder}/${name}`)
    }
  }
}
