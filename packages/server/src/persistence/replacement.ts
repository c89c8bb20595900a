import type { Disk, Logger } from '@zabra/runtime'
import { logsIn, snapshotsIn, type DataFolders } from './file-names.ts'
import { setAside } from './set-aside.ts'

/** Says which snapshot takes the place of all other files. While it is there the exchange is decided and not finished. */
const INTENT = 'replacement'
const INCOMING = /^incoming\.(.+)$/

/** Where a snapshot waits until it takes the place of everything else. It must be durable before `replaceAllFiles`. */
export const incomingName = (snapshot: string): string => `incoming.${snapshot}`

/**
 * Exchanges all logs and snapshots for one snapshot, which waits under its incoming name: all or nothing. It is decided by
 * one small file; from then on every start finishes what is left. Files are set aside, not removed.
 */
export async function replaceAllFiles(
  disk: Disk,
  logger: Logger,
  folders: DataFolders,
  snapshot: string,
): Promise<void> {
  await disk.syncFolder(folders.snapshots)
  await disk.replaceFile(`${folders.snapshots}/${INTENT}`, new TextEncoder().encode(`${snapshot}\n`))
  await finishReplacement(disk, logger, folders)
}

/** Finishes an exchange that is decided, and removes an incoming snapshot that is not. Call it before the folder is read. */
export async function finishReplacement(disk: Disk, logger: Logger, folders: DataFolders): Promise<void> {
  const { snapshots, logs } = folders
  const intent = `${snapshots}/${INTENT}`
  const names = await disk.list(snapshots)
  if (!names.includes(INTENT)) {
    for (const name of names) if (INCOMING.test(name)) await disk.remove(`${snapshots}/${name}`)
    return
  }
  const snapshot = new TextDecoder().decode(await disk.readFile(intent)).trim()
  const why = `${snapshot}, which came from a leader, takes their place`
  const incoming = incomingName(snapshot)
  if (names.includes(incoming)) {
    // A file of the same name is of the old history as long as the new one has not got its name.
    if (names.includes(snapshot)) await setAside(disk, logger, snapshots, [snapshot], why)
    await disk.rename(`${snapshots}/${incoming}`, `${snapshots}/${snapshot}`)
    await disk.syncFolder(snapshots)
  }
  const old = snapshotsIn(await disk.list(snapshots)).filter(({ name }) => name !== snapshot)
  const oldLogs = logsIn(await disk.list(logs)).toReversed()
  await setAside(disk, logger, snapshots, namesOf(old.toReversed()), why)
  await setAside(disk, logger, logs, namesOf(oldLogs), why)
  await disk.remove(intent)
  await disk.syncFolder(snapshots)
}

const namesOf = (files: readonly { readonly name: string }[]): string[] => files.map(({ name }) => name)
