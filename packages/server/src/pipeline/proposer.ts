import { ErrorCode, OpCode, Reader, Writer } from '@zabra/protocol'
import { Histogram } from '../core/histogram.ts'
import { precheck, type PreparedTxn, type Preparer } from '../core/prepare/index.ts'
import { endTurn, isOneStep } from '../core/steps.ts'
import { SESSION_USER_IDENTITIES, SESSION_USER_XID, sessionUserRequests } from '../core/tree/index.ts'
import type { CloseSessionTxn, LoggedTxn, SessionId, Zxid } from '../core/types.ts'
import type { NotifiedWatcher } from '../core/watches/index.ts'
import type { ForwardedRequest } from '../core/zab/index.ts'
import { encodeLoggedTxn, encodePayloadInSteps } from '../persistence/index.ts'
import { InFlightWrite, type RequestIdentity } from './in-flight-write.ts'
import type { LeaderSessions } from './leader-sessions.ts'
import { isMovedSessionCheck } from './session-routes.ts'
import type { AcceptedWrite, ClientWrite, LeaderPipelineOptions, WriteCallback } from './types.ts'

/** A multi of more bytes is prepared in steps, and a request with a longer path. */
const LARGE_BYTES = 8192
const LONG_PATH_BYTES = 65_536
const LONG_ACL_BYTES = 65_536
const CREATES: ReadonlySet<number> = new Set([
  OpCode.create,
  OpCode.create2,
  OpCode.createContainer,
  OpCode.createTTL,
])
/** Encoded transactions share a buffer until it holds this many bytes. */
const SHARED_BYTES = 60_000
const NO_PAYLOAD = new Uint8Array(0)
/** The owner of the sessions whose clients are connected to the leader itself. */
export const LEADER_OWNER: object = { name: 'the leader' }

/**
 * Prepares the requests of the leader's clients and of learners, assigns zxids, and logs and proposes the transactions in their
 * order. The caller runs one request after the other: one whose steps are returned must be finished before the next.
 */
export class Proposer<L extends NotifiedWatcher> {
  readonly preparer: Preparer
  /** The sizes of proposals in bytes. */
  readonly sizes = new Histogram()
  /** Size of the last proposal in bytes; -1 before the first. */
  lastSize = -1
  /** The last zxid assigned. */
  lastZxid: Zxid
  /**
   * Whether a transaction was dropped because the quorum accepts none any more. No later one may be proposed, and the role has
   * to end.
   */
  hasDropped = false
  readonly #options: LeaderPipelineOptions<L>
  readonly #sessions: LeaderSessions<L>
  /** Queues a write to be applied once it is committed. */
  readonly #enqueue: (write: AcceptedWrite) => void
  readonly #reader = new Reader()
  /** Payloads are views of its buffer; it appends after them. */
  readonly #writer = new Writer(1 << 12)
  /** The owner of the session whose write is being prepared: a learner, or the leader itself. */
  #owner: object = LEADER_OWNER

