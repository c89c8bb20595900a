import { counterOf, epochOf } from '@zabra/protocol'
import type { Zxid } from '../types.ts'
import type { CommittedWindow } from './committed-window.ts'

/** A stretch of the log that was verified to be our committed history without a gap (hazard H1). */
export interface DiskRange {
  /** A point of our history: entries after this one are in the log. */
  readonly after: Zxid
  /** The last entry of the stretch. */
  readonly upTo: Zxid
  /** The last entry of each epoch in the stretch, ascending: without gaps, these tell which transactions are in it. */
  readonly epochEnds: readonly Zxid[]
}

/** Where a leader can take history from. */
export interface SyncSources {
  readonly window: CommittedWindow
  /** The last transaction that is applied to the tree. */
  applied(): Zxid
  /**
   * The longest verified stretch of the log, ending at `window.base` or later. Undefined without one. It must hold only what the
   * log has since the last SNAP and the last cut, read and checked, never what files happen to contain.
   */
  disk(): DiskRange | undefined
  /** Bytes of log from the first entry after this zxid to the end; an estimate that is not too small. */
  diskBytesAfter(zxid: Zxid): number
  /** Bytes of the newest snapshot. */
  snapshotBytes(): number
  /** Log is sent instead of a snapshot up to this part of its size (`snapshotSizeFactor`); negative for never, 0 for always. */
  readonly snapshotSizeFactor: number
  /** `forceSnapshotSync`. */
  readonly forceSnapshot: boolean
  /**
   * Learners are cut back (TRUNC) only when a snapshot would be of so many bytes. Apache ZooKeeper can keep what it was told
   * to cut (hazards H2 and H3), and a snapshot always is safe. 0 for always.
   */
  readonly truncateFromBytes: number
}

/** A transaction that a plan sends as PROPOSAL and COMMIT. */
export interface PlannedEntry {
  readonly zxid: Zxid
  readonly payload: Uint8Array
}

/** How a learner is brought up to date. Sent in the order of the fields. */
export type SyncPlan =
  | {
      readonly how: 'diff' | 'trunc'
      /** The zxid of the DIFF or TRUNC packet. */
      readonly zxid: Zxid
      /** Entries after `after` up to and with `upTo` are read from the log and sent as PROPOSAL and COMMIT each. */
      readonly disk?: { readonly after: Zxid; readonly upTo: Zxid }
      /** Then these, each as PROPOSAL and COMMIT. */
      readonly entries: readonly PlannedEntry[]
    }
  | {
      readonly how: 'snap'
      readonly reason: string
      /** The tree as it is now, or later; the packet carries the zxid that is applied when the first byte is taken. */
      readonly entries: readonly PlannedEntry[]
    }

const UNTRUSTED_ZXID = -1

/**
 * Decides how a learner whose last transaction is `learner` is brought up to date (9.2, 9.3, 9.6).
 *
 * A zxid names one transaction for good, since an epoch has one leader. So a learner whose last transaction is in our
 * history has the same history up to there, and lacks what comes after it. Whatever is not clear is left to a snapshot.
 */
export function planSync(learner: Zxid, sources: SyncSources): SyncPlan {
  const { window } = sources
  // S1 Asked for, or the learner does not vouch for what it has.
  if (sources.forceSnapshot) return planSnapshot(sources, 'snapshots are forced by the settings')
  if (learner <= UNTRUSTED_ZXID) return planSnapshot(sources, 'the learner does not trust its data')
  // S2 Nothing is missing.
  if (learner === window.max) return { how: 'diff', zxid: learner, entries: [] }
  if (learner > window.max) return planForLearnerAhead(learner, sources)
  if (learner >= window.base) return planFromWindow(learner, sources)
  return planFromDisk(learner, sources)
}

/** A zxid that no transaction has: where the epoch of a leader begins. */
const isEpochStart = (zxid: Zxid): boolean => zxid > 0 && counterOf(zxid) === 0

/**
 * S3 What a learner has beyond our history was never committed, and has to go. A learner at the start of an epoch in
 * which nothing happened cannot be cut to a place in it, and gets everything.
 */
function planForLearnerAhead(learner: Zxid, sources: SyncSources): SyncPlan {
  if (isEpochStart(learner))
    return planSnapshot(sources, 'the learner stands at the start of an epoch without transactions')
  if (sources.snapshotBytes() < sources.truncateFromBytes)
    return planSnapshot(
      sources,
      'the learner has more than was committed, and a small snapshot is safer than a cut',
    )
  return { how: 'trunc', zxid: sources.window.max, entries: [] }
}

/**
 * S4 What is missing is in memory. The start of an epoch is a point of our history too: its leader was established, so
 * what came before is committed, and the same for everybody.
 *
 * S5 Within an epoch there are no holes: a learner whose last transaction is missing here has a tail of an epoch that ended
 * differently. It is never cut across epochs.
 */
function planFromWindow(learner: Zxid, sources: SyncSources): SyncPlan {
  const { window } = sources
  if (!window.contains(learner) && !isEpochStart(learner))
    return planSnapshot(sources, 'the learner has transactions of an epoch that ended without them')
  return { how: 'diff', zxid: window.max, entries: entriesAfter(learner, window) }
}

/** S6 What is missing begins in the log: only where that was verified (H1), and while it is less than a snapshot. */
function planFromDisk(learner: Zxid, sources: SyncSources): SyncPlan {
  const { window, snapshotSizeFactor } = sources
  if (snapshotSizeFactor < 0)
    return planSnapshot(sources, 'learners are not served from the log by the settings')
  const range = sources.disk()
  if (range === undefined || range.after > learner || range.upTo < window.base)
    return planSnapshot(sources, 'what the learner lacks is not in the verified part of the log')
  if (!isEpochStart(learner) && !isInRange(learner, range))
    return planSnapshot(sources, 'the learner has transactions of an epoch that ended without them')
  if (
    snapshotSizeFactor > 0 &&
    sources.diskBytesAfter(learner) > sources.snapshotBytes() * snapshotSizeFactor
  )
    return planSnapshot(sources, 'the log is long against a snapshot')
  return {
    how: 'diff',
    zxid: window.max,
    disk: { after: learner, upTo: window.base },
    entries: entriesAfter(window.base, window),
  }
}

function isInRange(zxid: Zxid, { after, upTo, epochEnds }: DiskRange): boolean {
  if (zxid === after) return true
  return (
    zxid > after && zxid <= upTo && epochEnds.some((end) => epochOf(end) === epochOf(zxid) && zxid <= end)
  )
}

/** S7 What is committed and not yet in the tree when it is read comes behind it. */
function planSnapshot(sources: SyncSources, reason: string): SyncPlan {
  return { how: 'snap', reason, entries: entriesAfter(sources.applied(), sources.window) }
}

function entriesAfter(zxid: Zxid, window: CommittedWindow): PlannedEntry[] {
  const entries: PlannedEntry[] = []
  for (let i = window.indexAfter(zxid); i < window.length; i++)
    entries.push({ zxid: window.zxidAt(i), payload: window.payloadAt(i) })
  return entries
}
