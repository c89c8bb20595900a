import { ErrorCode, OpCode, Reader } from '@zabra/protocol'
import type { Logger } from '@zabra/runtime'
import type { Session, SessionPasswords, SessionTracker } from '../core/sessions/index.ts'
import {
  SESSION_USER_IDENTITIES,
  SESSION_USER_XID,
  SESSION_USERS_NODE,
  sessionUserOf,
  sessionUserRequests,
  type Tree,
} from '../core/tree/index.ts'
import type { Identity, SessionId } from '../core/types.ts'
import type { RequestPipeline, WriteCallback } from '../pipeline/index.ts'
import { LOGIN_MISSING } from './close-cause.ts'
import type { ConnectionRegistry } from './connection-registry.ts'
import { formatSessionId } from './log-context.ts'

export interface SessionUsersOptions {
  readonly tree: Tree
  readonly passwords: SessionPasswords
  readonly localSessions: SessionTracker | undefined
  readonly connections: ConnectionRegistry
  readonly pipeline: RequestPipeline
  readonly logger: Logger
}

/**
 * Remembers which SASL user a session belongs to: only that user resumes it, on any member and after a restart. An ephemeral node of
 * the session holds a proof that names the user. Without a secret for passwords, sessions belong to no user, as in Apache ZooKeeper.
 */
export class SessionUsers {
  readonly #options: SessionUsersOptions

  constructor(options: SessionUsersOptions) {
    this.#options = options
  }

  /** Whether a session belongs to a user. */
  isOwned(id: SessionId): boolean {
    return this.#proofOf(id) !== undefined
  }

  /** Whether a client that has logged in as a user may use a session: it belongs to that user, or to none. */
  allows(id: SessionId, user: string): boolean {
    const proof = this.#proofOf(id)
    return proof === undefined || this.#options.passwords.isUserOf(id, proof, user)
  }

  /** Makes a session, unless it has a user, that of the user who has logged in on its connection. */
  claim(session: Session, user: string): void {
    const { passwords } = this.#options
    if (!passwords.hasSecret || session.isClosing) return
    session.userProof ??= passwords.userProofFor(session.id, user)
    if (!session.isLocal) this.store(session)
  }

  /** Stores the user of a global session, unless that has been done. */
  store({ id, userProof }: Session): void {
    const { tree, pipeline } = this.#options
    if (userProof === undefined || sessionUserOf(tree, id) !== undefined) return
    for (const body of sessionUserRequests(tree, id, userProof)) {
      const write = {
        sessionId: id,
        xid: SESSION_USER_XID,
        type: OpCode.create,
        identities: SESSION_USER_IDENTITIES,
      }
      const err = pipeline.write(write, new Reader(body), this.#callbackFor(id))
      if (err !== ErrorCode.OK) this.#noteFailure(id, err)
    }
  }

  /** Closes the connection of a session whose user is stored now, unless that user has logged in on it. */
  stored(id: SessionId): void {
    const channel = this.#options.connections.ofSession(id)
    if (channel === undefined || !this.isOwned(id)) return
    const isUser = ({ scheme, id: user }: Identity): boolean => scheme === 'sasl' && this.allows(id, user)
    if (!channel.identities.some(isUser)) channel.destroy('login', LOGIN_MISSING)
  }

  /** Returns the proof of a session's user: the stored one, or what this server knows before that is committed. */
  #proofOf(id: SessionId): Uint8Array | undefined {
    const { tree, localSessions, connections } = this.#options
    const session = localSessions?.get(id) ?? connections.ofSession(id)?.session
    return sessionUserOf(tree, id) ?? session?.userProof
  }

  #callbackFor(id: SessionId): WriteCallback {
    return {
      onApplied: (_write, err) => {
        const isExpected =
          err === ErrorCode.OK || err === ErrorCode.NODEEXISTS || err === ErrorCode.SESSIONEXPIRED
        if (!isExpected) this.#noteFailure(id, err)
      },
      onLost: () => this.#noteFailure(id, ErrorCode.SYSTEMERROR),
      onPart() {},
      onSynced() {},
    }
  }

  #noteFailure(id: SessionId, err: number): void {
    this.#options.logger.warn(
      { id: 'session.user-not-stored', session: formatSessionId(id), err },
      `The user of a session cannot be stored in ${SESSION_USERS_NODE}: until its client logs in again, another user with its password can resume it`,
    )
  }
}
