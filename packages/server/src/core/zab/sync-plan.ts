import type { Zxid } from '../types.ts'
import type { CommittedWindow } from './window.ts'

/** A stretch of the log that was verified to be our committed history without a gap (hazard H1). */
export interface DiskRange {
  /** A point of our history: entries after this one are in the log. */
  readonly after: Zxid
  /** The last entry of the stretch. */
  readonly upTo: Zxid
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
      readonly disk?: DiskRange
      /** Then these, each as PROPOSAL and COMMIT. */
      readonly entries: readonly PlannedEntry[]
    }
  | {
      readonly how: 'snap'
      readonly reason: string
      /** The tree as it is now, or later; the packet carries the zxid that is applied when the first byte is taken. */
      readonly entries: readonly PlannedEntry[]
    }

/** (9.2, 9.3, 9.6) Decides how a learner whose last transaction is `learner` is brought up to date. */
export declare function planSync(learner: Zxid, sources: SyncSources): SyncPlan
