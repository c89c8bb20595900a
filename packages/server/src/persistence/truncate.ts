import { counterOf, formatZxid, ProtocolError } from '@zabra/protocol'
import type { Disk, Logger } from '@zabra/runtime'
import type { Zxid } from '../core/types.ts'
import { DamageError, RecoveryError } from './errors.ts'
import { dataFoldersOf, type DataFolders } from './data-folders.ts'
import { logsIn, snapshotsIn } from './file-names.ts'
import { recover, type Recovery, type RecoveryOptions } from './recover.ts'
import { setAside } from './set-aside.ts'

/** The history cut at a transaction, or the reason why it cannot be cut there; the disk is unchanged then. */
export type Truncation =
  | { readonly isExact: true; readonly recovery: Recovery }
  | { readonly isExact: false; readonly reason: string }

/**
 * Removes every transaction above `zxid`, exactly or not at all (disk-format 4.10). The history up to there is read first, from
 * a snapshot that holds nothing later, whatever its name says (disk-format H2 and H3), and must end at `zxid`. Only then files
 * change: snapshots that hold later transactions are set aside, then logs from the newest on, then the log that contains `zxid`
 * is cut. A crash between any two steps leaves a history that begins with the wanted one. No log may be open for writing.
 */
export async function truncateTo(options: RecoveryOptions, zxid: Zxid): Promise<Truncation> {
  let recovery: Recovery
  try {
    recovery = await recover({ ...options, upTo: zxid })
  } catch (error) {
    if (!isUnreadableHistory(error)) throw error
    return { isExact: false, reason: error.message }
  }
  const end = recovery.lastZxid
  // The start of an epoch is no transaction; the next one proves that the history contains this point.
  const isEpochStart = counterOf(zxid) === 0 && recovery.firstAboveLimit?.zxid === zxid + 1
  if (end !== zxid && !isEpochStart)
    return { isExact: false, reason: `the history up to it ends at 0x${formatZxid(end)}` }
  await cut(options.disk, options.logger, dataFoldersOf(options), recovery, zxid)
  recovery.tree.lastZxid = zxid
  return { isExact: true, recovery: { ...recovery, lastZxid: zxid } }
}

function isUnreadableHistory(error: unknown): error is Error {
  return (
    error instanceof DamageError ||
    error instanceof RecoveryError ||
    error instanceof ProtocolError ||
    error instanceof RangeError
  )
}

async function cut(
  disk: Disk,
  logger: Logger,
  folders: DataFolders,
  { snapshot, firstAboveLimit: cutFrom }: Recovery,
  zxid: Zxid,
): Promise<void> {
  const reason = `the leader has nothing after 0x${formatZxid(zxid)}`
  const snapshots = snapshotsIn(await disk.list(folders.snapshots))
  // Snapshots newer than the loaded one hold, or may hold, later transactions.
  const used = snapshots.findIndex(({ name }) => name === snapshot)
  const tooNew = snapshots.slice(used + 1).map(({ name }) => name)
  await setAside(disk, logger, folders.snapshots, tooNew.toReversed(), reason)
  const logs = logsIn(await disk.list(folders.logs)).filter((file) => file.zxid > zxid)
  const names = logs.map(({ name }) => name).toReversed()
  await setAside(disk, logger, folders.logs, names, reason)
  if (cutFrom === undefined || names.includes(cutFrom.file)) return
  const path = `${folders.logs}/${cutFrom.file}`
  const writer = await disk.openWrite(path, { create: false, durable: false })
  try {
    await writer.truncate(cutFrom.offset)
    await writer.sync()
  } finally {
    await writer.close()
  }
  logger.warn({ id: 'log.cut', file: path, offset: cutFrom.offset }, `Cut the log: ${reason}`)
}
