import { counterOf } from '@zabra/protocol'
import type { ServerId } from '../quorum/index.ts'
import type { CommitTracker } from './commit-tracker.ts'
import type { Zxid } from '../types.ts'
import type { ChosenSuccessor, LeaderOptions, LeaderWork, StepDownReason } from './leader-types.ts'
import {
  activeFollowers,
  isActive,
  isActiveFollower,
  isLate,
  type LearnerProgress,
} from './learner-progress.ts'
import type { LearnerRegistry } from './learner-registry.ts'
import { PacketType } from './packets.ts'

/** The last counter of an epoch. Counter 0 is that of NEWLEADER, and after 0xffffffff the next one would not fit. */
const MAX_COUNTER = 0xffff_fffe
/** Ticks within which a chosen successor has acknowledged what was proposed. */
const ACKED_TICKS = 2

/** A leadership transfer. */
interface Transfer {
  /** The tick by which a successor must have all transactions. */
  readonly by: number
  readonly to: ChosenSuccessor | undefined
}

/** A successor that was sent a transaction more than the others, and the tick until which its ACK of that is awaited. */
interface Ahead {
  readonly learner: LearnerProgress
  readonly by: number
}

/**
 * Decides when a leader with a quorum steps down: for a designated leader, at the last counter of its epoch, and for a
 * leadership transfer. Except for the first, only when all proposals are committed. A server that has accepted a later epoch is
 * no reason: its history may lack what this leader has committed.
 */
export class StepDownPolicy {
  readonly #options: LeaderOptions
  readonly #learners: LearnerRegistry
  readonly #tracker: CommitTracker
  /** The tick by which followers must have left for the designated leader. */
  #leaveBy = Infinity
  #transfer: Transfer | undefined
  #ahead: Ahead | undefined
  #isSuspended = false
  readonly #emit: (work: Extract<LeaderWork, { do: 'send' }>) => void

  constructor(
    options: LeaderOptions,
    learners: LearnerRegistry,
    tracker: CommitTracker,
    emit: (work: Extract<LeaderWork, { do: 'send' }>) => void,
  ) {
    this.#options = options
    this.#learners = learners
    this.#tracker = tracker
    this.#emit = emit
  }

  /** Whether there is no reason to step down, so that the leader accepts proposals. */
  get canPropose(): boolean {
    const isEnding = this.#transfer !== undefined || this.#isSuspended
    return !isEnding && this.#tracker.canCommit && !this.#isEpochExhausted
  }

  get #isEpochExhausted(): boolean {
    return counterOf(this.#tracker.lastProposed) >= (this.#options.maxCounter ?? MAX_COUNTER)
  }

  /** Accepts no proposal any more. */
  suspend(): void {
    this.#isSuspended = true
  }

  /** Returns why leadership cannot be transferred now, to the server `to` if it is given; undefined where it can. */
  transferRefusal(tick: number, to: ServerId | undefined): string | undefined {
    if (!this.canPropose) return 'Leadership cannot be transferred now'
    // Those that follow without a vote because they have accepted a later epoch vote in the election (quorum-protocol 8.3).
    const others = new Set([...this.#learners].filter(isActive).map(({ serverId }) => serverId))
    if (!this.#tracker.isQuorum(others, { useOracle: false }))
      return 'Leadership is not transferred: the other servers are no quorum without this one'
    return to === undefined ? undefined : this.#refusalOf(to, tick)
  }

  #refusalOf(to: ServerId, tick: number): string | undefined {
    const refusal = `Leadership is not transferred to server ${to}`
    if (this.#tracker.verifiers.active.weightOf(to) === 0) return `${refusal}: it has no vote`
    const learner = [...this.#learners].find((one) => isActiveFollower(one) && one.serverId === to)
    if (learner === undefined) return `${refusal}: it does not follow, or is being brought up to date`
    return isLate(learner, this.#tracker, tick, ACKED_TICKS) ? `${refusal}: it is behind` : undefined
  }

  /** Starts a leadership transfer, or returns why it is impossible. */
  transfer(tick: number, to: ChosenSuccessor | undefined): string | undefined {
    const refusal = this.transferRefusal(tick, to?.server)
    if (refusal === undefined) this.#transfer = { by: tick + this.#options.syncLimit, to }
    return refusal
  }

  /**
   * Cancels a transfer that has timed out. Returns whether there was one. Once a successor was sent a transaction that this server does
   * not count, there is no way back: its zxid must have no other transaction in this epoch.
   */
  cancelExpiredTransfer(tick: number): boolean {
    if (this.#transfer === undefined || tick < this.#transfer.by || this.#ahead !== undefined) return false
    this.#transfer = undefined
    return true
  }

  /** Returns whether an ACK is that of the transaction which only the chosen successor has. It is ready to lead then. */
  takesOver(learner: LearnerProgress, zxid: Zxid): boolean {
    if (this.#ahead?.learner !== learner || zxid !== this.#tracker.lastProposed + 1) return false
    this.#ahead = { learner, by: -1 }
    return true
  }

  /** Returns the reason to step down now, or undefined. */
  dueReason(tick: number): StepDownReason | undefined {
    const { designatedLeader, outstanding } = this.#tracker
    if (designatedLeader !== undefined) return this.#yieldToDesignated(designatedLeader, tick)
    if (outstanding > 0) return undefined
    if (this.#isEpochExhausted) return { message: 'all counters of this epoch are used' }
    const successor = this.#transfer === undefined ? undefined : this.#successor(this.#transfer, tick)
    return successor === undefined ? undefined : { message: 'leadership is transferred', successor }
  }

  /** Waits until all followers have left for the designated leader, at most `syncLimit` ticks (quorum-protocol 14.4). */
  #yieldToDesignated(designated: ServerId, tick: number): StepDownReason | undefined {
    this.#leaveBy = Math.min(this.#leaveBy, tick + this.#options.syncLimit)
    if (tick < this.#leaveBy && activeFollowers(this.#learners).size > 0) return undefined
    return { message: 'another server leads under the new configuration', designated }
  }

  /** Returns the voter that the others will elect; undefined before it is ready. */
  #successor({ to }: Transfer, tick: number): ServerId | undefined {
    if (to === undefined) return this.#readyVoter()?.serverId
    this.#ahead ??= this.#sendAhead(to, tick)
    if (this.#ahead === undefined) return undefined
    const { learner, by } = this.#ahead
    const isOver = tick >= by || this.#learners.get(learner.connection) !== learner
    return isOver ? learner.serverId : undefined
  }

  /** Sends the last transaction of the epoch to the chosen successor alone, once it has all others. */
  #sendAhead({ server, payload: data }: ChosenSuccessor, tick: number): Ahead | undefined {
    const learner = this.#readyVoter(server)
    if (learner === undefined) return undefined
    const zxid = this.#tracker.lastProposed + 1
    const packet = { type: PacketType.proposal, zxid, data, auth: null }
    this.#emit({ do: 'send', to: learner.connection, packet })
    return { learner, by: tick + this.#options.syncLimit }
  }

  /** Returns the voter with the highest id among those that have all transactions, or the given one if it has: the others will elect it. */
  #readyVoter(only?: ServerId): LearnerProgress | undefined {
    const { lastProposed, acks, verifiers } = this.#tracker
    let best: LearnerProgress | undefined
    for (const learner of this.#learners) {
      const { serverId } = learner
      if (!isActiveFollower(learner) || verifiers.active.weightOf(serverId) === 0) continue
      if (acks.ackedBy(serverId) < lastProposed || serverId !== (only ?? serverId)) continue
      if (best === undefined || serverId > best.serverId) best = learner
    }
    return best
  }
}
