import type { Session, SessionRegistry, SessionTracker } from '../core/sessions/index.ts'
import type { AuditLog } from '../audit/index.ts'
import type { RequestPipeline } from '../pipeline/index.ts'
import type { Clock } from '@zabra/runtime'
import type { ConnectionRegistry } from './connection-registry.ts'
import { inSlices } from '../core/in-slices.ts'
import { formatSessionId } from './log-context.ts'
import type { RefusalLog } from './refusal-log.ts'
import type { ServerStats } from './stats.ts'

const EXPIRED = 'A session expired'
/** Lines about expired sessions in ten seconds. */
const LINES = 100

export interface SessionExpiryOptions {
  readonly clock: Clock
  readonly refusals: RefusalLog
  readonly sessions: SessionRegistry
  readonly localSessions: SessionTracker | undefined
  readonly pipeline: RequestPipeline
  readonly connections: ConnectionRegistry
  readonly stats: ServerStats
  /** Records the sessions that expire. */
  readonly audit: AuditLog | undefined
  /** Runs a function in a later turn. */
  readonly runLater: (action: () => void) => void
}

/** Closes the sessions that expire. Where the leader tracks the global sessions, only local sessions expire here. */
export class SessionExpiry {
  readonly #options: SessionExpiryOptions
  /** Lists of expired sessions that are being closed. */
  #closing = 0

  constructor(options: SessionExpiryOptions) {
    this.#options = options
  }

  /**
   * When `run` is due next, on the monotonic clock. Global sessions do not expire while their closeSession transaction cannot be
   * logged.
   */
  get nextAt(): number {
    const { pipeline, sessions, localSessions } = this.#options
    const next = pipeline.isWritable ? sessions.nextDeadline : Infinity
    return Math.min(next, localSessions?.nextDeadline ?? Infinity)
  }

  /** Closes sessions whose deadline has passed, in slices. While `nextAt` is not in the future, there may be more. */
  run(): void {
    if (this.#closing > 0) return
    const { clock, pipeline, sessions, localSessions } = this.#options
    const now = clock.monotonic()
    // Decided before any of their requests is handled: an expired session ignores requests.
    const expiredLocal = localSessions?.expire(now).filter((session) => !this.#isThrottled(session)) ?? []
    this.#close(expiredLocal, (session) => {
      this.#closeConnection(session)
      localSessions!.remove(session.id)
    })
    if (!pipeline.isWritable) return
    const expired = sessions.expire(now).filter((session) => !this.#isThrottled(session))
    this.#close(expired, (session) => this.#expire(session))
  }

  /** Reopens a session whose client, or the learner that owns it, is throttled: its pings are not read. */
  #isThrottled(session: Session): boolean {
    const { clock, sessions, localSessions, connections } = this.#options
    if (connections.ofSession(session.id)?.flow.isThrottled !== true && session.owner?.isHeldUp !== true)
      return false
    const registry = session.isLocal ? localSessions! : sessions
    registry.touch(session, clock.monotonic())
    registry.reopen(session)
    return true
  }

  #close(expired: readonly Session[], close: (session: Session) => void): void {
    const { clock, runLater } = this.#options
    this.#closing++
    // All of them are marked as closing already.
    inSlices(expired, close, { now: () => clock.monotonic(), runLater, done: () => this.#closing-- })
  }

  #expire(session: Session): void {
    const { clock, refusals, sessions, pipeline, connections } = this.#options
    // While the disk is full, no closeSession transaction can be logged. Requests that came meanwhile were ignored, so the
    // client connects again.
    if (!pipeline.isWritable) {
      sessions.touch(session, clock.monotonic())
      sessions.reopen(session)
      connections
        .ofSession(session.id)
        ?.destroy('disk_full', 'Closed: its session had expired, and the disk is full')
      return
    }
    const context = { session: formatSessionId(session.id), timeoutMs: session.timeout }
    refusals.note('all addresses', context, EXPIRED, EXPIRED, LINES)
    this.#closeConnection(session)
    pipeline.closeSession(session.id, 0, undefined)
  }

  #closeConnection({ id }: Session): void {
    const { stats, connections, audit } = this.#options
    audit?.record({ category: 'sessions', operation: 'sessionExpire', session: id, result: 'invoked' })
    stats.sessionsExpired++
    connections.ofSession(id)?.destroy('session_expired', 'Closed: its session expired')
  }
}
