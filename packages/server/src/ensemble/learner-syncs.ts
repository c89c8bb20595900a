import { formatZxid } from '@zabra/protocol'
import type { ConnectionId, SyncPlan } from '../core/zab/index.ts'
import type { LearnerConnection } from './learner-connection.ts'
import type { MemberContext } from './context.ts'

/**
 * Brings learners up to date, each over its own connection: what a leader does for all of them, and a follower for the observers
 * behind it. Observers that are sent a snapshot at the same time are bounded (`maxConcurrentSnapSyncs`).
 */
export class LearnerSyncs {
  readonly #kit: MemberContext
  readonly #streamed: (to: ConnectionId) => void
  /** Observers that are being sent a snapshot. */
  #snapshots = 0

  /** `streamed` is told when all that a plan asks for is on its way. */
  constructor(kit: MemberContext, streamed: (to: ConnectionId) => void) {
    this.#kit = kit
    this.#streamed = streamed
  }

  start(link: LearnerConnection, plan: SyncPlan): void {
    const { database: vault, ports, settings } = this.#kit
    const most = settings.maxConcurrentSnapSyncs
    const counts = plan.how === 'snap' && link.isObserver
    if (counts && this.#snapshots >= most)
      return link.fail(`${most} observers are being sent a snapshot already`)
    if (counts) this.#snapshots++
    const facts = {
      peer: link.serverId,
      observer: link.isObserver,
      how: plan.how,
      entries: plan.entries.length,
    }
    const more = plan.how === 'snap' ? { reason: plan.reason } : { zxid: formatZxid(plan.zxid) }
    ports.logger.info({ ...facts, ...more }, 'Bringing a member up to date')
    link
      .sync(plan, vault)
      .then(() => this.#streamed(link.id))
      .catch((error: unknown) =>
        link.fail(
          `it cannot be brought up to date: ${error instanceof Error ? error.message : String(error)}`,
        ),
      )
      .finally(() => {
        if (counts) this.#snapshots--
      })
  }
}
