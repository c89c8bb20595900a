import { counterOf } from '@zabra/protocol'
import type { ServerId } from '../quorum/index.ts'
import type { CommitTracker } from './commit-tracker.ts'
import type { LeaderOptions, StepDownReason } from './leader-types.ts'
import { activeFollowers, isActive, isActiveFollower } from './learner-progress.ts'
import type { LearnerRegistry } from './learner-registry.ts'

/** The last counter of an epoch. Counter 0 is that of NEWLEADER, and after 0xffffffff the next one would not fit. */
const MAX_COUNTER = 0xffff_fffe

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
  /** The tick by which a successor must have all transactions; undefined without a transfer. */
  #transferBy: number | undefined
  #isSuspended = false

  constructor(options: LeaderOptions, learners: LearnerRegistry, tracker: CommitTracker) {
    this.#options = options
    this.#learners = learners
    this.#tracker = tracker
  }

  /** Whether there is no reason to step down, so that the leader accepts proposals. */
  get canPropose(): boolean {
    const isEnding = this.#transferBy !== undefined || this.#isSuspended
    return !isEnding && this.#tracker.canCommit && !this.#isEpochExhausted
  }

  get #isEpochExhausted(): boolean {
    return counterOf(this.#tracker.lastProposed) >= (this.#options.maxCounter ?? MAX_COUNTER)
  }

  /** Accepts no proposal any more. */
  suspend(): void {
    this.#isSuspended = true
  }

  /** Starts a leadership transfer, or returns why it is impossible. */
  transfer(tick: number): string | undefined {
    if (!this.canPropose) return 'Leadership cannot be transferred now'
    // Those that follow without a vote because they have accepted a later epoch vote in the election (quorum-protocol 8.3).
    const others = new Set([...this.#learners].filter(isActive).map(({ serverId }) => serverId))
    if (!this.#tracker.isQuorum(others, { useOracle: false }))
      return 'Leadership is not transferred: the other servers are no quorum without this one'
    this.#transferBy = tick + this.#options.syncLimit
    return undefined
  }

  /** Cancels a transfer that has timed out. Returns whether there was one. */
  cancelExpiredTransfer(tick: number): boolean {
    if (this.#transferBy === undefined || tick < this.#transferBy) return false
    this.#transferBy = undefined
    return true
  }

  /** Returns the reason to step down now, or undefined. */
  dueReason(tick: number): StepDownReason | undefined {
    const { designatedLeader, outstanding } = this.#tracker
    if (designatedLeader !== undefined) return this.#yieldToDesignated(designatedLeader, tick)
    if (outstanding > 0) return undefined
    if (this.#isEpochExhausted) return { message: 'all counters of this epoch are used' }
    const successor = this.#transferBy === undefined ? undefined : this.#successor()
    return successor === undefined ? undefined : { message: 'leadership is transferred', successor }
  }

  /** Waits until all followers have left for the designated leader, at most `syncLimit` ticks (quorum-protocol 14.4). */
  #yieldToDesignated(designated: ServerId, tick: number): StepDownReason | undefined {
    this.#leaveBy = Math.min(this.#leaveBy, tick + this.#options.syncLimit)
    if (tick < this.#leaveBy && activeFollowers(this.#learners).size > 0) return undefined
    return { message: 'another server leads under the new configuration', designated }
  }

  /** Returns the voter with the highest id among those that have all transactions: the others will elect it. */
  #successor(): ServerId | undefined {
    const { lastProposed, acks, verifiers } = this.#tracker
    let best: ServerId | undefined
    for (const learner of this.#learners) {
      const { serverId } = learner
      if (!isActiveFollower(learner) || verifiers.active.weightOf(serverId) === 0) continue
      if (acks.ackedBy(serverId) < lastProposed) continue
      if (best === undefined || serverId > best) best = serverId
    }
    return best
  }
}
