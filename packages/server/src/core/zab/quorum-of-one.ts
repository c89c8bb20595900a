import { epochOf } from '@zabra/protocol'
import type { Zxid } from '../types.ts'
import type { LeaderInput, LeaderWork } from './leader-types.ts'

/** Receives what a quorum of one decides. */
export interface QuorumOfOneEvents {
  /** Everything up to this zxid is committed. */
  commit(zxid: Zxid): void
  /** Answers `confirm`: all that was proposed before the question is committed. In the order of the questions. */
  confirmed(ticket: number): void
}

/**
 * The leader of a configuration with one voter, which is a standalone server: a transaction is committed once it is durable here.
 * Takes the place of `Leader`, with the same inputs. It has no epochs: zxids continue behind the last transaction of the log, and
 * no epoch file is written, as in a standalone server of Apache ZooKeeper.
 */
export class QuorumOfOne {
  readonly phase = 'broadcast'
  readonly canPropose = true
  readonly #events: QuorumOfOneEvents
  #lastProposed: Zxid
  #lastCommitted: Zxid
  /** Pending confirmations, each with the last transaction that was proposed before it. */
  #confirmations: { readonly ticket: number; readonly zxid: Zxid }[] = []

  /** `lastZxid` is the last transaction of the log, which is durable. */
  constructor(lastZxid: Zxid, events: QuorumOfOneEvents) {
    this.#lastProposed = this.#lastCommitted = lastZxid
    this.#events = events
  }

  get epoch(): number {
    return epochOf(this.#lastProposed)
  }

  /** Takes one input and returns what is to be done. Inputs about learners cannot come. */
  step(input: LeaderInput): readonly LeaderWork[] {
    if (input.type === 'start') return [{ do: 'lead', epoch: this.epoch, zxid: this.#lastProposed }]
    if (input.type === 'confirm') {
      this.#confirmations.push({ ticket: input.ticket, zxid: this.#lastProposed })
      this.#releaseConfirmations()
    }
    return []
  }

  /** HOT. The caller logs the transaction and reports it with `markDurable`. */
  propose(zxid: Zxid): void {
    this.#lastProposed = zxid
  }

  /** HOT. The log is durable up to and with this zxid. */
  markDurable(zxid: Zxid): void {
    this.#lastCommitted = zxid
    this.#events.commit(zxid)
    this.#releaseConfirmations()
  }

  /**
   * The disk was full: everything above this zxid is lost and never happens. Only a quorum of one can know that. Confirmations that
   * waited for a lost transaction are answered.
   */
  discardAfter(zxid: Zxid): void {
    this.#lastProposed = this.#lastCommitted = zxid
    this.#confirmations = this.#confirmations.map(({ ticket }) => ({ ticket, zxid }))
    this.#releaseConfirmations()
  }

  #releaseConfirmations(): void {
    while (this.#confirmations.length > 0 && this.#confirmations[0]!.zxid <= this.#lastCommitted)
      this.#events.confirmed(this.#confirmations.shift()!.ticket)
  }
}
