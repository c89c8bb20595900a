import { epochOf } from '@zabra/protocol'
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

const NO_WORK: readonly QuorumOfOneWork[] = []

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
  #pending: readonly PendingCheck[] = []

  /** `lastZxid` is the last transaction of the log, which is durable. */
  constructor(lastZxid: Zxid) {
    this.#lastProposed = this.#lastCommitted = lastZxid
  }

  get epoch(): number {
    return epochOf(this.#lastProposed)
  }

  /** Processes an input. There are no inputs about learners. */
  step(input: LeaderInput): readonly QuorumOfOneWork[] {
    if (input.type === 'start') return [{ do: 'lead', epoch: this.epoch, zxid: this.#lastProposed }]
    if (input.type !== 'checkLeadership') return NO_WORK
    this.#pending = [...this.#pending, { id: input.id, zxid: this.#lastProposed }]
    return this.#confirmCommitted()
  }

  /** Proposes the next transaction. The caller appends it to the log and calls `markDurable`. */
  propose(zxid: Zxid): readonly QuorumOfOneWork[] {
    this.#lastProposed = zxid
    return NO_WORK
  }

  /** Records that the log is durable up to and including this zxid. */
  markDurable(zxid: Zxid): readonly QuorumOfOneWork[] {
    this.#lastCommitted = zxid
    return [{ do: 'commitUpTo', zxid }, ...this.#confirmCommitted()]
  }

  /**
   * Records that all transactions after this zxid are lost because the disk is full. Leadership checks that waited for a lost
   * transaction are confirmed.
   */
  discardAfter(zxid: Zxid): readonly QuorumOfOneWork[] {
    this.#lastProposed = this.#lastCommitted = zxid
    this.#pending = this.#pending.map(({ id }) => ({ id, zxid }))
    return this.#confirmCommitted()
  }

  #confirmCommitted(): readonly QuorumOfOneWork[] {
    const isConfirmed = ({ zxid }: PendingCheck): boolean => zxid <= this.#lastCommitted
    const confirmed = this.#pending.filter(isConfirmed)
    if (confirmed.length === 0) return NO_WORK
    this.#pending = this.#pending.filter((check) => !isConfirmed(check))
    return confirmed.map(({ id }) => ({ do: 'confirmLeadership', id }))
  }
}
