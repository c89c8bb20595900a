import { ANYONE, CreateMode, ErrorCode, OpCode, Reader, writeCreateRequest, Writer } from '@zabra/protocol'
import type { Logger } from '@zabra/runtime'
import type { Session, SessionPasswords, SessionTracker } from '../core/sessions/index.ts'
import { SESSION_USERS_NODE, sessionUserOf, sessionUserPath, type Tree } from '../core/tree/index.ts'
import type { Identity, SessionId } from '../core/types.ts'
import type { RequestPipeline, WriteCallback } from '../pipeline/index.ts'
import { formatSessionId } from './log-context.ts'

/** The xid of the writes, with which clients authenticate. */
const AUTH_XID = -4
/** Only a super user may read or change the nodes. */
const NO_PERMISSIONS = [{ perms: 0, id: ANYONE }]
const SERVER: readonly Identity[] = [{ scheme: 'super', id: '' }]

export interface SessionUsersOptions {
  readonly tree: Tree
  readonly passwords: SessionPasswords
  readonly localSessions: SessionTracker | undefined
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
    const { tree, localSessions } = this.#options
    return localSessions?.get(id)?.user !== undefined || sessionUserOf(tree, id) !== undefined
  }

  /** Whether a client that has logged in as a user may use a session: it belongs to that user, or to none. */
  allows(id: SessionId, user: string): boolean {
    const { tree, localSessions, passwords } = this.#options
    const local = localSessions?.get(id)?.user
    if (local !== undefined) return local === user
    const proof = sessionUserOf(tree, id)
    return proof === undefined || passwords.isUserOf(id, proof, user)
  }

  /** Makes a session, unless it has a user, that of the user who has logged in on its connection. */
  claim(session: Session, user: string, now: number): void {
    const { passwords, tree } = this.#options
    const { id } = session
    if (!passwords.hasSecret || session.isClosing || this.isOwned(id)) return
    if (session.isLocal) {
      session.user = user
      return
    }
    const mode = CreateMode.PERSISTENT
    if (tree.find(SESSION_USERS_NODE) === -1) this.#create(id, SESSION_USERS_NODE, null, mode, now)
    this.#create(id, sessionUserPath(id), passwords.userProofFor(id, user), CreateMode.EPHEMERAL, now)
  }

  #create(id: SessionId, path: string, data: Uint8Array | null, flags: number, now: number): void {
    const writer = new Writer(128)
    writeCreateRequest(writer, { path, data, acl: NO_PERMISSIONS, flags })
    const write = { sessionId: id, xid: AUTH_XID, type: OpCode.create, identities: SERVER }
    const err = this.#options.pipeline.write(write, new Reader(writer.take()), this.#callbackFor(id), now)
    if (err !== ErrorCode.OK) this.#noteFailure(id, err)
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
      { session: formatSessionId(id), err },
      `The user of a session cannot be stored in ${SESSION_USERS_NODE}: until its client logs in again, another user with its password can resume it`,
    )
  }
}
