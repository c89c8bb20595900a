import type { Tree } from '../core/tree/index.ts'
import type { LoggedTxn, SessionId, Zxid } from '../core/types.ts'
import type { RawTxn, SessionTimeouts, TxnLog, TxnLogEvents, TxnLogState } from '../persistence/index.ts'

/** What one role may do to the log. Once it is revoked every append throws an `InvariantError`: no old role writes late. */
export interface LogWriter {
  /** The last transaction appended, or on disk when the role began. */
  readonly lastZxid: Zxid
  /** The last transaction that survives a power cut. */
  readonly durableZxid: Zxid
  readonly state: TxnLogState
  readonly stats: TxnLog['stats']
  readonly file: string | undefined
  /** Bytes appended and not durable yet. Who appends what others send stops reading from them while it is large. */
  readonly pendingBytes: number
  /**
   * Encodes a transaction into the next batch. Throws a `LogFullError` while the disk is full, a RangeError for a zxid that
   * is not the next one, and an `InvariantError` when the role has ended.
   */
  append(logged: LoggedTxn): void
  /**
   * Adds an encoded transaction (header, record, digest) to the next batch, byte for byte. The bytes are copied before this
   * returns. `zxid` must be the one in the payload, `adler` its Adler-32, where that is known. Throws as `append` does.
   */
  appendPayload(zxid: Zxid, payload: Uint8Array, adler?: number): void
  /** Resolves when all that is appended is durable. Rejects when it is lost. */
  flush(): Promise<void>
  /** Replaces who hears of durability, as when a learner that has synchronised begins to serve. */
  setEvents(events: TxnLogEvents): void
}

/** A stretch of the log that is known to be this server's history without a gap. Grows with each append. */
export interface ReadonlyLogRange {
  /** A point of the history: everything behind it is in the log. */
  readonly after: Zxid
  readonly upTo: Zxid
  /** The last transaction of each epoch in it, ascending. Without gaps, these tell which transactions are in it. */
  readonly epochEnds: readonly Zxid[]
  /** About how many bytes of log lie behind a transaction: too many rather than too few. */
  bytesAfter(zxid: Zxid): number
}

/** Takes a snapshot that comes over the network. The vault keeps its old tree until all has come. */
export interface SnapshotSink {
  /** Bytes taken so far. */
  readonly received: number
  /** Whether everything up to the signature has come; the vault then shows the new tree. */
  readonly isComplete: boolean
  /**
   * Takes bytes as the network cuts them and resolves when they are parsed, to how many of them belong to the snapshot: all,
   * unless it ends among them. Send no more before. Rejects with a `DamageError` when the bytes are no snapshot; the sink
   * is aborted then.
   */
  write(bytes: Uint8Array): Promise<number>
  /** Gives up. The old tree and the disk are as before. Does nothing once complete. */
  abort(): void
}

/** A snapshot on its way to a learner. */
export interface SnapshotSource {
  /** For the SNAP packet: the last transaction applied when the stream was made. */
  readonly zxid: Zxid
  /**
   * The bytes behind the SNAP packet, signature included, in chunks that are free to keep. The tree may change meanwhile:
   * what is applied from the turn of `streamSnapshot` on must reach the learner behind the stream. One chunk is made for
   * each `next`, at most one in a turn, so that requests go on; leaving the loop ends the walk.
   */
  readonly chunks: AsyncIterableIterator<Uint8Array>
}

export interface Epochs {
  readonly accepted: number
  readonly current: number
}

export interface TruncateResult {
  /** Whether the history now ends at the zxid asked for. If not, nothing has changed on disk or in memory. */
  readonly exact: boolean
  /** Why not. */
  readonly reason?: string
}

/**
 * All that a server keeps on disk, and the tree that it stands for. There is one for the life of the process; roles come and
 * go. Calls that change more than the log wait for one another.
 *
 * A member that synchronises by SNAP, or as an empty one, holds a new tree in memory and its old files on disk, until `adopt`
 * exchanges the files in one step. A crash or an end of the role before leaves the old history: nothing acknowledged is lost.
 */
