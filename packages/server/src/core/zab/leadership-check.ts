import type { ServerId } from '../quorum/index.ts'
import type { CommitTracker } from './commit-tracker.ts'
import { PendingChecks } from './pending-checks.ts'
import { isActiveFollower, type LearnerProgress, type LearnerRegistry } from './learner-progress.ts'

/** PINGs, and what their answers prove: that a quorum followed this leader at some time after they were sent. */
export class LeadershipCheck {
  readonly #self: ServerId
  readonly #learners: LearnerRegistry
  readonly #tracker: CommitTracker
  readonly #confirmed: (ticket: number) => void
  readonly #sendPing: (handle: LearnerProgress) => void
  readonly #pending = new PendingChecks()

  constructor(
    self: ServerId,
    handles: LearnerRegistry,
    commits: CommitTracker,
    confirmed: (ticket: number) => void,
    sendPing: (handle: LearnerProgress) => void,
  ) {
    this.#self = self
    this.#learners = handles
    this.#tracker = commits
    this.#confirmed = confirmed
    this.#sendPing = sendPing
  }

  request(ticket: number): void {
    this.#pending.add(ticket, this.#tracker.lastProposed)
    this.advance()
  }

  /** C3 One round at a time: a PING to every voter that follows, whose answer says that it followed me still. */
  advance(): void {
    while (this.#tracker.canCommit && this.#pending.needsRound) {
      this.#pending.begin()
      for (const handle of this.#learners) {
        handle.checkPing = 0
        if (isActiveFollower(handle)) this.#ping(handle)
      }
      this.#checkQuorum()
    }
    this.confirmCommitted()
  }

  /** Answers those whose round is done and whose transactions are committed. */
  confirmCommitted(): void {
    if (this.#tracker.canCommit) this.#pending.release(this.#tracker.lastCommitted, this.#confirmed)
  }

  /** Everybody hears of me. */
  pingLearners(): void {
    for (const handle of this.#learners) if (handle.state === 'active') this.#ping(handle)
    this.#checkQuorum()
    this.advance()
  }

  /** C4 The k-th answer of a connection is for its k-th PING; more than were asked for mean nothing. */
  receivePong(handle: LearnerProgress): void {
    if (handle.pingsAnswered === handle.pingsSent) return
    handle.pingsAnswered++
    this.#checkQuorum()
    this.advance()
  }

  /** A PING that is sent later counts for a round as well as the first one, for those whom the round did not ask. */
  #ping(handle: LearnerProgress): void {
    handle.pingsSent++
    if (handle.checkPing === 0) handle.checkPing = handle.pingsSent
    this.#sendPing(handle)
  }

  #checkQuorum(): void {
    if (!this.#pending.isRunning) return
    const servers = new Set([this.#self])
    for (const handle of this.#learners)
      if (isActiveFollower(handle) && handle.checkPing > 0 && handle.pingsAnswered >= handle.checkPing)
        servers.add(handle.serverId)
    if (this.#tracker.isQuorum(servers)) this.#pending.finish()
  }
}
