import { counterOf } from '@zabra/protocol'
import type { ServerId } from '../quorum/index.ts'
import type { CommitTracker } from './commit-tracker.ts'
import { activeFollowers, isActiveFollower, type LearnerRegistry } from './learner-progress.ts'
import type { StepDownReason, LeaderOptions } from './leader-types.ts'

/** Counter 0 is NEWLEADER's, and 0xffffffff would be followed by one that does not fit. */
const MAX_COUNTER = 0xffff_fffe

/** Why a leader that is well goes all the same, and when: never before all that it accepted is committed. */
export class StepDownPolicy {
  readonly #options: LeaderOptions
  readonly #learners: LearnerRegistry
  readonly #tracker: CommitTracker
  /** The tick by which followers must have left for the designated leader. */
  #leaveBy = Infinity
  /** The tick by which a successor must have caught up; none while nobody asked for one. */
  #transferBy: number | undefined
  /** An epoch that a voter has accepted, after the one that is led; 0 without one. */
  #laterEpoch = 0

  constructor(options: LeaderOptions, handles: LearnerRegistry, commits: CommitTracker) {
    this.#options = options
    this.#learners = handles
    this.#tracker = commits
  }

  /** Whether there is no reason to go, and so transactions may be accepted. */
  get canPropose(): boolean {
    return (
      this.#transferBy === undefined && this.#laterEpoch === 0 && this.#tracker.canCommit && !this.#isFull
    )
  }

  /** What the next epoch must exceed; 0 when it does anyway. */
  get laterEpoch(): number {
    return this.#laterEpoch
  }

  get #isFull(): boolean {
    return counterOf(this.#tracker.lastProposed) >= (this.#options.maxCounter ?? MAX_COUNTER)
  }

  /**
   * L14 Who has accepted a later epoch must refuse this one, and would be kept out for as long as this leader lives, although
   * nobody came to lead in that epoch. For a voter the leader commits what is on its way and makes room for an epoch that all
   * can accept.
   */
  noteLaterEpoch(server: ServerId, acceptedEpoch: number): void {
    const { active, proposed } = this.#tracker.quorums
    if (active.voters.has(server) || proposed?.voters.has(server) === true)
      this.#laterEpoch = Math.max(this.#laterEpoch, acceptedEpoch)
  }

  /** Begins to hand over, or says why not. */
  transfer(tick: number): string | undefined {
    if (!this.canPropose) return 'Leadership cannot be handed over now'
    const others = activeFollowers(this.#learners)
    if (!this.#tracker.isQuorum(others, { alone: false }))
      return 'Leadership is not handed over: the others are no quorum without this server'
    this.#transferBy = tick + this.#options.syncLimit
    return undefined
  }

  /** Gives a handing over up whose time is over; whether it did. */
  cancelExpiredTransfer(tick: number): boolean {
    if (this.#transferBy === undefined || tick < this.#transferBy) return false
    this.#transferBy = undefined
    return true
  }

  /** Why this leader is to go now, if it is. */
  dueReason(tick: number): StepDownReason | undefined {
    const { designatedLeader: designated, outstanding } = this.#tracker
    if (designated !== undefined) return this.#yieldToDesignated(designated, tick)
    if (outstanding > 0) return undefined
    // T3 (15) The next epoch begins to count anew.
    if (this.#isFull) return { reason: 'the transactions of this epoch are used up' }
    if (this.#laterEpoch > 0) return { reason: `a voter has accepted epoch ${this.#laterEpoch} already` }
    const successor = this.#transferBy === undefined ? undefined : this.#successor()
    return successor === undefined ? undefined : { reason: 'leadership is handed over', successor }
  }

  /** R4 (14.4) Followers go by themselves once they have heard of it; the last of them need not hold this server up. */
  #yieldToDesignated(designated: ServerId, tick: number): StepDownReason | undefined {
    this.#leaveBy = Math.min(this.#leaveBy, tick + this.#options.syncLimit)
    if (tick < this.#leaveBy && activeFollowers(this.#learners).size > 0) return undefined
    return { reason: 'another server leads under the new configuration', designated }
  }

  /** T4 Who has everything and the highest id is whom the others will elect. */
  #successor(): ServerId | undefined {
    const { lastProposed, acks: proposals, quorums } = this.#tracker
    let best: ServerId | undefined
    for (const handle of this.#learners) {
      const { serverId: server } = handle
      if (!isActiveFollower(handle) || quorums.active.weightOf(server) === 0) continue
      if (proposals.ackedBy(server) < lastProposed) continue
      if (best === undefined || server > best) best = server
    }
    return best
  }
}
