import { OpCode, ProtocolError, Reader } from '@zabra/protocol'
import type { ClientChannel } from '../connections/client-channel.ts'
import { formatSessionId } from '../connections/log-context.ts'
import type { ServerId } from '../core/quorum/index.ts'
import type { SessionRegistry } from '../core/sessions/index.ts'
import type { Identity, SessionId } from '../core/types.ts'
import {
  decodeForwardedRequest,
  decodeRevalidation,
  encodeRevalidationReply,
  PacketType,
  touchSteps,
  type ForwardedRequest,
} from '../core/zab/index.ts'
import { movedSessionCheck, type PipelineContext, type RevalidationCallback } from '../pipeline/index.ts'
import type { MemberContext } from './context.ts'
import { forwardedIdentities, isBelieved, type Forwarder } from './forwarded-identities.ts'
import { forwardedTimeout, withForwardedTimeout } from './forwarded-timeouts.ts'
import type { LearnerConnection } from './learner-connection.ts'
import { keyOfPeer, LimitedLog } from './limited-log.ts'

/** Sessions of all servers that are not believed, together: 6 MB of the memory for clients. */
export const MOST_FORWARDED_SESSIONS = 10_000

const REFUSED =
  'Refused a session of a server that no configuration names: such servers have as many as they may'

type Learner = Forwarder & Pick<LearnerConnection, 'address' | 'send' | 'extension'>
type Context = Pick<MemberContext, 'membership' | 'security' | 'settings' | 'platform'>

/**
 * Knows the sessions that servers which are not believed have created or revalidated in a role, until they are closed. Each takes memory
 * on all members for as long as a server reports it, and clients would get no session any more: such servers have a number of them
 * together, and keep no others alive. One more is refused; the other clients of its server go on.
 */
export class ForwardedSessions {
  readonly #context: Context
  /** The sessions, with the servers that had them last. */
  readonly #servers = new Map<SessionId, ServerId>()
  /** Learners that are believed, or were. */
  readonly #wereBelieved = new WeakSet<Forwarder>()
  readonly #log: LimitedLog
  readonly #reader = new Reader()
  /** The sessions of the role; undefined before `contextOf`. */
  #known: Pick<SessionRegistry, 'get'> | undefined

  constructor(context: Context) {
    this.#context = context
    this.#log = new LimitedLog(context.platform.clock, context.platform.logger)
  }

  /** Decodes a request of a learner, with what is believed of it, and admits it. */
  receive(learner: Learner, data: Uint8Array | null, auth: readonly Identity[] | null): ForwardedRequest {
    const identities = forwardedIdentities(this.#context, learner, auth)
    const request = decodeForwardedRequest(data, identities, this.#reader)
    return this.admit(learner, withForwardedTimeout(this.#context, learner, request))
  }

  /**
   * Notes the session that a request of a learner creates. Returns the request, or in place of one that creates a session too many another
   * one: its answer, an error transaction that says that the session has moved, closes the connection of this client alone, also at a
   * server of Apache ZooKeeper. It costs what every request of an unknown session costs. Throws a `ProtocolError` for a session that is
   * created again before it is closed, which would be forgotten while it lives, or without a timeout; no server sends that.
   */
  admit(learner: Learner, request: ForwardedRequest): ForwardedRequest {
    const { sessionId, type, body } = request
    if (type !== OpCode.createSession || this.#isBelieved(learner)) return request
    if (body.length < 4) throw malformed(sessionId, 'without a timeout')
    if (this.#servers.has(sessionId)) throw malformed(sessionId, 'that it has created before')
    return this.#note(learner, sessionId) ? request : movedSessionCheck(request)
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
   * Answers a REVALIDATE by what `revalidate` says of the session. One that lives belongs to the learner from then on. Refuses one that
   * would be too many, where it is; this is also checked after `revalidate`, since very many may have been in flight.
   */
  revalidate(
    learner: Learner,
    data: Uint8Array | null,
    revalidate: (id: SessionId, timeout: number, callback: RevalidationCallback) => void,
  ): void {
    const { session, timeout } = decodeRevalidation(data)
    const onRefused = (): void => {
      // One of Apache ZooKeeper knows valid and invalid alone. Without an answer its client goes to another server after a while.
      if (learner.extension !== undefined)
        learner.send(
          PacketType.revalidate,
          -1,
          encodeRevalidationReply({ session, valid: false, isRefused: true }),
        )
    }
    const onRevalidated = (valid: boolean): void => {
      if (valid && !this.#revalidated(learner, session)) return onRefused()
      learner.send(PacketType.revalidate, -1, encodeRevalidationReply({ session, valid }))
    }
    if (this.#isFull && !this.#mayTouch(learner)(session) && this.#known?.get(session) !== undefined) {
      this.#logRefusal(learner)
      return onRefused()
    }
    // An unknown session takes no room, and its client must get to know that it is over.
    const believed = forwardedTimeout(this.#context, learner, timeout)
    revalidate(session, believed, { onRevalidated, onRefused })
  }

  /** Returns the context of a pipeline that also says here which sessions are closed. */
  contextOf(context: PipelineContext<ClientChannel>): PipelineContext<ClientChannel> {
    this.#known = context.sessions
    return {
      ...context,
      onSessionClosed: (id, callback, txn) => {
        this.#servers.delete(id)
        context.onSessionClosed(id, callback, txn)
      },
    }
  }

  get #isFull(): boolean {
    return this.#servers.size >= MOST_FORWARDED_SESSIONS
  }

  #revalidated(learner: Learner, id: SessionId): boolean {
    if (!this.#isBelieved(learner)) return this.#note(learner, id)
    this.#servers.delete(id)
    return true
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

  /** Notes a session of a learner. Returns false where it is one too many. */
  #note(learner: Learner, id: SessionId): boolean {
    if (this.#isFull && !this.#servers.has(id)) {
      this.#logRefusal(learner)
      return false
    }
    this.#servers.set(id, learner.serverId)
    return true
  }

  #logRefusal(learner: Learner): void {
    const { serverId: peer, address } = learner
    this.#log.log('warn', keyOfPeer(REFUSED, this.#context, learner), { peer, address }, REFUSED)
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

const malformed = (id: SessionId, how: string): ProtocolError =>
  new ProtocolError(
    `Expected a new session with a timeout, got session ${formatSessionId(id)} ${how}`,
    0,
    'createSession',
  )