  constructor(
    options: LeaderPipelineOptions<L>,
    sessions: LeaderSessions<L>,
    enqueue: (write: AcceptedWrite) => void,
  ) {
    this.#options = options
    this.#sessions = sessions
    this.#enqueue = enqueue
    this.lastZxid = options.lastZxid
    this.preparer = options.createPreparer({
      check: (id, global) => sessions.check(id, global, this.#owner),
    })
  }

  /** Prepares and proposes a write of a client of this server. Returns an error number if the write cannot be decoded. */
  submit(write: ClientWrite, body: Reader, callback: WriteCallback): number {
    this.#upgradeSession(write, body)
    const time = this.#begin()
    const prepared = this.preparer.prepare(write, body, this.#nextZxid(), time)
    if (typeof prepared === 'number') return prepared
    this.#propose(write, time, prepared, callback)
    return ErrorCode.OK
  }

  /** As `submit`, for a write that was accepted before: one that cannot be decoded is answered by a transaction. */
  submitDeferred(write: ClientWrite, body: Reader, callback: WriteCallback): Generator<void> | void {
    this.#upgradeSession(write, body)
    return this.#process(LEADER_OWNER, write, body, callback)
  }

  /** Proposes the removal of a container or a node whose TTL is over, unless it has a pending change or is not due. */
  deleteContainer(path: string, isDue: () => boolean): void {
    // A pending change may delete the node and create it again.
    if (this.preparer.hasPendingChange(path) || !isDue()) return
    const time = this.#begin()
    const prepared = this.preparer.deleteContainer(path, this.#nextZxid())
    const id = { sessionId: 0n, xid: 0, type: OpCode.deleteContainer }
    this.#propose(id, time, prepared, undefined)
  }

  /** Prepares and proposes a request that a learner forwards. */
  processForwarded(owner: object, request: ForwardedRequest): Generator<void> | void {
    const { sessionId, xid, type, body } = request
    if (isMovedSessionCheck(type, body)) return this.#reject(request, ErrorCode.SESSIONMOVED)
    if (type === OpCode.closeSession) {
      if (!this.#sessions.isClosed(sessionId)) return this.closeSession(sessionId, xid, undefined)
      // The session was closed here while the request was in flight.
      return this.#reject(request, ErrorCode.SESSIONEXPIRED)
    }
    const reader = this.#reader.resetToView(body)
    if (type === OpCode.createSession && body.length >= 4)
      return this.createSession(sessionId, xid, reader.int(), owner, undefined, userProofIn(reader))
    return this.#process(owner, request, reader, undefined)
  }

  /** Prepares and proposes a write that cannot be refused any more without a transaction. */
  #process(
    owner: object,
    write: ClientWrite,
    body: Reader,
    callback: WriteCallback | undefined,
  ): Generator<void> | void {
    if (isLargeRequest(write.type, body)) return this.#processInSteps(owner, write, body, callback)
    const time = this.#begin()
    this.#owner = owner
    const prepared = this.preparer.prepare(write, body, this.#nextZxid(), time)
    this.#owner = LEADER_OWNER
    this.#propose(write, time, txnOf(prepared), callback)
  }

  *#processInSteps(
    owner: object,
    write: ClientWrite,
    body: Reader,
    callback: WriteCallback | undefined,
  ): Generator<void> {
    const time = this.#begin()
    const steps = this.preparer.prepareInSteps(write, body, this.#nextZxid(), time)
    for (;;) {
      this.#owner = owner
      const { done, value } = steps.next()
      this.#owner = LEADER_OWNER
      if (done === true) {
        if (write.type !== OpCode.multi) yield* endTurn()
        return yield* this.#proposeInSteps(write, time, txnOf(value), callback)
      }
      yield
    }
  }

  #reject(write: ClientWrite, err: number): void {
    this.#propose(write, this.#begin(), txnOf(err), undefined)
  }

  /**
   * Proposes the first transaction of a session. The user of one that was a local session is stored before, so that no server knows
   * the session without its user, whatever becomes of the later transactions.
   */
  createSession(
    id: SessionId,
    xid: number,
    timeout: number,
    owner: object,
    callback: WriteCallback | undefined,
    userProof?: Uint8Array,
  ): void {
    this.#sessions.markCreating(id, owner)
    if (userProof !== undefined) this.#storeUser(id, userProof, owner)
    const time = this.#begin()
    const prepared = this.preparer.createSession(timeout)
    const write = { sessionId: id, xid, type: OpCode.createSession }
    this.#propose(write, time, prepared, callback)
  }

  #storeUser(id: SessionId, userProof: Uint8Array, owner: object): void {
    for (const body of sessionUserRequests(this.#options.tree, id, userProof)) {
      const write = {
        sessionId: id,
        xid: SESSION_USER_XID,
        type: OpCode.create,
        identities: SESSION_USER_IDENTITIES,
      }
      this.#process(owner, write, this.#reader.reset(body), undefined)
    }
  }

  *closeSession(id: SessionId, xid: number, callback: WriteCallback | undefined): Generator<void> {
    const { stages, clock } = this.#options
    const begunAt = clock.monotonic()
    const time = this.#begin()
    this.#sessions.markClosing(id)
    const prepared = yield* this.preparer.closeSession(id, this.#nextZxid())
    stages.endOfSession.add(clock.monotonic() - begunAt)
    const write = { sessionId: id, xid, type: OpCode.closeSession }
    const { paths2Delete } = prepared.txn as CloseSessionTxn
    if (isOneStep(paths2Delete)) return this.#propose(write, time, prepared, callback)
    yield* this.#proposeInSteps(write, time, prepared, callback)
  }

  /** Makes a local session global before a write that creates an ephemeral node, if the settings allow it. */
  #upgradeSession({ sessionId, type }: ClientWrite, body: Reader): void {
    const { localSessions, canUpgradeSessions } = this.#options
    const session = localSessions?.get(sessionId)
    if (session === undefined || canUpgradeSessions !== true) return
    const { offset } = body
    const { isEphemeral } = precheck(type, body)
    body.offset = offset
    if (!isEphemeral) return
    localSessions!.remove(sessionId)
    session.isLocal = false
    this.createSession(sessionId, 0, session.timeout, LEADER_OWNER, undefined, session.userProof)
  }

  #nextZxid(): Zxid {
    return this.lastZxid + 1
  }

  #now(): number {
    return Math.floor(this.#options.clock.wall())
  }

  /** Begins to prepare a transaction. Returns its time. */
  #begin(): number {
    const { stages, clock } = this.#options
    const zxid = this.#nextZxid()
    if (stages.isSampled(zxid)) stages.begun(zxid, clock.monotonic())
    return this.#now()
  }

  // Proposals

  /** Proposes a transaction that was prepared with the zxid after `lastZxid`. */
  #propose(
    id: RequestIdentity,
    time: number,
    prepared: PreparedTxn,
    callback: WriteCallback | undefined,
  ): void {
    const write = new InFlightWrite(id, this.lastZxid + 1, time, prepared, callback)
    this.#append(write, this.#options.quorum.sendsPayloads ? this.#encode(write) : NO_PAYLOAD)
  }

