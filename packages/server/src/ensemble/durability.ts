import { formatZxid } from '@zabra/protocol'
import type { Zxid } from '../core/types.ts'
import type { LearnerInput } from '../core/zab/index.ts'
import { DamageError, DivergenceError, type TxnLogEvents } from '../persistence/index.ts'
import type { LogWriter } from '../database/index.ts'
import type { MemberContext } from './context.ts'
import { ByteChannel } from './byte-channel.ts'

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
 * What one role does with the disk, in its order. These are the rules of order between disk and network; the machines
 * (`Leader`, `Learner`) say what is to be done, `SliceScheduler` and `SerialExecutor` see to it that it is done one after the other.
 *
 * O1 A role opens the log when the one before it is settled: all that it had appended is durable, and the tree has all of it.
 * O2 An epoch is durable before anybody is told that it is accepted: LEADERINFO and ACKEPOCH follow `stored`.
 * O3 History that a leader sends is durable, snapshot or log, before the epoch becomes current; that is durable before
 *    NEWLEADER is acknowledged: `hardened`, then `stored`, then ACK.
 * O4 A proposal is acknowledged when it is durable, in the order of the log; one that changes the configuration when the
 *    configuration is on disk as the one seen last, too.
 * O5 A transaction is applied when it is committed, in the order of zxids. This may be before it is durable here, since a quorum
 *    has it; its log is not left behind, for O1.
 * O6 A snapshot that is on its way replaces nothing. Only when all of it and what came behind it is there does it take the
 *    place of the old files, all at once.
 * O7 A role that is over hands in nothing more, and its writer is taken away from it: no late append, no late ACK.
 * O8 A disk that fails ends the process; one that is full ends the role, which may begin again when there is space.
 */
export class Durability {
  readonly #context: MemberContext
  readonly #events: DurabilityEvents
  #writer: LogWriter | undefined
  /** Bytes of a snapshot, of which only the snapshot itself says where it ends. */
  readonly snapshotBytes = new ByteChannel()

  constructor(context: MemberContext, events: DurabilityEvents) {
    this.#context = context
    this.#events = events
  }

  /** The log of this role, opened by its first use (O1). */
  get log(): LogWriter {
    this.#writer ??= this.#context.database.openWriter(this.#logEvents())
    return this.#writer
  }

  /** Bytes that wait for the disk. */
  get pendingBytes(): number {
    return this.#writer?.pendingBytes ?? 0
  }

  /** O2, O3 Resolves when an epoch is durable. */
  storeEpoch(what: 'acceptedEpoch' | 'currentEpoch', epoch: number): Promise<void> {
    const { database } = this.#context
    return what === 'acceptedEpoch' ? database.acceptEpoch(epoch) : database.setCurrentEpoch(epoch)
  }

  /** Cuts history; gives what the machine is to hear of it. */
  async truncate(to: Zxid): Promise<LearnerInput> {
    const { database, window, platform } = this.#context
    const { exact, reason } = await database.truncateTo(to)
    if (exact) window.reset(to)
    else platform.logger.warn({ to: formatZxid(to), reason }, 'History cannot be cut where the leader says')
    return { type: 'truncated', lastZxid: exact ? to : database.lastZxid }
  }

  /**
   * O6 Takes a snapshot from `raw`. `taken` is called for each part that has been looked at, with the bytes behind the end of the
   * snapshot once that has come. Gives what the machine is to hear, if the bytes are no snapshot.
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
        const belongs = await sink.write(bytes)
        if (sink.isComplete) window.reset(zxid)
        taken(sink.isComplete ? bytes.subarray(belongs) : undefined)
      }
      return undefined
    } catch (error) {
      sink.abort()
      // The leader, or this role, is gone; that is told elsewhere.
      if (this.snapshotBytes.ended) return undefined
      if (!(error instanceof DamageError)) throw error
      return { type: 'diverged', zxid, reason: error.message }
    }
  }

  /** Logs a transaction. A tree that is new is written as a whole, so what makes it up is not logged. */
  append(zxid: Zxid, payload: Uint8Array): void {
    this.#beginIfEmpty()
    if (!this.#context.database.hasUninstalledTree) this.log.appendPayload(zxid, payload)
  }

  /** O5 A transaction is committed and can be handed to others, as soon as it is applied. */
  recordCommit(zxid: Zxid, payload: Uint8Array): void {
    const { window } = this.#context
    this.#beginIfEmpty()
    if (zxid > window.max) window.add(zxid, payload)
  }

  /** Applies a transaction while there are no clients. Gives what the machine is to hear if it shows that the tree is wrong. */
  apply(zxid: Zxid, payload: Uint8Array): LearnerInput | undefined {
    try {
      this.#context.database.apply(payload)
      return undefined
    } catch (error) {
      if (!(error instanceof DivergenceError)) throw error
      return { type: 'diverged', zxid, reason: error.message }
    }
  }

  /** O3 Resolves when all history is durable. */
  async flush(): Promise<void> {
    this.#beginIfEmpty()
    if (this.#context.database.hasUninstalledTree) await this.#context.database.installSnapshot()
    else await this.#writer?.flush()
  }

  /** A server that asks for everything keeps its old data until all of the new is there. */
  #beginIfEmpty(): void {
    const { database, window } = this.#context
    if (!database.isFullSyncRequested || database.hasUninstalledTree) return
    database.startEmptyTree()
    window.reset(0)
  }

  #logEvents(): TxnLogEvents {
    const { stats, snapshots, failed } = this.#context
    return {
      durable: (zxid) => {
        stats.fsyncTime.add(this.#writer!.stats.lastFlushMs)
        this.#events.durable(zxid)
      },
      snapshotDue: () => void snapshots.take(),
      diskFull: (durable, error) => this.#events.diskFull(durable, error),
      spaceAvailable: () => this.#events.spaceAvailable(),
      fatal: failed,
    }
  }
}
