import { ErrorCode, OpCode, Reader, Writer } from '@zabra/protocol'
import { precheck, type PreparedTxn, type Preparer } from '../core/prepare/index.ts'
import { Summary } from '../core/histogram.ts'
import { runToEnd, STEP } from '../core/steps.ts'
import type { LoggedTxn, SessionId, Txn, Zxid } from '../core/types.ts'
import type { NotifiedWatcher } from '../core/watches/index.ts'
import { encodeLoggedTxn, encodePayloadInSteps } from '../persistence/index.ts'
import type {
  RevalidationCallback,
  AcceptedWrite,
  RecordedDigests,
  WriteCallback,
  ClientWrite,
  RequestPipeline,
} from './types.ts'
import { ApplyQueue } from './apply-queue.ts'
import { InFlightWrite } from './in-flight-write.ts'
import type { LeaderPipelineOptions, ForwardedRequest } from './leader-types.ts'
import { LeaderSessions } from './leader-sessions.ts'
import { LearnerRequestOrder } from './learner-request-order.ts'
import { isMovedSessionCheck } from './session-routes.ts'
import { SlicedQueue } from './sliced-queue.ts'

/** A request that may have to wait until another one is prepared. */
interface Asked extends Pick<AcceptedWrite, 'xid' | 'type' | 'callback' | 'startedAt'> {
  /** The session that it ends. */
  readonly closes?: SessionId
}

/** Bytes of a multi from which on it is prepared in steps. */
const LARGE_BYTES = 8192
/** Payloads share an array until they have filled so much of it. */
const SHARED_BYTES = 60_000
/** The owner of the sessions whose clients are connected to the leader itself. */
const HERE: object = { name: 'the leader' }

/**
 * The way of every write where this server decides: prepare, log, propose, wait until it is committed, apply, tell watchers,
 * reply. A standalone server is a quorum of one. The rules, which only this file enforces:
 *
 * 1. A zxid is one above the last one appended; nothing else hands out zxids.
 * 2. What is prepared is appended and proposed in the same turn, so log, proposals and pending view have one order.
 * 3. Nothing is applied, and nobody is answered, before it is committed.
 * 4. Transactions are applied in the order of their zxids, all that is committed in one go.
 * 5. Watchers are told while a transaction is applied, its requester after that.
 * 6. When the disk of a server that stands alone is full, what was not durable never happens: its requesters are told, and the
 *    pending view is dropped.
 * 7. Every request of a learner is answered by a transaction, if only by one that says why not.
 * 8. A large request is prepared, and a large transaction applied, in steps. What comes meanwhile waits behind it: requests are
 *    prepared in the order in which they came, and nothing is read from a tree that is halfway.
 * 9. Requests of a learner behind its sync are not looked at before the sync is over, since a learner expects answers in order.
 */
export class LeaderPipeline<L extends NotifiedWatcher> implements RequestPipeline {
  readonly #parts: LeaderPipelineOptions<L>
  readonly #preparer: Preparer
  readonly #reader = new Reader()
  /** Payloads are views of what it has written, and it writes on behind them. */
  readonly #writer = new Writer(1 << 12)
  readonly #learnerOrder: LearnerRequestOrder
  readonly #sessions: LeaderSessions<L>
  /** What is accepted, until it is applied. */
  readonly #applyQueue: ApplyQueue<L>
  /** Bytes of proposals. */
  readonly proposalSize = new Summary()
  lastProposalSize = -1
  /** Whether something was asked that is never answered: nothing behind it may be, and the role has to end. */
  hasDroppedRequest = false
  /** Requests that are prepared in steps, and those behind them. */
  readonly #preparing: SlicedQueue
  /** How many of the latter have a requester here. */
  #deferred = 0
  /** Syncs that wait for a confirmation. */
  #confirming = 0
  #lastZxid: Zxid
  /** Who asks for the write that is being prepared. */
  #owner: object = HERE
  #ended = false

