import type { ServerId } from '../quorum/index.ts'
import type { Zxid } from '../types.ts'
import type { CommitTracker } from './commit-tracker.ts'
import type { LeaderWork } from './leader-types.ts'
import { isActiveFollower, type LearnerProgress } from './learner-progress.ts'
import type { LearnerRegistry } from './learner-registry.ts'
import { PacketType } from './packets.ts'

/** A request to confirm that this server leads. */
interface PendingCheck {
  readonly id: number
  /** The last proposal at the time of the request. */
  readonly zxid: Zxid
  /** The round of PINGs that confirms it. */
  readonly round: number
}

/**
 * Confirms that this server still leads, by rounds of PINGs: the answers of a quorum prove that it followed this leader at
 * some time after the PINGs were sent. Sync requests wait for this, which is stronger than what Apache ZooKeeper does
 * (quorum-protocol 10.6).
 *
 * An answer counts only for requests made before its PING was sent: a request during a round waits for the next one, and one
 * round serves all requests that wait. A request is confirmed when everything proposed before it is committed. Requests are
 * confirmed in their order.
 */
export class LeadershipCheck {
  readonly #self: ServerId
  readonly #learners: LearnerRegistry
  readonly #tracker: CommitTracker
  readonly #emit: (work: Extract<LeaderWork, { do: 'confirmLeadership' }>) => void
  readonly #pending: PendingCheck[] = []
  /** Rounds begun and finished. One round runs while they differ. */
  #begun = 0
  #finished = 0

  constructor(
    self: ServerId,
    learners: LearnerRegistry,
    tracker: CommitTracker,
    emit: (work: Extract<LeaderWork, { do: 'confirmLeadership' }>) => void,
  ) {
    this.#self = self
    this.#learners = learners
    this.#tracker = tracker
    this.#emit = emit
  }

  request(id: number): void {
    this.#pending.push({ id, zxid: this.#tracker.lastProposed, round: this.#begun + 1 })
    this.advance()
  }

  /** Begins the next round if a request waits for it: sends a PING to every active follower. */
  advance(): void {
    while (this.#tracker.canCommit && !this.#isRunning && (this.#pending.at(-1)?.round ?? 0) > this.#begun) {
      this.#begun++
      for (const learner of this.#learners) {
        learner.checkPing = 0
        if (isActiveFollower(learner)) this.#ping(learner)
      }
      this.#checkQuorum()
    }
  }

  /** Confirms the requests whose round is finished and whose earlier proposals are committed. */
  confirmCommitted(): void {
    if (this.#pending.length === 0 || !this.#tracker.canCommit) return
    const { lastCommitted } = this.#tracker
    const waiting = this.#pending.findIndex(
      ({ zxid, round }) => zxid > lastCommitted || round > this.#finished,
    )
    const count = waiting === -1 ? this.#pending.length : waiting
    for (const { id } of this.#pending.splice(0, count)) this.#emit({ do: 'confirmLeadership', id })
  }

  /** Sends a PING to every active learner. */
  pingLearners(): void {
    for (const learner of this.#learners) if (learner.state === 'active') this.#ping(learner)
    this.#checkQuorum()
    this.advance()
  }

  /** Counts a PING answer: the k-th answer of a connection is for its k-th PING. Ignores answers without a PING. */
  receivePong(learner: LearnerProgress): void {
    if (learner.pingsAnswered === learner.pingsSent) return
    learner.pingsAnswered++
    this.#checkQuorum()
    this.advance()
  }

  get #isRunning(): boolean {
    return this.#begun > this.#finished
  }

  /** Sends a PING. For a learner that became active after the round began, a later PING counts too. */
  #ping(learner: LearnerProgress): void {
    learner.pingsSent++
    if (learner.checkPing === 0) learner.checkPing = learner.pingsSent
    this.#learners.send(learner, PacketType.ping, this.#tracker.lastProposed, null)
  }

  /** Finishes the running round if a quorum has answered. */
  #checkQuorum(): void {
    if (!this.#isRunning) return
    const servers = new Set([this.#self])
    for (const learner of this.#learners)
      if (isActiveFollower(learner) && learner.checkPing > 0 && learner.pingsAnswered >= learner.checkPing)
        servers.add(learner.serverId)
    if (this.#tracker.isQuorum(servers)) this.#finished = this.#begun
  }
}