export interface Database {
  /** The tree now. Another one after `receiveSnapshot`, `beginEmpty`, `truncateTo` and `settle`. */
  readonly tree: Tree
  /**
   * Sessions with their timeouts in milliseconds, as of `tree.lastZxid`, wherever `apply` is used. A role that keeps sessions
   * of its own hands them back to `settle`.
   */
  readonly sessions: Map<SessionId, number>
  /** For votes: the last transaction in memory, in the log or in a snapshot. A replaced tree counts only once it is adopted. */
  readonly lastZxid: Zxid
  /**
   * Whether this member may vote with what it has. Not after its data were found to be others than the ensemble's, or to be
   * gone (`db.autocreate=false`), until a leader has sent everything; also across starts. Always so for a server on its own.
   */
  readonly isEligibleToVote: boolean
  /** Nothing was on disk at the start. */
  readonly wasEmpty: boolean
  readonly epochs: Epochs
  /** Whether the tree in memory is new and the files are not; `adopt` or `settle` ends it. */
  readonly hasUninstalledTree: boolean
  readonly folders: { readonly snapshots: string; readonly logs: string }
  /** Bytes of the newest snapshot file; 0 for none. For the bound of a DIFF from disk (`snapshotSizeFactor`). */
  readonly snapshotBytes: number
  /** What `history` can give: read and checked since the snapshot that was loaded, and what was appended since then. */
  readonly logRange: ReadonlyLogRange

  /** Durable when it resolves. Nothing is written when it is that already. Rejects with a RangeError when it would go back. */
  acceptEpoch(epoch: number): Promise<void>
  /** The same for the epoch of the history. Rejects also when the epoch is above the accepted one. */
  setCurrentEpoch(epoch: number): Promise<void>

  /** Gives a role the log. The role before must be settled, a replaced tree adopted; else it throws an `InvariantError`. */
  openWriter(events: TxnLogEvents): LogWriter
  /**
   * Decodes a transaction and applies it to `tree` and `sessions`; returns it. One that a replaced tree may hold already is
   * applied again, which changes nothing that counts. Throws a `DivergenceError` when the tree is not the leader's after it.
   */
  apply(payload: Uint8Array): LoggedTxn
  /**
   * The transactions behind `after` up to `upTo` from the log, in order and without a gap, checked while they are read; as far
   * as they are not durable yet they are waited for. `after` must be a point of the history within `verified`. Throws a
   * `DamageError` where the log is not what it should be, also midway. Until it is over, or `return` is called (as leaving a
   * loop does), its files are not purged: call `return` also when it was never begun.
   */
  readHistory(after: Zxid, upTo: Zxid): AsyncIterableIterator<RawTxn>

  /** Removes everything above a zxid, or changes nothing at all; see `TruncateResult`. No role may be writing. */
  truncateTo(zxid: Zxid): Promise<TruncateResult>
  /** The tree is wrong: the next leader is to send everything, until the next `adopt`. Disk, promises and vote stay. */
  requestFullSync(): void
  /** Whether `askForAll` is in force: a DIFF then starts from nothing, by `beginEmpty`. */
  readonly isFullSyncRequested: boolean
  /** Puts a new, empty tree in place, to be filled by `apply` and kept by `adopt`. */
  startEmptyTree(): void
  /** A sink for the bytes behind a SNAP packet with this zxid. No role may be writing. */
  receiveSnapshot(zxid: Zxid): SnapshotSink
  /**
   * Makes a replaced tree durable at NEWLEADER, when every transaction of the stream is applied: writes it as a snapshot of
   * `tree.lastZxid`, sets all older logs and snapshots aside, all or nothing even in a crash. Resolves at once when nothing
   * is replaced. Set the current epoch and acknowledge only after that.
   */
  installSnapshot(): Promise<void>
  /** Starts a stream of the tree now. `sessions` are those that the leader keeps; the vault's own by default. */
  streamSnapshot(sessions?: SessionTimeouts): SnapshotSource

  /** Takes a snapshot file while requests go on. Waits with its name until the log is durable up to what it holds. */
  takeSnapshot(
    sessions: SessionTimeouts,
    signal?: AbortSignal,
  ): Promise<{ readonly file: string; readonly nodes: number; readonly bytes: number }>
  /** Removes what recovery from the newest `retain` snapshots does not need, nor a `LogPosition` that is open. */
  purge(retain: number): Promise<readonly string[]>

  /**
   * Ends a role: revokes its writer, makes all that it appended durable, and brings `tree` and `sessions` to the last
   * transaction of the log; an unfinished replacement is dropped and the old files are loaded again, as they are when the tree was found to be wrong; files that are wrong themselves are set aside, and the member is not `trusted` any more. `sessions` are those that
   * the role kept, as of `tree.lastZxid`. Only then may the member vote. Rejects when the disk cannot be trusted: stop then.
   */
  endRole(sessions?: SessionTimeouts): Promise<void>
  /** Makes what is appended durable and gives the folders back. */
  close(): Promise<void>
}