  constructor(parts: LeaderPipelineOptions<L>) {
    this.#parts = parts
    this.#lastZxid = parts.lastZxid
    this.#sessions = new LeaderSessions(parts)
    const check = (id: SessionId, global: boolean): number => this.#sessions.check(id, global, this.#owner)
    this.#preparer = parts.createPreparer({ check })
    const sessions = (id: SessionId, txn: Txn, told: WriteCallback | undefined): void =>
      this.#sessions.apply(id, txn, told)
    this.#applyQueue = new ApplyQueue({
      ...parts,
      preparer: this.#preparer,
      applySession: sessions,
    })
    this.#preparing = new SlicedQueue(parts)
    this.#learnerOrder = new LearnerRequestOrder({
      sync: (learner, done) =>
        this.#inOrder(undefined, () => this.#confirm(() => (parts.quorum.sendSync(learner), done()))),
      process: (learner, request) => this.#inOrder(undefined, () => this.#take(learner, request)),
    })
  }

  get outstanding(): number {
    return this.#applyQueue.outstanding + this.#deferred
  }

  get isWritable(): boolean {
    return this.#parts.log.state === 'open'
  }

  get lastVisibleZxid(): Zxid {
    // The epoch begins behind everything that is older, and clients of other servers are told so.
    const { tree, lastZxid } = this.#parts
    return Math.max(tree.lastZxid, lastZxid)
  }

  /** The last zxid handed out. */
  get lastZxid(): Zxid {
    return this.#lastZxid
  }

  /** Syncs that wait, those of learners included. */
  get pendingSyncs(): number {
    return this.#applyQueue.pendingSyncs + this.#confirming
  }

  get digests(): RecordedDigests {
    return this.#applyQueue.digests.entries
  }

  // Clients of this server

  write(write: ClientWrite, body: Reader, requester: WriteCallback, startedAt: number): number {
    if (!this.isWritable) return ErrorCode.SYSTEMERROR
    if (this.#preparing.isBusy || isLargeRequest(write.type, body)) {
      // The bytes are the connection's; what is prepared later needs its own.
      const own = new Reader(body.raw(body.remaining).slice(), 0, undefined, body.maxElement)
      this.#inOrder({ ...write, callback: requester, startedAt }, () =>
        this.#writeBehind(write, own, requester, startedAt),
      )
      return ErrorCode.OK
    }
    if (this.#parts.localSessions !== undefined) this.#upgrade(write, body, startedAt)
    const zxid = this.#lastZxid + 1
    const time = this.#now()
    const prepared = this.#preparer.prepare(write, body, zxid, time)
    if (typeof prepared === 'number') return prepared
    this.#accept(write.sessionId, write.xid, write.type, zxid, time, prepared, requester, startedAt)
    return ErrorCode.OK
  }

  createSession(id: SessionId, timeout: number, requester: WriteCallback, startedAt: number): boolean {
    if (!this.isWritable) return false
    const asked = { xid: 0, type: OpCode.createSession, callback: requester, startedAt }
    this.#inOrder(asked, () => this.#begin(id, 0, timeout, HERE, requester, startedAt))
    return true
  }

  closeSession(id: SessionId, xid: number, requester: WriteCallback | undefined, startedAt: number): boolean {
    if (!this.isWritable) return false
    this.#inOrder({ xid, type: OpCode.closeSession, callback: requester, startedAt, closes: id }, () =>
      this.#close(id, xid, requester, startedAt),
    )
    return true
  }

  deleteContainer(path: string, startedAt: number, isDue: () => boolean): boolean {
    if (!this.isWritable) return false
    this.#inOrder(undefined, () => {
      // A change that is on its way may be a new life.
      if (this.#preparer.hasPendingChange(path) || !isDue()) return
      const zxid = this.#lastZxid + 1
      const prepared = this.#preparer.deleteContainer(path, zxid)
      this.#accept(0n, 0, OpCode.deleteContainer, zxid, this.#now(), prepared, undefined, startedAt)
    })
    return true
  }

  sync(_write: ClientWrite, requester: WriteCallback): number | undefined {
    if (this.#preparing.isBusy) {
      this.#inOrder(undefined, () => this.#confirm(() => requester.onSynced()))
      return undefined
    }
    let isOver = false
    let isWaiting = false
    this.#confirm(() => (isWaiting ? requester.onSynced() : (isOver = true)))
    isWaiting = true
    return isOver ? ErrorCode.OK : undefined
  }

  revalidate(id: SessionId, timeout: number, asker: RevalidationCallback): void {
    asker.onRevalidated(this.#sessions.revalidate(id, timeout, HERE))
  }

  canAnswerPing(): boolean {
    return true
  }

  /** Ephemeral nodes whose session is unknown would stay for ever; they go with a transaction of their own. */
  closeOrphanedSessions(): void {
    const { tree, sessions, clock } = this.#parts
    const orphans = [...tree.owners.sessions()].filter((id) => sessions.get(id) === undefined)
    for (const id of orphans) this.closeSession(id, 0, undefined, clock.monotonic())
  }

  // Learners

  /** A learner forwards a request; `learner` is the mark of its connection. Keeps the body. */
  submitForwarded(learner: object, request: ForwardedRequest): void {
    if (!this.#ended) this.#learnerOrder.submit(learner, request)
  }

  /** A session has come to a learner (REVALIDATE): whether it lives. If so its requests must come through that learner. */
  revalidateForLearner(learner: object, id: SessionId, timeout: number): boolean {
    return !this.#ended && this.#sessions.revalidate(id, timeout, learner)
  }

  /**
   * The same behind what the learner has forwarded before. A session that left the learner and comes back must not take a
   * request of its first stay with it that still waits behind a sync: what it did elsewhere meanwhile came later.
   */
  revalidateInOrder(learner: object, id: SessionId, timeout: number, answer: (valid: boolean) => void): void {
    if (!this.#ended)
      this.#learnerOrder.runInOrder(learner, () => answer(this.revalidateForLearner(learner, id, timeout)))
  }

  /** The connection of a learner is gone. Its sessions stay until they come back elsewhere or their time is over. */
  removeLearner(learner: object): void {
    this.#learnerOrder.remove(learner)
  }

  /** A learner has heard of a session (in its answer to a PING). One that is unknown or over is not brought back. */
  touchSession(id: SessionId, timeout: number): void {
    this.#sessions.touch(id, timeout)
  }

  // What is decided

  /** Everything up to a zxid is committed: durable on a quorum. */
  commit(zxid: Zxid): void {
    this.#applyQueue.commit(zxid)
  }

  /** Whether something is prepared or applied in several turns. */
  get isBusy(): boolean {
    return this.#preparing.isBusy || this.#applyQueue.isBusy
  }

  /** Does in this turn all that is begun, for a server that stops. */
  drain(): void {
    this.#preparing.drain()
    this.#applyQueue.drain()
  }

  /** Discards everything above this zxid, which was lost before it was durable. Only a quorum of one can know that. */
  discardAfter(durable: Zxid): void {
    const lost = this.#applyQueue.discardAfter(durable)
    this.#lastZxid = durable
    this.#preparer.reset()
    this.#sessions.discardCreating()
    for (const { logged } of lost)
      if (logged.txn.type === OpCode.closeSession) this.#sessions.reopen(logged.header.sessionId)
    for (const entry of lost) entry.callback?.onLost(entry)
    this.#preparing.abort()
    this.#applyQueue.releaseAll()
  }

  end(): void {
    this.#ended = true
    this.#learnerOrder.clear()
    this.#applyQueue.end()
    this.#preparing.abort()
  }

  // Acceptance

  /** Does what makes a transaction now, or behind a request that is being prepared in steps. */
  #inOrder(asked: Asked | undefined, action: () => Generator<void> | void): void {
    const here = asked?.callback !== undefined
    if (here) this.#deferred++
    this.#preparing.add({
      begin: () => {
        if (here) this.#deferred--
        // No space is left meanwhile.
        if (!this.isWritable) return this.#dropped(asked)
        return action() ?? undefined
      },
      onDropped: () => {
        if (here && this.#deferred > 0) this.#deferred--
        this.#dropped(asked)
      },
    })
  }

  #dropped(asked: Asked | undefined): undefined {
    if (this.#ended || asked === undefined) return
    if (asked.closes !== undefined) this.#sessions.reopen(asked.closes)
    asked.callback?.onLost(asked)
  }

  /** A write that is large, or stands behind one. What cannot be decoded takes a zxid here, since its turn to be refused is over. */
  *#writeBehind(
    write: ClientWrite,
    body: Reader,
    requester: WriteCallback,
    startedAt: number,
  ): Generator<void> {
    if (this.#parts.localSessions !== undefined) this.#upgrade(write, body, startedAt)
    const zxid = this.#lastZxid + 1
    const time = this.#now()
    const prepared = isLargeRequest(write.type, body)
      ? yield* this.#preparer.prepareMulti(write, body, zxid, time)
      : this.#preparer.prepare(write, body, zxid, time)
    const answer = typeof prepared === 'number' ? failure(prepared) : prepared
    yield* this.#acceptInSteps(
      write.sessionId,
      write.xid,
      write.type,
      zxid,
      time,
      answer,
      requester,
      startedAt,
    )
  }

  #take(
    owner: object,
    { sessionId, cxid, type, body, identities }: ForwardedRequest,
  ): Generator<void> | void {
    const startedAt = this.#parts.clock.monotonic()
    if (type === OpCode.closeSession && !this.#sessions.isClosed(sessionId))
      return this.#close(sessionId, cxid, undefined, startedAt)
    const reader = body.length > LARGE_BYTES ? new Reader(body) : this.#reader.reset(body)
    if (type === OpCode.createSession && body.length >= 4)
      return this.#begin(sessionId, cxid, reader.int(), owner, undefined, startedAt)
    const zxid = this.#lastZxid + 1
    const time = this.#now()
    if (isLargeRequest(type, reader)) {
      const write = { sessionId, xid: cxid, type, identities }
      return this.#takeInSteps(owner, write, reader, zxid, time, startedAt)
    }
    this.#owner = owner
    // A session ends once: it was ended here while its client's wish was on its way.
    const prepared = isMovedSessionCheck(type, body)
      ? ErrorCode.SESSIONMOVED
      : type === OpCode.closeSession
        ? ErrorCode.SESSIONEXPIRED
        : this.#preparer.prepare({ sessionId, type, identities }, reader, zxid, time)
    this.#owner = HERE
    const answer = typeof prepared === 'number' ? failure(prepared) : prepared
    this.#accept(sessionId, cxid, type, zxid, time, answer, undefined, startedAt)
  }

  *#takeInSteps(
    owner: object,
    write: ClientWrite,
    body: Reader,
    zxid: Zxid,
    time: number,
    startedAt: number,
  ): Generator<void> {
    const steps = this.#preparer.prepareMulti(write, body, zxid, time)
    for (;;) {
      this.#owner = owner
      const { done, value } = steps.next()
      this.#owner = HERE
      if (done === true) {
        const answer = typeof value === 'number' ? failure(value) : value
        const { sessionId, xid, type } = write
        return yield* this.#acceptInSteps(sessionId, xid, type, zxid, time, answer, undefined, startedAt)
      }
      yield
    }
  }

  #begin(
    id: SessionId,
    xid: number,
    timeout: number,
    owner: object,
    requester: WriteCallback | undefined,
    startedAt: number,
  ): void {
    this.#sessions.markCreating(id, owner)
    const prepared = this.#preparer.createSession(timeout)
    this.#accept(
      id,
      xid,
      OpCode.createSession,
      this.#lastZxid + 1,
      this.#now(),
      prepared,
      requester,
      startedAt,
    )
  }

  #close(
    id: SessionId,
    xid: number,
    requester: WriteCallback | undefined,
    startedAt: number,
  ): Generator<void> | void {
    this.#sessions.markClosing(id)
    if (this.#parts.tree.owners.ofSession(id).size > STEP)
      return this.#closeInSteps(id, xid, requester, startedAt)
    const zxid = this.#lastZxid + 1
    const prepared = runToEnd(this.#preparer.closeSession(id, zxid))
    this.#accept(id, xid, OpCode.closeSession, zxid, this.#now(), prepared, requester, startedAt)
  }

  *#closeInSteps(
    id: SessionId,
    xid: number,
    requester: WriteCallback | undefined,
    startedAt: number,
  ): Generator<void> {
    const zxid = this.#lastZxid + 1
    const prepared = yield* this.#preparer.closeSession(id, zxid)
    const time = this.#now()
    yield* this.#acceptInSteps(id, xid, OpCode.closeSession, zxid, time, prepared, requester, startedAt)
  }

  #accept(
    sessionId: SessionId,
    xid: number,
    type: number,
    zxid: Zxid,
    time: number,
    prepared: PreparedTxn,
    requester: WriteCallback | undefined,
    startedAt: number,
  ): void {
    const entry = new InFlightWrite(sessionId, xid, type, zxid, time, prepared, requester, startedAt)
    this.#append(entry, this.#encode(entry))
  }

  /** As `#accept`, for what may be large. */
  *#acceptInSteps(
    sessionId: SessionId,
    xid: number,
    type: number,
    zxid: Zxid,
    time: number,
    prepared: PreparedTxn,
    requester: WriteCallback | undefined,
    startedAt: number,
  ): Generator<void> {
    const entry = new InFlightWrite(sessionId, xid, type, zxid, time, prepared, requester, startedAt)
    const { payload, adler } = yield* encodePayloadInSteps(entry, STEP)
    this.#append(entry, payload, adler)
  }

  #append(entry: AcceptedWrite, payload: Uint8Array, adler?: number): void {
    const { log, quorum } = this.#parts
    const { logged } = entry
    const { zxid } = logged.header
    // The role is about to end, and with it the connection of whoever asks: nobody can know what becomes of this.
    this.hasDroppedRequest ||= !quorum.isAccepting
    if (this.hasDroppedRequest) return
    this.#applyQueue.enqueue(entry)
    this.#lastZxid = zxid
    log.appendPayload(zxid, payload, adler)
    this.lastProposalSize = payload.length
    this.proposalSize.add(payload.length)
    quorum.propose(zxid, payload, logged)
  }

  #encode(logged: LoggedTxn): Uint8Array {
    const writer = this.#writer
    if (writer.length > SHARED_BYTES) writer.take()
    const start = writer.length
    encodeLoggedTxn(writer, logged)
    return writer.bytesFrom(start)
  }

  // Sessions

  /** A local session that wants an ephemeral node becomes one that everybody knows, before its request. */
  #upgrade({ sessionId, type }: ClientWrite, body: Reader, startedAt: number): void {
    const { localSessions: locals, canUpgradeSessions: upgradesSessions = false } = this.#parts
    const session = locals!.get(sessionId)
    if (session === undefined || !upgradesSessions) return
    const { offset } = body
    const { isEphemeral: ephemeral } = precheck(type, body)
    body.offset = offset
    if (!ephemeral) return
    locals!.remove(sessionId)
    session.isLocal = false
    this.#begin(sessionId, 0, session.timeout, HERE, undefined, startedAt)
  }

  #confirm(done: () => void): void {
    this.#confirming++
    this.#parts.quorum.confirmLeadership(() => {
      if (this.#ended || this.hasDroppedRequest) return
      this.#confirming--
      // What is committed by now may still be on its way into the tree.
      this.#applyQueue.afterCommitted(done)
    })
  }

  #now(): number {
    return Math.floor(this.#parts.clock.wall())
  }
}

const isLargeRequest = (type: number, body: Reader): boolean =>
  type === OpCode.multi && body.remaining > LARGE_BYTES

const failure = (err: number): PreparedTxn => ({
  txn: { type: OpCode.error, err },
  digest: undefined,
  node: undefined,
  crc: 0,
})
