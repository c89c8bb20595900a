import type { Tree } from '../core/tree/index.ts'
import type { Zxid } from '../core/types.ts'

/** The settings that the database reads. Sizes are in bytes, times in milliseconds. */
export interface DatabaseSettings {
  readonly dataDir: string
  readonly dataLogDir: string
  /** Creates missing folders. */
  readonly autoCreateDataDir: boolean
  /** Lets a member without any data vote, as a new member. */
  readonly autoCreateDatabase: boolean
  readonly snapshotTrustEmpty: boolean
  readonly snapshotCompression: 'none' | 'gz' | 'snappy'
  readonly extendedTypesEnabled: boolean
  readonly digestEnabled: boolean
  readonly forceSync: boolean
  readonly preAllocSizeBytes: number
  readonly snapCount: number
  /** Share of the number of znodes that counts instead of `snapCount` where it is more. */
  readonly snapTreeShare: number
  readonly snapSizeLimitBytes: number
  readonly txnLogSizeLimitBytes: number
  readonly fsyncWarningThresholdMs: number
  readonly flushDelayMs: number
  readonly maxBatchSize: number
}

/** The range of the log that is known to be this server's history without a gap. Grows with each append. */
export interface ReadonlyLogRange {
  /** A point of the history: every later transaction is in the log. */
  readonly after: Zxid
  readonly upTo: Zxid
  /** The last transaction of each epoch in the range, ascending. Since there are no gaps, these tell what the range contains. */
  readonly epochEnds: readonly Zxid[]
  /** Returns about how many bytes of log lie after a transaction; never too few. */
  bytesAfter(zxid: Zxid): number
}

/** Receives a snapshot from the network. The database keeps its old tree until the snapshot is complete. */
export interface SnapshotSink {
  /** Bytes taken so far. */
  readonly received: number
  /** Nodes in the new tree so far. */
  readonly nodes: number
  /** Whether everything up to the signature was received; the database then shows the new tree. */
  readonly isComplete: boolean
  /**
   * Parses bytes, which may be cut anywhere, and resolves to how many of them belong to the snapshot: all, unless it ends among
   * them. Call it again only after it has resolved. Rejects with a `DamageError` when the bytes are no snapshot; the sink is
   * aborted then.
   */
  write(bytes: Uint8Array): Promise<number>
  /** Aborts; the old tree and the disk stay as they were. Does nothing once complete. */
  abort(): void
}

/** A snapshot that is streamed to a learner. */
export interface SnapshotSource {
  /** For the SNAP packet: the last transaction applied when the stream was created. */
  readonly zxid: Zxid
  /** Nodes in the tree when the stream was created. */
  readonly nodes: number
  /**
   * The bytes after the SNAP packet, signature included, in chunks that the caller may keep. The tree may change meanwhile:
   * what is applied from the turn of `streamSnapshot` on must reach the learner after the stream. One chunk is made for each
   * `next`, at most one in a turn of the event loop; leaving the loop ends the stream.
   */
  readonly chunks: AsyncIterableIterator<Uint8Array>
}

/** The accepted and the current epoch of a member (disk-format 2.2). */
export interface Epochs {
  readonly accepted: number
  readonly current: number
}

/** A tree that is about to replace all data, and the file that holds it. */
export interface PreparedReplacement {
  /** Must not be changed. */
  readonly tree: Tree
  /** The name that the file gets. */
  readonly name: string
}

export interface TruncateResult {
  /** Whether the history now ends at the requested zxid. If not, nothing has changed on disk or in memory. */
  readonly isExact: boolean
  /** The reason if it does not. */
  readonly reason?: string
}
