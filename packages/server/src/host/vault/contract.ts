import type { Tree } from '../../core/tree/index.ts'
import type { LoggedTxn, SessionId, Zxid } from '../../core/types.ts'
import type { TxnLog, TxnLogEvents, TxnLogState } from '../../log/index.ts'

/** What one role may do to the log. Once it is revoked every append throws an `InvariantError`: no old role writes late. */
export interface RoleWriter {
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
   * returns. `zxid` must be the one in the payload. Throws as `append` does.
   */
  appendPayload(zxid: Zxid, payload: Uint8Array): void
  /** Resolves when all that is appended is durable. Rejects when it is lost. */
  flush(): Promise<void>
  /** Replaces who hears of durability, as when a learner that has synchronised begins to serve. */
  listen(events: TxnLogEvents): void
}

/** A transaction as it lies in the log and goes over the wire. */
export interface RawTxn {
  readonly zxid: Zxid
  /** Header, record, digest: a copy, free to keep. */
  readonly payload: Uint8Array
}

/** A part of the log, verified while it is read. */
export interface History {
  /** The last transaction of ours that is not above the one asked for: equal to it when it is ours too. */
  readonly base: Zxid
  /**
   * Every transaction behind `base`, in order, without a gap. Throws a `DamageError` where the log is not sound, also midway.
   * Call `return` (or leave the loop) to let go of the files; until then they are not purged.
   */
  readonly entries: AsyncIterableIterator<RawTxn>
}

/** Takes a snapshot that comes over the network. The vault keeps its old tree until all has come. */
export interface SnapshotSink {
  /** Bytes taken so far. */
  readonly received: number
  /** Whether everything up to the signature has come; the vault then shows the new tree. */
  readonly complete: boolean
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

export interface Truncated {
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
export interface Vault {
  /** The tree now. Another one after `receiveSnapshot`, `beginEmpty`, `truncateTo` and `settle`. */
  readonly tree: Tree
  /**
   * Sessions with their timeouts in milliseconds, as of `tree.lastZxid`, wherever `apply` is used. A role that keeps sessions
   * of its own hands them back to `settle`.
   */
  readonly sessions: Map<SessionId, number>
  /** For votes: the last transaction in memory, in the log or in a snapshot. A replaced tree counts only once it is adopted. */
  readonly lastZxid: Zxid
  /** For ACKEPOCH: `lastZxid`, or 0 when the next synchronisation must bring everything (`askForAll`). */
  readonly syncZxid: Zxid
  /** Nothing was on disk at the start. */
  readonly fresh: boolean
  readonly epochs: Epochs
  /** Whether the tree in memory is new and the files are not; `adopt` or `settle` ends it. */
  readonly replaced: boolean
  readonly folders: { readonly snapshots: string; readonly logs: string }
  /** Bytes of the newest snapshot file; 0 for none. For the bound of a DIFF from disk (`snapshotSizeFactor`). */
  snapshotBytes(): Promise<number>

  /** Durable when it resolves. Nothing is written when it is that already. Rejects with a RangeError when it would go back. */
  acceptEpoch(epoch: number): Promise<void>
  /** The same for the epoch of the history. Rejects also when the epoch is above the accepted one. */
  setCurrentEpoch(epoch: number): Promise<void>

  /** Gives a role the log. The role before must be settled, a replaced tree adopted; else it throws an `InvariantError`. */
  openWriter(events: TxnLogEvents): RoleWriter
  /** Decodes a transaction and applies it to `tree` and `sessions`; returns it. Below `tree.lastZxid` it is repaired only. */
  apply(payload: Uint8Array): LoggedTxn
  /**
   * The log behind a learner's last transaction. Undefined when it is not there without a gap, lies before what this server can
   * vouch for, or is longer than `maxBytes`: send a snapshot then. `upTo` is the last transaction given.
   */
  history(after: Zxid, upTo: Zxid, maxBytes?: number): Promise<History | undefined>

  /** Removes everything above a zxid, or changes nothing at all; see `Truncated`. No role may be writing. */
  truncateTo(zxid: Zxid): Promise<Truncated>
  /** Makes `syncZxid` 0 until the next `adopt`, so that the next leader sends everything. Disk and vote stay as they are. */
  askForAll(): void
  /** Whether `askForAll` is in force: a DIFF then starts from nothing, by `beginEmpty`. */
  readonly asksForAll: boolean
  /** Puts a new, empty tree in place, to be filled by `apply` and kept by `adopt`. */
  beginEmpty(): void
  /** A sink for the bytes behind a SNAP packet with this zxid. No role may be writing. */
  receiveSnapshot(zxid: Zxid): SnapshotSink
  /**
   * Makes a replaced tree durable at NEWLEADER, when every transaction of the stream is applied: writes it as a snapshot of
   * `tree.lastZxid`, sets all older logs and snapshots aside, all or nothing even in a crash. Resolves at once when nothing
   * is replaced. Set the current epoch and acknowledge only after that.
   */
  adopt(): Promise<void>
  /** Starts a stream of the tree now. `sessions` are those that the leader keeps; the vault's own by default. */
  streamSnapshot(sessions?: Iterable<readonly [SessionId, number]>): SnapshotSource

  /** Takes a snapshot file while requests go on. Waits with its name until the log is durable up to what it holds. */
  takeSnapshot(
    sessions: Iterable<readonly [SessionId, number]>,
    signal?: AbortSignal,
  ): Promise<{ readonly file: string; readonly nodes: number; readonly bytes: number }>
  /** Removes what recovery from the newest `retain` snapshots does not need, nor a `History` that is open. */
  purge(retain: number): Promise<readonly string[]>

  /**
   * Ends a role: revokes its writer, makes all that it appended durable, and brings `tree` and `sessions` to the last
   * transaction of the log; an unfinished replacement is dropped and the old files are loaded again. `sessions` are those that
   * the role kept, as of `tree.lastZxid`. Only then may the member vote. Rejects when the disk cannot be trusted: stop then.
   */
  settle(sessions?: Iterable<readonly [SessionId, number]>): Promise<void>
  /** Makes what is appended durable and gives the folders back. */
  close(): Promise<void>
}
