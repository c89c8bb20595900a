import { formatZxid } from '@zabra/protocol'
import type { ConnectionId, SyncPlan } from '../core/zab/index.ts'
import type { MemberContext } from './context.ts'
import type { LearnerConnection } from './learner-connection.ts'
import { keyOfPeer, type LimitedLog } from './limited-log.ts'

/**
 * Syncs the learners of a leader, or the observers of a follower, each over its own connection. Bounds how many observers, and servers
 * that no configuration names, are sent a snapshot at the same time (`maxConcurrentSnapSyncs`).
 */
export class LearnerSyncs {
  readonly #context: MemberContext
  readonly #log: LimitedLog
  readonly #streamed: (to: ConnectionId) => void
  /** Learners without a vote that are being sent a snapshot. */
  #snapshots = 0
  readonly #inFlight = { snap: 0, diff: 0 }

  /** `streamed` is called when everything in a plan is written to the connection. */
  constructor(context: MemberContext, log: LimitedLog, streamed: (to: ConnectionId) => void) {
    this.#context = context
    this.#log = log
    this.#streamed = streamed
  }

  /** Starts to sync a learner. Fails the connection when the sync fails, or when too many without a vote are being sent a snapshot. */
  start(learner: LearnerConnection, plan: SyncPlan): void {
    const { database, membership, settings, stats } = this.#context
    const limit = settings.maxConcurrentSnapSyncs
    const hasVote = !learner.isObserver && membership.member(learner.serverId) !== undefined
    const isBounded = plan.kind === 'snap' && !hasVote
    if (isBounded && this.#snapshots >= limit)
      return learner.fail(`${limit} servers without a vote are being sent a snapshot already`)
    if (isBounded) this.#snapshots++
    const kind = plan.kind === 'snap' ? 'snap' : 'diff'
    this.#inFlight[kind]++
    if (kind === 'snap') stats.ensemble.snapCount++
    else stats.ensemble.diffCount++
    const { inFlightSnaps, inFlightDiffs } = stats.ensemble
    const inFlight = kind === 'snap' ? inFlightSnaps : inFlightDiffs
    inFlight.add(this.#inFlight[kind])
    const facts = {
      peer: learner.serverId,
      observer: learner.isObserver,
      how: plan.kind,
      entries: plan.entries.length,
    }
    const more = plan.kind === 'snap' ? { reason: plan.reason } : { zxid: formatZxid(plan.zxid) }
    const message = 'Bringing a member up to date'
    const key = `${keyOfPeer(message, this.#context, learner)} ${plan.kind}`
    this.#log.log('info', key, { ...facts, ...more }, message)
    learner
      .sync(plan, database)
      .then(() => this.#streamed(learner.id))
      .catch((error: unknown) =>
        learner.fail(
          `it cannot be brought up to date: ${error instanceof Error ? error.message : String(error)}`,
        ),
      )
      .finally(() => {
        this.#inFlight[kind]--
        if (isBounded) this.#snapshots--
      })
  }
}
