import { epochOf } from '@zabra/protocol'
import type { Zxid } from '../core/types.ts'
import type { CommittedWindow } from '../core/zab/index.ts'
import type { Database } from '../database/index.ts'

/** More than these are not worth reading for the window. */
const MOST_BYTES = 64 << 20

/**
 * Brings the window to the end of the log between two roles: what the last role has logged without knowing that it was
 * committed is history now, and the next role begins with it. Where the log does not continue the window it begins anew.
 */
export async function catchUpWindow(window: CommittedWindow, database: Database): Promise<void> {
  const { lastZxid, logRange: verified } = database
  if (window.max === lastZxid) return
  const continues = window.max >= verified.after && window.max < lastZxid && contains(verified, window.max)
  if (!continues || verified.bytesAfter(window.max) > MOST_BYTES) return window.reset(lastZxid)
  for await (const { zxid, payload } of database.readHistory(window.max, lastZxid)) window.add(zxid, payload)
  if (window.max !== lastZxid) window.reset(lastZxid)
}

/** Whether a transaction is a point of the history that the log holds. */
function contains({ after, epochEnds }: Database['logRange'], zxid: Zxid): boolean {
  return zxid === after || epochEnds.some((end) => epochOf(end) === epochOf(zxid) && zxid <= end)
}
