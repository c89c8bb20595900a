import { formatZxid } from '@zabra/protocol'
import { DiskError } from '@zabra/runtime'
import type { Zxid } from '../core/types.ts'
import type { LearnerInput } from '../core/zab/index.ts'
import {
  DamageError,
  LogFullError,
  RecoveryError,
  type TxnLog,
  type TxnLogEvents,
} from '../persistence/index.ts'
import type { MemberContext } from './context.ts'

/** Receives the events of the log. */
export interface DurabilityEvents {
  /** Everything up to and with this zxid is durable. */
  durable(zxid: Zxid): void
  /** The disk is full: everything above this zxid is lost. */
  diskFull(durable: Zxid, error: Error): void
  /** The disk accepts writes again after it was full. */
  spaceAvailable(): void
}

/**
 * Performs the disk work of a role, and keeps the order between disk and network. The state machines (`Leader`, `Learner`) request
 * work; `Mailbox` and `SerialExecutor` run it in order.
 *
 * - A role opens the log when the role before it has ended: all that it had appended is durable, and the tree has all of it.
 * - An epoch is durable before any server learns that it is accepted: LEADERINFO and ACKEPOCH follow `stored`.
 * - History that a leader sends is durable, as a snapshot or in the log, before the epoch becomes current; the current epoch is durable before
 *   NEWLEADER is acknowledged: `flushed`, then `stored`, then ACK (quorum-protocol invariant 16).
 * - A proposal is acknowledged when it is durable, in the order of the log (quorum-protocol invariant 15). A change of the configuration
 *   is acknowledged when the configuration is also on disk as the last one seen.
 * - A transaction is applied when it is committed, in the order of zxids. This may be before it is durable here, since it is
 *   durable on a quorum; the end of the role then waits for the log.
 * - A snapshot that is being received replaces nothing. When it and all transactions after it are complete, it replaces the old files
 *   atomically.
 * - A role that has exited appends nothing and acknowledges nothing: its writer is revoked.
 * - A disk that fails stops the server. A full disk ends the role of a member, which starts again when there is space.
 */
export class Durability {
  readonly #context: MemberContext
  readonly #events: DurabilityEvents
  #writer: TxnLog | undefined
  /** The bytes of a snapshot. Only parsing the snapshot tells where it ends. */
  readonly snapshotBytes = new ByteChannel()

  constructor(context: MemberContext, events: DurabilityEvents) {
    this.#context = context
    this.#events = events
  }

  /** The log of this role, opened by its first use. */
  get log(): TxnLog {
    this.#writer ??= this.#context.database.openWriter(this.#logEvents())
    return this.#writer
  }

  /** Bytes that are appended and not durable. */
  get pendingBytes(): number {
    return this.#writer?.pendingBytes ?? 0
  }

  /** Resolves when the epoch is durable. */
  storeEpoch(what: 'acceptedEpoch' | 'currentEpoch', epoch: number): Promise<void> {
    const { database } = this.#context
    return what === 'acceptedEpoch' ? database.acceptEpoch(epoch) : database.setCurrentEpoch(epoch)
  }

  /** Truncates the history. Resolves to the input for the learner. */
  async truncate(to: Zxid): Promise<LearnerInput> {
    const { database, window, platform } = this.#context
    const { isExact: exact, reason } = await database.truncateTo(to)
    if (exact) window.reset(to)
    else platform.logger.warn({ to: formatZxid(to), reason }, 'History cannot be cut where the leader says')
    return { type: 'truncated', lastZxid: exact ? to : database.lastZxid }
  }

  /**
   * Receives a snapshot from `snapshotBytes`. Calls `taken` for each part that is parsed; for the last one with the bytes after the end
   * of the snapshot. Resolves to an input for the learner if the bytes are no snapshot.
   */
  async receiveSnapshot(
    zxid: Zxid,
    taken: (rest: Uint8Array | undefined) => void,
  ): Promise<LearnerInput | undefined> {
    const { database, window } = this.#context
    const sink = database.receiveSnapshot(zxid)
    try {
      while (!sink.isComplete) {
        const bytes = await this.snapshotBytes.next()
        const used = await sink.write(bytes)
        if (sink.isComplete) window.reset(zxid)
        taken(sink.isComplete ? bytes.subarray(used) : undefined)
      }
      return undefined
    } catch (error) {
      sink.abort()
      // The connection or the role has ended, which is handled elsewhere.
      if (this.snapshotBytes.hasEnded) return undefined
      if (!(error instanceof DamageError)) throw error
      return { type: 'diverged', zxid, reason: error.message }
    }
  }