  /** As `#propose`, encoding a large transaction in steps. Nothing else may be proposed between them. */
  *#proposeInSteps(
    id: RequestIdentity,
    time: number,
    prepared: PreparedTxn,
    callback: WriteCallback | undefined,
  ): Generator<void> {
    const write = new InFlightWrite(id, this.lastZxid + 1, time, prepared, callback)
    const { payload, adler } = yield* encodePayloadInSteps(write)
    this.#append(write, payload, adler)
  }

  #encode(logged: LoggedTxn): Uint8Array {
    const writer = this.#writer
    if (writer.length > SHARED_BYTES) writer.take()
    const start = writer.length
    encodeLoggedTxn(writer, logged)
    return writer.bytesFrom(start)
  }

  #append(write: AcceptedWrite, payload: Uint8Array, adler?: number): void {
    const { log, quorum } = this.#options
    const { logged } = write
    const { zxid } = logged.header
    // The role is about to end. The client's connection closes with it, because the outcome of the write is unknown.
    this.hasDropped ||= !quorum.isAccepting
    if (this.hasDropped) return
    this.#enqueue(write)
    this.lastZxid = zxid
    // The disk has become full between two steps of this request: `discardAfter` follows, and reports the write as lost.
    if (log.state === 'full') return
    if (payload === NO_PAYLOAD) log.append(logged)
    else {
      log.appendPayload(zxid, payload, adler)
      this.lastSize = payload.length
      this.sizes.add(payload.length)
    }
    const { stages, clock, turnTime } = this.#options
    const isSampled = stages.isSampled(zxid)
    const loggedAt = isSampled ? clock.monotonic() : turnTime()
    stages.proposed(zxid, loggedAt)
    quorum.propose(zxid, payload, logged)
    if (isSampled) stages.proposing.add(clock.monotonic() - loggedAt)
  }
}

/** Whether a request is prepared in steps. */
export const isLargeRequest = (type: number, body: Reader): boolean =>
  body.remaining > LARGE_BYTES && (type === OpCode.multi || hasLongPath(body) || hasLongAcl(type, body))

const hasLongPath = (body: Reader): boolean =>
  body.remaining > LONG_PATH_BYTES && body.view.getInt32(body.offset) > LONG_PATH_BYTES

/** Whether the access control list of a request takes milliseconds to be checked, encoded and stored, each. */
function hasLongAcl(type: number, { view, offset, remaining }: Reader): boolean {
  if (remaining <= LONG_ACL_BYTES) return false
  if (type === OpCode.setACL) return true
  if (!CREATES.has(type)) return false
  const pathBytes = view.getInt32(offset)
  if (pathBytes < 0 || pathBytes > remaining - 8) return false
  const dataBytes = Math.max(0, view.getInt32(offset + 4 + pathBytes))
  return remaining - 8 - pathBytes - dataBytes > LONG_ACL_BYTES
}

/** Bytes of the proof of a session's user. */
const PROOF_BYTES = 16

/** Returns the proof of the user behind the timeout in the request of a learner to create a session; undefined without one. */
const userProofIn = (reader: Reader): Uint8Array | undefined =>
  reader.remaining === 4 + PROOF_BYTES && reader.int() === PROOF_BYTES ? reader.raw(PROOF_BYTES) : undefined

/** Returns the transaction that answers a request; for an error number, an error transaction. */
const txnOf = (prepared: PreparedTxn | number): PreparedTxn =>
  typeof prepared === 'number'
    ? { txn: { type: OpCode.error, err: prepared }, digest: undefined, node: undefined, crc: 0 }
    : prepared
