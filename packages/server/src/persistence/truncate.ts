import { counterOf, formatZxid, ProtocolError } from '@zabra/protocol'
import type { Disk, Logger } from '@zabra/runtime'
import type { Zxid } from '../core/types.ts'
import { DamageError, RecoveryError } from './errors.ts'
import { logsIn, snapshotsIn, type DataFolders } from './file-names.ts'
import { dataFoldersOf, recover, type Recovery, type RecoveryOptions } from './recover.ts'
import { setAside } from './set-aside.ts'

/** A history cut at a transaction, or why that cannot be done; the disk is unchanged then. */
export type Truncation =
  | { readonly exact: true; readonly recovery: Recovery }
  | { readonly exact: false; readonly reason: string }

/**
 * Removes every transaction above `zxid`: exactly, or not at all. The history up to there is read first, from a snapshot that
 * holds nothing later, whatever its name says (hazards H2 and H3 of Apache ZooKeeper), and has to end at `zxid`. Only then
 * files change: snapshots that hold later transactions are set aside, then logs from the newest on, then the log in which
 * `zxid` lies is cut. A crash between any two of these leaves a history that begins with the one wanted. Nobody may be
 * writing the log.
 */
export async function truncateTo(options: RecoveryOptions, zxid: Zxid): Promise<Truncation> {
  let recovery: Recovery
  try {
    recovery = await recover({ ...options, upTo: zxid })
  } catch (error) {
    if (!isUnreadableHistory(error)) throw error
    return { exact: false, reason: error.message }
  }
  const end = recovery.lastZxid
  // Where an epoch begins there is no transaction; the one behind it shows that this history was there.
  const atStart = counterOf(zxid) === 0 && recovery.firstAboveLimit?.zxid === zxid + 1
  if (end !== zxid && !atStart)
    return { exact: false, reason: `the history up to it ends at 0x${formatZxid(end)}` }
  await cut(options.disk, options.logger, dataFoldersOf(options), recovery, zxid)
  recovery.tree.lastZxid = zxid
  return { exact: true, recovery: { ...recovery, lastZxid: zxid } }
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
  const why = `the leader has nothing behind 0x${formatZxid(zxid)}`
  const snapshots = snapshotsIn(await disk.list(folders.snapshots))
  // Whatever is newer than the one that was loaded holds, or may hold, later transactions.
  const used = snapshots.findIndex(({ name }) => name === snapshot)
  const tooNew = snapshots.slice(used + 1).map(({ name }) => name)
  await setAside(disk, logger, folders.snapshots, tooNew.toReversed(), why)
  const logs = logsIn(await disk.list(folders.logs)).filter((file) => file.zxid > zxid)
  const names = logs.map(({ name }) => name).toReversed()
  await setAside(disk, logger, folders.logs, names, why)
  if (cutFrom === undefined || names.includes(cutFrom.file)) return
  const path = `${folders.logs}/${cutFrom.file}`
  const writer = await disk.openWrite(path, { create: false, durable: false })
  try {
    await writer.truncate(cutFrom.offset)
    await writer.sync()
  } finally {
    await writer.close()
  }
  logger.warn({ file: path, offset: cutFrom.offset }, `Cut the log: ${why}`)
}