  /**
   * Appends transactions with the zxids from `first` on to the log, unless they belong to a received tree: that is written as a
   * snapshot.
   */
  append(first: Zxid, payloads: readonly Uint8Array[]): void {
    this.#startEmptyTreeIfRequested()
    if (this.#context.database.hasUninstalledTree) return
    const { log } = this
    for (let i = 0; i < payloads.length; i++) log.appendPayload(first + i, payloads[i]!)
  }

  /** Adds a committed transaction to the window from which observers are synced. */
  recordCommit(zxid: Zxid, payload: Uint8Array): void {
    const { window } = this.#context
    this.#startEmptyTreeIfRequested()
    if (zxid > window.max) window.add(zxid, payload)
  }

  /** Makes all history durable. Resolves to the input for the learner: also that a tree which it has received is not complete. */
  async flush(): Promise<LearnerInput> {
    this.#startEmptyTreeIfRequested()
    const { database } = this.#context
    if (!database.hasUninstalledTree) {
      await this.#writer?.flush()
      return { type: 'flushed' }
    }
    const zxid = database.tree.lastZxid
    try {
      await database.installSnapshot()
      return { type: 'flushed' }
    } catch (error) {
      if (!(error instanceof RecoveryError)) throw error
      return { type: 'diverged', zxid, reason: error.message }
    }
  }

  /** Replaces the tree by an empty one in memory, for a full sync. The old files stay until all of the new data are durable. */
  #startEmptyTreeIfRequested(): void {
    const { database, window } = this.#context
    if (!database.isFullSyncRequested || database.hasUninstalledTree) return
    database.startEmptyTree()
    window.reset(0)
  }

  #logEvents(): TxnLogEvents {
    const { stats, snapshots, settings, failed, platform } = this.#context
    return {
      durable: (zxid, entries, ms) => {
        stats.batchSize.add(entries)
        stats.fsyncTime.add(ms)
        const now = platform.clock.monotonic()
        stats.stages.synced(zxid, now - ms, now)
        if (ms > settings.fsyncWarningThresholdMs) stats.slowFsyncs++
        this.#events.durable(zxid)
      },
      snapshotDue: () => void snapshots.take(),
      diskFull: (durable, error) => this.#events.diskFull(durable, error),
      spaceAvailable: () => this.#events.spaceAvailable(),
      fatal: failed,
    }
  }
}

/** Passes the bytes of a stream from their producer to their consumer, one part at a time. */
class ByteChannel {
  #ready: Uint8Array | undefined
  #consumer: { resolve: (bytes: Uint8Array) => void; reject: (error: Error) => void } | undefined
  #ended: Error | undefined

  get hasEnded(): boolean {
    return this.#ended !== undefined
  }

  /** Offers a part, which must not change afterwards. The next part may be offered once this one is consumed. */
  push(bytes: Uint8Array): void {
    const consumer = this.#consumer
    this.#consumer = undefined
    if (consumer === undefined) this.#ready = bytes
    else consumer.resolve(bytes)
  }

  /** Resolves to the next part. Rejects with the error of `end` when there is none. */
  next(): Promise<Uint8Array> {
    const ready = this.#ready
    this.#ready = undefined
    if (ready !== undefined) return Promise.resolve(ready)
    if (this.#ended !== undefined) return Promise.reject(this.#ended)
    return new Promise((resolve, reject) => (this.#consumer = { resolve, reject }))
  }

  /** Ends the stream with this error. */
  end(error: Error): void {
    this.#ended ??= error
    this.#consumer?.reject(error)
    this.#consumer = undefined
  }
}

/** Whether an error means that the disk is full: pending writes are lost, and completed ones remain valid. */
export const isDiskFull = (error: unknown): error is Error =>
  error instanceof LogFullError || (error instanceof DiskError && FULL.has(error.code))

const FULL: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT'])
