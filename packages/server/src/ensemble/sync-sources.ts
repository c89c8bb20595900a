import { epochOf } from '@zabra/protocol'
import type { Zxid } from '../core/types.ts'
import type { CommittedWindow, SyncSources } from '../core/zab/index.ts'
import type { Database } from '../database/index.ts'
import type { MemberContext } from './context.ts'

/** More bytes of log than these are not read to fill the window. */
const MAX_CATCH_UP_BYTES = 64 << 20

/** Returns the history from which this member syncs learners: the window, the log on disk, and snapshots. */
export function syncSources({ settings, database, window }: MemberContext): SyncSources {
  return {
    window,
    applied: () => database.tree.lastZxid,
    disk: () => database.logRange,
    diskBytesAfter: (zxid) => database.logRange.bytesAfter(zxid),
    snapshotBytes: () => database.snapshotBytes,
    snapshotSizeFactor: settings.snapshotSizeFactor,
    forceSnapshot: settings.forceSnapshotSync,
    truncateFromBytes: settings.truncateFromBytes,
  }
}

/**
 * Brings the window to the end of the log between two roles: transactions that the last role logged, committed or not, are
 * part of the history with which the next role begins. Where the log does not continue the window, the window is emptied.
 */
export async function catchUpWindow(window: CommittedWindow, database: Database): Promise<void> {
  const { lastZxid, logRange } = database
  if (window.max === lastZxid) return
  const continues = window.max >= logRange.after && window.max < lastZxid && isInHistory(logRange, window.max)
  if (!continues || logRange.bytesAfter(window.max) > MAX_CATCH_UP_BYTES) return window.reset(lastZxid)
  for await (const { zxid, payload } of database.readHistory(window.max, lastZxid)) window.add(zxid, payload)
  if (window.max !== lastZxid) window.reset(lastZxid)
}

/** Whether a transaction is in the history that the log holds, or is the one before it. */
function isInHistory({ after, epochEnds }: Database['logRange'], zxid: Zxid): boolean {
  return zxid === after || epochEnds.some((end) => epochOf(end) === epochOf(zxid) && zxid <= end)
}
