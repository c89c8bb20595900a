import { epochOf } from '@zabra/protocol'
import { RingBuffer } from '../ring-buffer.ts'
import type { Zxid } from '../types.ts'
import type { LeaderInput, LeaderWork } from './leader-types.ts'

/** Work of a quorum of one. */
export type QuorumOfOneWork =
  | Extract<LeaderWork, { do: 'lead' | 'confirmLeadership' }>
  /** Apply all transactions up to and including this zxid, in order. */
  | { readonly do: 'commitUpTo'; readonly zxid: Zxid }

/** A request to confirm that this server leads, and the last proposal before it. */
interface PendingCheck {
  readonly id: number
  readonly zxid: Zxid
}

/**
 * The leader of a configuration with one voter, a standalone server: a transaction is committed when it is durable here. Takes
 * the place of `Leader`, with the same inputs. It has no epochs: zxids continue after the last transaction of the log, and no
 * epoch file is written, as in a standalone server of Apache ZooKeeper.
 */
export class QuorumOfOne {
  readonly phase = 'broadcast'
  readonly canPropose = true
  #lastProposed: Zxid
  #lastCommitted: Zxid
  #pending: PendingCheck[] = []
  readonly #work = new RingBuffer<QuorumOfOneWork | undefined>(undefined)

  /** `lastZxid` is the last transaction of the log, which is durable. */
  constructor(lastZxid: Zxid) {
    this.#lastProposed = this.#lastCommitted = lastZxid
  }

  get epoch(): number {
    return epochOf(this.#lastProposed)
  }

  /** Processes an input. There are no inputs about learners. */
  step(input: LeaderInput): void {
    if (input.type === 'start') this.#work.push({ do: 'lead', epoch: this.epoch, zxid: this.#lastProposed })
    else if (input.type === 'checkLeadership') {
      this.#pending.push({ id: input.id, zxid: this.#lastProposed })
      this.#confirmCommitted()
    }
  }

  /** Removes and returns the next work for the host, or returns undefined. */
  nextWork(): QuorumOfOneWork | undefined {
    return this.#work.shift()
  }

  /** Proposes the next transaction. The caller appends it to the log and calls `markDurable`. */
  propose(zxid: Zxid): void {
    this.#lastProposed = zxid
  }

  /** Records that the log is durable up to and including this zxid. */
  markDurable(zxid: Zxid): void {
    this.#lastCommitted = zxid
    this.#work.push({ do: 'commitUpTo', zxid })
    this.#confirmCommitted()
  }

  /**
   * Records that all transactions after this zxid are lost because the disk is full. Leadership checks that waited for a lost
   * transaction are confirmed.
   */
  discardAfter(zxid: Zxid): void {
    this.#lastProposed = this.#lastCommitted = zxid
    this.#pending = this.#pending.map(({ id }) => ({ id, zxid }))
    this.#confirmCommitted()
  }

  #confirmCommitted(): void {
    while (this.#pending.length > 0 && this.#pending[0]!.zxid <= this.#lastCommitted)
      this.#work.push({ do: 'confirmLeadership', id: this.#pending.shift()!.id })
  }
}
