import type { Disk, Logger } from '@zabra/runtime'
import type { DataFolders } from './data-folders.ts'
import { RecoveryError } from './errors.ts'
import { logsIn, snapshotsIn } from './file-names.ts'
import { setAside } from './set-aside.ts'

/** Name of the file that names the replacing snapshot. It exists from the commit point until the replacement is finished. */
const DECISION = 'replacement'
const INCOMING = /^incoming\.(.+)$/

/** Returns the name under which a snapshot is written before `replaceAllFiles`. It must be durable by then. */
export const incomingName = (snapshot: string): string => `incoming.${snapshot}`

/**
 * Replaces all logs and snapshots by one snapshot, which lies under its incoming name, atomically: one small file is the
 * commit point, and from then on every start completes the replacement. Files are set aside, not removed.
 */
export async function replaceAllFiles(
  disk: Disk,
  logger: Logger,
  folders: DataFolders,
  snapshot: string,
): Promise<void> {
  await disk.syncFolder(folders.snapshots)
  await disk.replaceFile(`${folders.snapshots}/${DECISION}`, new TextEncoder().encode(`${snapshot}\n`))
  await finishReplacement(disk, logger, folders)
}

/**
 * Finishes a replacement that was decided, or removes an incoming snapshot of one that was not. Call it before reading the folder.
 * Rejects with a `RecoveryError` where the replacing snapshot is missing.
 */
export async function finishReplacement(disk: Disk, logger: Logger, folders: DataFolders): Promise<void> {
  const { snapshots, logs } = folders
  const decision = `${snapshots}/${DECISION}`
  const names = await disk.list(snapshots)
  if (!names.includes(DECISION)) {
    for (const name of names) if (INCOMING.test(name)) await disk.remove(`${snapshots}/${name}`)
    return
  }
  const snapshot = new TextDecoder().decode(await disk.readFile(decision)).trim()
  const reason = `${snapshot} replaces them`
  const incoming = incomingName(snapshot)
  if (names.includes(incoming)) {
    // While the incoming file exists, a file of the final name belongs to the old history.
    if (names.includes(snapshot)) await setAside(disk, logger, snapshots, [snapshot], reason)
    await disk.rename(`${snapshots}/${incoming}`, `${snapshots}/${snapshot}`)
    await disk.syncFolder(snapshots)
  } else if (!names.includes(snapshot)) {
    throw new RecoveryError(
      `Expected ${snapshot}, which replaces all other files, got no such file`,
      snapshots,
      `Copy version-2 from another member, or remove ${DECISION} to start with the files before.`,
    )
  }
  const old = snapshotsIn(await disk.list(snapshots)).filter(({ name }) => name !== snapshot)
  const oldLogs = logsIn(await disk.list(logs))
  // The next start completes it, whatever a crash leaves. A leader that replaces the data waits for this before it is elected again.
  await setAside(disk, logger, snapshots, namesOf(old), reason, { anyOrder: true })
  await setAside(disk, logger, logs, namesOf(oldLogs), reason, { anyOrder: true })
  await disk.remove(decision)
  await disk.syncFolder(snapshots)
}

const namesOf = (files: readonly { readonly name: string }[]): string[] => files.map(({ name }) => name)
