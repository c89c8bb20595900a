import { counterOf, epochOf } from '@zabra/protocol'
import type { Zxid } from '../types.ts'
import type { CommittedWindow, EncodedTxn } from './committed-window.ts'

/** A part of the log that is verified to be committed history without a gap (quorum-protocol H1). */
export interface DiskRange {
  /** A zxid of the history: the log contains all transactions after it. */
  readonly after: Zxid
  /** The last transaction of the range. */
  readonly upTo: Zxid
  /** The last transaction of each epoch in the range, ascending. Without gaps, these tell which zxids it contains. */
  readonly epochEnds: readonly Zxid[]
}

/** The sources from which a leader, or an observer master, synchronises learners. */
export interface SyncSources {
  readonly window: CommittedWindow
  /** Returns the last transaction applied to the tree. */
  applied(): Zxid
  /**
   * Returns the longest verified range of the log that ends at `window.base` or later, or undefined. It must contain only
   * transactions since the last SNAP and the last truncation that were read and checked, not all content of the files.
   */
  disk(): DiskRange | undefined
  /** Returns the bytes of log after this zxid, or an estimate above them. */
  diskBytesAfter(zxid: Zxid): number
  /** Returns the size of the newest snapshot in bytes. */
  snapshotBytes(): number
  /**
   * The log is sent instead of a snapshot while its bytes are at most this fraction of the snapshot's (`snapshotSizeFactor`);
   * negative for never, 0 for always.
   */
  readonly snapshotSizeFactor: number
  /** Whether every learner gets a snapshot (`forceSnapshotSync`). */
  readonly forceSnapshot: boolean
  /**
   * TRUNC is sent only when the snapshot has at least so many bytes. Apache ZooKeeper can keep transactions that it had
   * to truncate (quorum-protocol H2, quorum-protocol H3), and a snapshot is always safe. 0 for always.
   */
  readonly truncateFromBytes: number
}

/** How to synchronise a learner. Sent in the order of the fields. */
export type SyncPlan =
  | {
      readonly kind: 'diff' | 'trunc'
      /** The zxid of the DIFF or TRUNC packet. */
      readonly zxid: Zxid
      /**
       * Transactions to read from the log, after `after` up to and including `upTo`; each is sent as PROPOSAL and COMMIT.
       */
      readonly disk?: { readonly after: Zxid; readonly upTo: Zxid }
      /** Further transactions, each sent as PROPOSAL and COMMIT. */
      readonly entries: readonly EncodedTxn[]
    }
  | {
      readonly kind: 'snap'
      readonly reason: string
      /**
       * Transactions to send after the snapshot. Its SNAP packet has the zxid that is applied when its first byte is read.
       */
      readonly entries: readonly EncodedTxn[]
    }

const UNTRUSTED_ZXID = -1

/**
 * Decides how to synchronise a learner whose last transaction is `learner` (quorum-protocol 9.2, 9.3, 9.6).
 *
 * A zxid identifies one transaction, since an epoch has one leader. So a learner whose last transaction is in the history
 * of this server has the same history up to there, and needs only what follows. In every doubtful case it gets a snapshot.
 */
export function planSync(learner: Zxid, sources: SyncSources): SyncPlan {
  const { window } = sources
  if (sources.forceSnapshot) return planSnapshot(sources, 'forceSnapshotSync is set')
  if (learner <= UNTRUSTED_ZXID) return planSnapshot(sources, 'the learner does not trust its data')

  if (learner > window.max) return planForLearnerAhead(learner, sources)
  if (learner >= window.base) return planFromWindow(learner, sources)
  return planFromDisk(learner, sources)
}

/** Whether a zxid is the start of an epoch, which no transaction has. */
const isEpochStart = (zxid: Zxid): boolean => counterOf(zxid) === 0

/**
 * Plans for a learner that has more than the history of this server: the excess was never committed and has to be truncated.
 * A learner at the start of an epoch without transactions cannot be truncated to a zxid of that epoch, and gets a snapshot.
 */
function planForLearnerAhead(learner: Zxid, sources: SyncSources): SyncPlan {
  if (isEpochStart(learner))
    return planSnapshot(sources, 'the learner is at the start of an epoch without transactions')
  if (sources.snapshotBytes() < sources.truncateFromBytes)
    return planSnapshot(
      sources,
      'the learner has uncommitted transactions, and a small snapshot is safer than a truncation',
    )
  return { kind: 'trunc', zxid: sources.window.max, entries: [] }
}

/**
 * Plans for a learner that needs only transactions of the window. The start of an epoch counts as part of the history: its
 * leader was established, so all that came before is committed on every server.
 *
 * An epoch has no gaps, so a learner whose last transaction is not in the window has uncommitted transactions of an older
 * epoch. It gets a snapshot, since a learner is never truncated across epochs.
 */
function planFromWindow(learner: Zxid, sources: SyncSources): SyncPlan {
  const { window } = sources
  if (!window.contains(learner) && !isEpochStart(learner))
    return planSnapshot(sources, 'the learner has uncommitted transactions of an older epoch')
  return { kind: 'diff', zxid: window.max, entries: window.after(learner) }
}

/**
 * Plans for a learner that needs transactions of the log: sends them only from a verified range (quorum-protocol H1), and
 * only while they are small relative to a snapshot.
 */
function planFromDisk(learner: Zxid, sources: SyncSources): SyncPlan {
  const { window, snapshotSizeFactor } = sources
  if (snapshotSizeFactor < 0) return planSnapshot(sources, 'snapshotSizeFactor forbids sending the log')
  const range = sources.disk()
  if (range === undefined || range.after > learner || range.upTo < window.base)
    return planSnapshot(sources, 'the verified part of the log does not contain all that the learner needs')
  if (!isEpochStart(learner) && !isInRange(learner, range))
    return planSnapshot(sources, 'the learner has uncommitted transactions of an older epoch')
  if (
    snapshotSizeFactor > 0 &&
    sources.diskBytesAfter(learner) > sources.snapshotBytes() * snapshotSizeFactor
  )
    return planSnapshot(sources, 'the log is too large relative to a snapshot')
  return {
    kind: 'diff',
    zxid: window.max,
    disk: { after: learner, upTo: window.base },
    entries: window.after(window.base),
  }
}

/** Returns whether a zxid, which is not before the range, is in it. */
const isInRange = (zxid: Zxid, { after, epochEnds }: DiskRange): boolean =>
  zxid === after || epochEnds.some((end) => epochOf(end) === epochOf(zxid) && zxid <= end)

/** Plans a snapshot, followed by the committed transactions that are not applied to the tree yet. */
function planSnapshot(sources: SyncSources, reason: string): SyncPlan {
  return { kind: 'snap', reason, entries: sources.window.after(sources.applied()) }
}
