import { counterOf } from '@zabra/protocol'
import type { ServerId } from '../quorum/index.ts'
import type { Commits } from './commits.ts'
import { inStepOf, votes, type Handles } from './handles.ts'
import type { Abdication, LeaderOptions } from './leader-types.ts'

/** Counter 0 is NEWLEADER's, and 0xffffffff would be followed by one that does not fit. */
const LAST_COUNTER = 0xffff_fffe

/** Why a leader that is well goes all the same, and when: never before all that it accepted is committed. */
export class Retirement {
  readonly #options: LeaderOptions
  readonly #handles: Handles
  readonly #commits: Commits
  /** The tick by which followers must have left for the designated leader. */
  #leaveBy = Infinity
  /** The tick by which a successor must have caught up; none while nobody asked for one. */
  #transferBy: number | undefined
  /** An epoch that a voter has accepted, after the one that is led; 0 without one. */
  #renewal = 0

  constructor(options: LeaderOptions, handles: Handles, commits: Commits) {
    this.#options = options
    this.#handles = handles
    this.#commits = commits
  }

  /** Whether there is no reason to go, and so transactions may be accepted. */
  get isFar(): boolean {
    return this.#transferBy === undefined && this.#renewal === 0 && this.#commits.isOpen && !this.#isFull
  }

  /** What the next epoch must exceed; 0 when it does anyway. */
  get renewal(): number {
    return this.#renewal
  }

  get #isFull(): boolean {
    return counterOf(this.#commits.lastProposed) >= (this.#options.lastCounter ?? LAST_COUNTER)
  }

  /**
   * L14 Who has accepted a later epoch must refuse this one, and would be kept out for as long as this leader lives, although
   * nobody came to lead in that epoch. For a voter the leader commits what is on its way and makes room for an epoch that all
   * can accept.
   */
  outrun(server: ServerId, acceptedEpoch: number): void {
    const { active, proposed } = this.#commits.quorums
    if (active.voters.has(server) || proposed?.voters.has(server) === true)
      this.#renewal = Math.max(this.#renewal, acceptedEpoch)
  }

  /** Begins to hand over, or says why not. */
  transfer(tick: number): string | undefined {
    if (!this.isFar) return 'Leadership cannot be handed over now'
    const others = inStepOf(this.#handles)
    if (!this.#commits.isQuorum(others, { alone: false }))
      return 'Leadership is not handed over: the others are no quorum without this server'
    this.#transferBy = tick + this.#options.syncLimit
    return undefined
  }

  /** Gives a handing over up whose time is over; whether it did. */
  gaveUp(tick: number): boolean {
    if (this.#transferBy === undefined || tick < this.#transferBy) return false
    this.#transferBy = undefined
    return true
  }

  /** Why this leader is to go now, if it is. */
  due(tick: number): Abdication | undefined {
    const { designated, outstanding } = this.#commits
    if (designated !== undefined) return this.#yield(designated, tick)
    if (outstanding > 0) return undefined
    // T3 (15) The next epoch begins to count anew.
    if (this.#isFull) return { reason: 'the transactions of this epoch are used up' }
    if (this.#renewal > 0) return { reason: `a voter has accepted epoch ${this.#renewal} already` }
    const successor = this.#transferBy === undefined ? undefined : this.#successor()
    return successor === undefined ? undefined : { reason: 'leadership is handed over', successor }
  }

  /** R4 (14.4) Followers go by themselves once they have heard of it; the last of them need not hold this server up. */
  #yield(designated: ServerId, tick: number): Abdication | undefined {
    this.#leaveBy = Math.min(this.#leaveBy, tick + this.#options.syncLimit)
    if (tick < this.#leaveBy && inStepOf(this.#handles).size > 0) return undefined
    return { reason: 'another server leads under the new configuration', designated }
  }

  /** T4 Who has everything and the highest id is whom the others will elect. */
  #successor(): ServerId | undefined {
    const { lastProposed, proposals, quorums } = this.#commits
    const fresh = counterOf(lastProposed) === 0
    let best: ServerId | undefined
    for (const handle of this.#handles) {
      const { server } = handle
      if (!votes(handle) || quorums.active.weightOf(server) === 0) continue
      if (!fresh && proposals.ackedBy(server) < lastProposed) continue
      if (best === undefined || server > best) best = server
    }
    return best
  }
}
