import { OpCode } from '@zabra/protocol'
import type { ClientChannel } from '../connections/client-channel.ts'
import { formatSessionId } from '../connections/log-context.ts'
import type { SessionId } from '../core/types.ts'
import type { ForwardedRequest, PipelineContext } from '../pipeline/index.ts'
import type { MemberContext } from './context.ts'
import { isBelieved, type Forwarder } from './forwarded-identities.ts'

/** Sessions of all servers that are not believed, together: 6 MB of the memory for clients. */
export const MOST_FORWARDED_SESSIONS = 10_000

const TOO_MANY = `servers that no configuration names have ${MOST_FORWARDED_SESSIONS} sessions, which is the most; add it to the configuration before clients connect to it`

/**
 * Knows the sessions that servers which are not believed have created or revalidated in a role, until they are closed. Each takes memory
 * on all members for as long as a server reports it, and clients would get no session any more: such servers have a number of them
 * together, and keep no others alive.
 */
export class ForwardedSessions {
  readonly #context: Pick<MemberContext, 'membership' | 'security'>
  readonly #ids = new Set<SessionId>()

  constructor(context: Pick<MemberContext, 'membership' | 'security'>) {
    this.#context = context
  }

  /**
   * Notes the session that a request of a learner creates. Returns why the connection of the learner is to be closed, or undefined. A
   * session that is created again before it is closed would be forgotten while it lives; no server sends that.
   */
  refusal(
    learner: Forwarder,
    { sessionId, type, body }: Pick<ForwardedRequest, 'sessionId' | 'type' | 'body'>,
  ): string | undefined {
    if (type !== OpCode.createSession || isBelieved(this.#context, learner)) return undefined
    const session = formatSessionId(sessionId)
    if (body.length < 4) return `it creates session ${session} without a timeout`
    if (this.#ids.has(sessionId)) return `it creates session ${session} twice`
    if (this.#ids.size >= MOST_FORWARDED_SESSIONS) return TOO_MANY
    this.#ids.add(sessionId)
    return undefined
  }

  /** Returns why the connection of a learner that revalidates a session is to be closed, or undefined. */
  refusalToRevalidate(learner: Forwarder, id: SessionId): string | undefined {
    return this.#ids.size < MOST_FORWARDED_SESSIONS || this.mayTouch(learner)(id) ? undefined : TOO_MANY
  }

  /** Notes a session that a learner has revalidated: it lives. */
  revalidated(learner: Forwarder, id: SessionId): void {
    if (!isBelieved(this.#context, learner)) this.#ids.add(id)
  }

  /** Returns a function that returns whether a learner may keep a session alive; for one packet, which may name very many. */
  mayTouch(learner: Forwarder): (id: SessionId) => boolean {
    return isBelieved(this.#context, learner) ? () => true : (id) => this.#ids.has(id)
  }

  /** Returns the context of a pipeline that also says here which sessions are closed. */
  contextOf(context: PipelineContext<ClientChannel>): PipelineContext<ClientChannel> {
    return {
      ...context,
      onSessionClosed: (id, callback, txn) => {
        this.#ids.delete(id)
        context.onSessionClosed(id, callback, txn)
      },
    }
  }
}
