import { OpCode } from '@zabra/protocol'
import type { ClientChannel } from '../connections/client-channel.ts'
import { formatSessionId } from '../connections/log-context.ts'
import type { ServerId } from '../core/quorum/index.ts'
import type { SessionId } from '../core/types.ts'
import { decodeRevalidation, encodeRevalidationReply, PacketType, touchSteps } from '../core/zab/index.ts'
import type { ForwardedRequest, PipelineContext } from '../pipeline/index.ts'
import type { MemberContext } from './context.ts'
import { isBelieved, type Forwarder } from './forwarded-identities.ts'
import { forwardedTimeout } from './forwarded-timeouts.ts'
import type { LearnerConnection } from './learner-connection.ts'

/** Sessions of all servers that are not believed, together: 6 MB of the memory for clients. */
export const MOST_FORWARDED_SESSIONS = 10_000

const TOO_MANY = `servers that no configuration names have ${MOST_FORWARDED_SESSIONS} sessions, which is the most; add it to the configuration before clients connect to it`

type Revalidator = Forwarder & Pick<LearnerConnection, 'send' | 'fail'>
type Context = Pick<MemberContext, 'membership' | 'security' | 'settings'>

/**
 * Knows the sessions that servers which are not believed have created or revalidated in a role, until they are closed. Each takes memory
 * on all members for as long as a server reports it, and clients would get no session any more: such servers have a number of them
 * together, and keep no others alive.
 */
export class ForwardedSessions {
  readonly #context: Context
  /** The sessions, with the servers that had them last. */
  readonly #servers = new Map<SessionId, ServerId>()
  /** Learners that are believed, or were. */
  readonly #wereBelieved = new WeakSet<Forwarder>()

  constructor(context: Context) {
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
    if (type !== OpCode.createSession || this.#isBelieved(learner)) return undefined
    const session = formatSessionId(sessionId)
    if (body.length < 4) return `it creates session ${session} without a timeout`
    if (this.#servers.has(sessionId)) return `it creates session ${session} twice`
    return this.#note(learner, sessionId)
  }

  /** Forgets the sessions that requests of a lost learner would have created, which are not carried out. */
  dropped(requests: readonly Pick<ForwardedRequest, 'sessionId' | 'type'>[]): void {
    for (const { sessionId, type } of requests)
      if (type === OpCode.createSession) this.#servers.delete(sessionId)
  }

  /** Returns the steps that keep the sessions of a PING alive, each with the timeout that is believed. */
  pingSteps(
    learner: Forwarder,
    data: Uint8Array | null,
    touch: (id: SessionId, timeout: number) => void,
  ): Generator<void> {
    const mayTouch = this.#mayTouch(learner)
    return touchSteps(data, (id, timeout) => {
      if (mayTouch(id)) touch(id, forwardedTimeout(this.#context, learner, timeout))
    })
  }

  /**
   * Answers a REVALIDATE by what `revalidate` says of the session. One that lives belongs to the learner from then on. Closes the connection
   * of a learner that would have too many; this is also checked after `revalidate`, since very many may have been in flight.
   */
  revalidate(
    learner: Revalidator,
    data: Uint8Array | null,
    revalidate: (id: SessionId, timeout: number, answer: (valid: boolean) => void) => void,
  ): void {
    const { session, timeout } = decodeRevalidation(data)
    if (this.#servers.size >= MOST_FORWARDED_SESSIONS && !this.#mayTouch(learner)(session))
      return learner.fail(TOO_MANY)
    revalidate(session, forwardedTimeout(this.#context, learner, timeout), (valid) => {
      const refusal = valid ? this.#revalidated(learner, session) : undefined
      if (refusal !== undefined) return learner.fail(refusal)
      learner.send(PacketType.revalidate, -1, encodeRevalidationReply({ session, valid }))
    })
  }

  /** Returns the context of a pipeline that also says here which sessions are closed. */
  contextOf(context: PipelineContext<ClientChannel>): PipelineContext<ClientChannel> {
    return {
      ...context,
      onSessionClosed: (id, callback, txn) => {
        this.#servers.delete(id)
        context.onSessionClosed(id, callback, txn)
      },
    }
  }

  #revalidated(learner: Forwarder, id: SessionId): string | undefined {
    if (!this.#isBelieved(learner)) return this.#note(learner, id)
    this.#servers.delete(id)
    return undefined
  }

  /**
   * Returns a function that returns whether a learner may keep a session alive; for one packet, which may name very many. One that was
   * removed from the configuration follows on until it reconnects, and its clients stay.
   */
  #mayTouch(learner: Forwarder): (id: SessionId) => boolean {
    return this.#isBelieved(learner) || this.#wereBelieved.has(learner)
      ? () => true
      : (id) => this.#servers.has(id)
  }

  #note({ serverId }: Forwarder, id: SessionId): string | undefined {
    if (this.#servers.size >= MOST_FORWARDED_SESSIONS && !this.#servers.has(id)) return TOO_MANY
    this.#servers.set(id, serverId)
    return undefined
  }

  #isBelieved(learner: Forwarder): boolean {
    if (!isBelieved(this.#context, learner)) return false
    if (this.#wereBelieved.has(learner)) return true
    this.#wereBelieved.add(learner)
    // What it had before a configuration named it leaves room for others.
    for (const [id, serverId] of this.#servers) if (serverId === learner.serverId) this.#servers.delete(id)
    return true
  }
}
