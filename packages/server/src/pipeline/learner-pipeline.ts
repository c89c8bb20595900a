import { ErrorCode, formatZxid, OpCode, ProtocolError, Reader, Writer } from '@zabra/protocol'
import { precheck } from '../core/prepare/index.ts'
import {
  applyInSteps,
  appliesInSteps,
  DigestHistory,
  SESSION_USER_XID,
  type PartCallback,
} from '../core/tree/index.ts'
import { RingBuffer } from '../core/ring-buffer.ts'
import { SessionMap } from '../core/session-map.ts'
import type { Identity, LoggedTxn, SessionId, Txn, Zxid } from '../core/types.ts'
import type { NotifiedWatcher } from '../core/watches/index.ts'
import type { ForwardedRequest } from '../core/zab/index.ts'
import { decodeInSteps } from '../persistence/index.ts'
import { LOCAL_ROUTE, movedSessionCheck, SessionRoutes, type SessionRoute } from './session-routes.ts'
import { LONG_PATH, MANY_ANCESTORS, SlicedQueue } from './sliced-queue.ts'
import type {
  AcceptedWrite,
  ClientWrite,
  PipelineContext,
  RecordedDigests,
  RequestPipeline,
  RevalidationCallback,
  WriteCallback,
} from './types.ts'

/** The connection to the leader. */
export interface LeaderChannel {
  /** Sends a request, in the order of the calls. Reads its body during the call. */
  forward(request: ForwardedRequest): void
  /** Sends a REVALIDATE for a session. The caller passes the answer to `completeRevalidation`. */
  revalidate(id: SessionId, timeout: number): void
  /** Returns when the last packet of the leader arrived, on the monotonic clock. */
  lastContactAt(): number
  /** Closes the connection, because the leader violates the protocol. Nothing more is applied. */
  fail(reason: string): void
  /** Reports that the tree differs from the leader's by the digest of a transaction. A full sync is needed. */
  reportDivergence(zxid: Zxid): void
}

export interface LearnerPipelineOptions<L extends NotifiedWatcher> extends PipelineContext<L> {
  readonly leader: LeaderChannel
  /** The first zxid of the leader's epoch: this server has everything below it. */
  readonly epochStart: Zxid
  /** Whether a local session becomes global when it needs to (`localSessionsUpgradingEnabled`). */
  readonly canUpgradeSessions: boolean
  /**
   * The longest time, in milliseconds, until the leader learns that a client has sent a request to this server. A session
   * may expire that much earlier than its timeout after the last request.
   */
  readonly touchDelayMs: number
  /** Whether observers may connect to this server. */
  readonly hasObservers?: boolean
}

/** A sync in flight. */
interface PendingSync {
  readonly synced: () => void
  readonly sessionId: SessionId
  /** Its position among all requests; -1 for a sync of an observer, whose writes have no position here. */
  readonly position: number
}

/** A revalidation in flight. */
interface PendingRevalidation {
  readonly callback: RevalidationCallback
  readonly from: SessionRoute
  /** Whether the route was recorded when the REVALIDATE was sent; undefined where no routes are. */
  readonly isClaimed: boolean | undefined
}

/** A request that was forwarded to the leader, which is the accepted write once its transaction is applied: one object for both. */
class ForwardedWrite implements AcceptedWrite {
  /** Its position among all requests. */
  readonly position: number
  readonly xid: number
  readonly type: number
  readonly callback: WriteCallback | undefined
  readonly forwardedAt: number
  /** The ascending indexes of the parts of a multi that get the result of create2. */
  readonly create2Parts: readonly number[]
  /** Set before the callback is called. */
  logged!: LoggedTxn

  constructor(
    position: number,
    xid: number,
    type: number,
    callback: WriteCallback | undefined,
    forwardedAt: number,
    create2Parts: readonly number[],
  ) {
    this.position = position
    this.xid = xid
    this.type = type
    this.callback = callback
    this.forwardedAt = forwardedAt
    this.create2Parts = create2Parts
  }
}

const EMPTY = new Uint8Array(0)
const NONE: readonly number[] = []

/**
 * Executes writes on a follower or observer: forwards them to the leader, and applies the transactions that the leader commits, those
 * of other servers included. The rules that only this file enforces:
 *
 * 1. A request is recorded before it is sent, so that its answer cannot arrive before the record exists.
 * 2. Transactions are applied in the order in which the leader commits them, each as soon as it is committed.
 * 3. A transaction answers the oldest request of its session if it has the request's xid; else it is that of another server.
 * 4. Watchers are notified while a transaction is applied, its client gets the reply after that.
 * 5. SYNC answers the oldest sync; everything committed before has been applied by then.
 * 6. A request that the leader would never answer is rejected here: its body cannot be decoded.
 * 7. A large transaction is applied in steps, and reads wait until it is done. Later packets of the leader wait until then.
 * 8. When the role ends, no client gets an error for its write: the leader may commit it.
 *
 * All calls that packets of the leader cause run inside `ClientService.runTurn`.
 */
export class LearnerPipeline<L extends NotifiedWatcher> implements RequestPipeline {
  readonly #options: LearnerPipelineOptions<L>
  readonly #digests: DigestHistory
  readonly #pending = new SessionMap<ForwardedWrite[]>()
  readonly #syncs = new RingBuffer<PendingSync | undefined>(undefined)
  #nextPosition = 0
  readonly #revalidations = new SessionMap<PendingRevalidation[]>()
  /** Undefined on a server without observers, whose sessions have one route. */
  readonly #routes: SessionRoutes | undefined
  #outstanding = 0
  /** The large transaction that is being applied, and later packets of the leader. */
  readonly #applying: SlicedQueue
  #hasEnded = false

  constructor(options: LearnerPipelineOptions<L>) {
    this.#options = options
    this.#applying = new SlicedQueue({ ...options, isHeldUp: options.hasDeferredReads })
    this.#digests = new DigestHistory(options.tree)
    const { sessions, hasObservers = false } = options
    if (hasObservers) this.#routes = new SessionRoutes((id) => sessions.get(id) !== undefined)
  }

  get outstanding(): number {
    return this.#outstanding
  }

  get transactions(): number {
    return this.#applying.length
  }

  get unprepared(): undefined {
    return undefined
  }

  get unapplied(): number {
    return this.#applying.length
  }

  get queues(): Readonly<Record<string, number>> {
    return { forward: this.#outstanding, apply: this.unapplied, sync: this.#syncs.length }
  }

  get isWritable(): boolean {
    return !this.#hasEnded
  }

  get lastVisibleZxid(): Zxid {
    return Math.max(this.#options.tree.lastZxid, this.#options.epochStart)
  }

  get digests(): RecordedDigests {
    return this.#digests.entries
  }

  // Clients of this server

  write(write: ClientWrite, body: Reader, callback: WriteCallback): number {
    const { sessionId, xid, type, identities } = write
    if (!this.#canForward(sessionId, type, LOCAL_ROUTE)) return ErrorCode.SESSIONMOVED
    const { offset } = body
    const { err, isEphemeral, create2Parts } = precheck(type, body)
    if (err !== ErrorCode.OK) return err
    if (isEphemeral) {
      const upgradeErr = this.#upgradeSession(sessionId, type)
      if (upgradeErr !== ErrorCode.OK) return upgradeErr
    }
    body.offset = offset
    const bytes = body.raw(body.end - offset)
    this.#forward(sessionId, xid, type, callback, bytes, identities, create2Parts)
    return ErrorCode.OK
  }

  createSession(id: SessionId, timeout: number, callback: WriteCallback): boolean {
    this.#createSession(id, timeout, callback)
    return true
  }

  closeSession(id: SessionId, xid: number, callback: WriteCallback | undefined): boolean {
    const type = OpCode.closeSession
    if (!this.#canForward(id, type, LOCAL_ROUTE)) return false
    const session = this.#options.sessions.get(id)
    if (session !== undefined) session.isClosing = true
    this.#forward(id, xid, type, callback, EMPTY, [])
    return true
  }

  sync({ sessionId, xid, identities }: ClientWrite, callback: WriteCallback): undefined {
    this.#syncs.push({ synced: () => callback.onSynced(), sessionId, position: this.#nextPosition++ })
    // The leader ignores the path: a sync is always of the whole tree.
    this.#options.leader.forward({ sessionId, xid, type: OpCode.sync, body: ROOT_PATH, identities })
  }

  revalidate(
    id: SessionId,
    timeout: number,
    callback: RevalidationCallback,
    from: SessionRoute = LOCAL_ROUTE,
  ): void {
    const pending = { callback, from, isClaimed: this.#routes?.claim(id, from) }
    const others = this.#revalidations.get(id)
    if (others === undefined) this.#revalidations.set(id, [pending])
    else others.push(pending)
    this.#options.leader.revalidate(id, timeout)
  }

  /**
   * The leader expires sessions, and a server without a connection to it does not learn of that. The leader may not know the last
   * requests that this server received before the connection was lost.
   */
  canAnswerPing(timeout: number, now: number): boolean {
    const { leader, touchDelayMs } = this.#options
    return now - leader.lastContactAt() < Math.max(timeout - touchDelayMs, timeout / 2)
  }

  // Observers connected to this server

  /**
   * Forwards a request of an observer's client. The observer answers a write when it is committed. `synced` is called for a sync,
   * after everything that was committed when it arrived. A write of a session that has left this observer is rejected; a sync
   * is forwarded even then, since it changes nothing and the observer needs its answer in order.
   */
  forwardFromObserver(request: ForwardedRequest, from: SessionRoute, synced: () => void): void {
    if (this.#hasEnded) return
    const { sessionId, type } = request
    const { leader } = this.#options
    if (type === OpCode.sync) this.#syncs.push({ synced, sessionId, position: -1 })
    else if (!this.#canForward(sessionId, type, from)) return leader.forward(movedSessionCheck(request))
    leader.forward(request)
  }

  /**
   * Calls back when everything is applied that the leader had committed when it received this, and when it has finished all requests that
   * were forwarded to it before: it answers in order.
   */
  syncWithLeader(sessionId: SessionId, done: () => void): void {
    if (this.#hasEnded) return
    this.#syncs.push({ synced: done, sessionId, position: -1 })
    this.#options.leader.forward({ sessionId, xid: 0, type: OpCode.sync, body: ROOT_PATH, identities: [] })
  }

  /** Calls `visit` for each session whose requests come from an observer, in steps. */
  visitSessionsOf(from: SessionRoute, visit: (id: SessionId) => void): Generator<void> | undefined {
    return this.#routes?.visit(from, visit)
  }

  // Packets of the leader

  /**
   * Applies a committed transaction (COMMIT of a proposal, or INFORM). `logged` is what the payload holds; undefined where it is large, and
   * decoded in steps. The payload must not change until it is applied.
   */
  applyCommitted(zxid: Zxid, payload: Uint8Array, logged: LoggedTxn | undefined): void {
    if (this.#applying.isBusy) return this.#applying.add({ begin: () => this.#apply(zxid, payload, logged) })
    const { watchNotifier } = this.#options
    const visited = watchNotifier.ancestorsVisited
    const steps = this.#apply(zxid, payload, logged)
    if (steps !== undefined) this.#applying.run(steps)
    else {
      const isCostly =
        payload.length >= LONG_PATH || watchNotifier.ancestorsVisited - visited >= MANY_ANCESTORS
      this.#applying.countRun(isCostly)
    }
  }

  /** Completes the oldest sync (SYNC), after the transactions that are committed. */
  completeSync(): void {
    this.#applying.runInOrder(() => this.#completeSync())
  }

  #completeSync(): void {
    if (this.#hasEnded) return
    const sync = this.#syncs.shift()
    if (sync === undefined) return this.#fail('it answers a sync that this server has not sent')
    const oldest = this.#pending.get(sync.sessionId)?.[0]
    if (oldest !== undefined && oldest.position < sync.position)
      return this.#fail('it answers a sync before an older write of the same session')
    sync.synced()
  }

  /** Completes the oldest revalidation of a session (REVALIDATE), after the transactions that are committed: they may tell its user. */
  completeRevalidation(id: SessionId, valid: boolean, isRefused = false): void {
    this.#applying.runInOrder(() => this.#completeRevalidation(id, valid, isRefused))
  }

  #completeRevalidation(id: SessionId, valid: boolean, isRefused: boolean): void {
    if (this.#hasEnded) return
    const pending = this.#revalidations.get(id)
    const oldest = pending?.shift()
    if (oldest === undefined) return
    if (pending!.length === 0) this.#revalidations.delete(id)
    // A later revalidation may have recorded another route.
    if (valid && !oldest.isClaimed && !pending!.some(({ isClaimed }) => isClaimed))
      this.#routes?.confirm(id, oldest.from)
    if (isRefused) oldest.callback.onRefused()
    else oldest.callback.onRevalidated(valid)
  }

  end(): Generator<void> | undefined {
    this.#hasEnded = true
    this.#pending.clear()
    this.#revalidations.clear()
    this.#syncs.clear()
    this.#outstanding = 0
    // One that is still decoded stops, as those that wait: they are in the log.
    return this.#applying.takeCurrent()
  }

  // Requests

  #canForward(id: SessionId, type: number, from: SessionRoute): boolean {
    return this.#routes?.canForward(id, type, from) ?? true
  }

  #createSession(
    id: SessionId,
    timeout: number,
    callback: WriteCallback | undefined,
    userProof?: Uint8Array,
  ): void {
    const writer = new Writer(32)
    writer.int(timeout)
    // Apache ZooKeeper reads the timeout alone.
    if (userProof !== undefined) writer.buffer(userProof)
    const type = OpCode.createSession
    this.#canForward(id, type, LOCAL_ROUTE)
    this.#forward(id, 0, type, callback, writer.take(), [])
  }

  #forward(
    sessionId: SessionId,
    xid: number,
    type: number,
    callback: WriteCallback | undefined,
    body: Uint8Array,
    identities: readonly Identity[],
    create2Parts: readonly number[] = NONE,
  ): void {
    const position = this.#nextPosition++
    const forwardedAt = this.#options.turnTime()
    const request = new ForwardedWrite(position, xid, type, callback, forwardedAt, create2Parts)
    const pending = this.#pending.get(sessionId)
    if (pending === undefined) this.#pending.set(sessionId, [request])
    else pending.push(request)
    this.#outstanding++
    this.#options.leader.forward({ sessionId, xid, type, body, identities })
  }

  /** Makes a local session global before a write that creates an ephemeral node. Returns an error number if it may not be one. */
  #upgradeSession(id: SessionId, type: number): number {
    const { localSessions, canUpgradeSessions } = this.#options
    const session = localSessions?.get(id)
    if (session === undefined) return ErrorCode.OK
    // The leader rejects a multi: it does not know the session.
    if (!canUpgradeSessions) return type === OpCode.multi ? ErrorCode.OK : ErrorCode.EPHEMERALONLOCALSESSION
    localSessions!.remove(id)
    session.isLocal = false
    this.#createSession(id, session.timeout, undefined, session.userProof)
    return ErrorCode.OK
  }

  // Transactions

  /** Applies a committed transaction, or returns the steps of one that may be large. */
  #apply(zxid: Zxid, payload: Uint8Array, logged: LoggedTxn | undefined): Generator<void> | undefined {
    if (this.#hasEnded) return undefined
    if (logged === undefined) return this.#decodeInSteps(zxid, payload)
    const { tree, watchNotifier } = this.#options
    const { header, txn } = logged
    if (appliesInSteps(tree, txn, watchNotifier)) return this.#applyInSteps(logged)
    const request = this.#takeRequest(header.sessionId, header.cxid)
    watchNotifier.zxid = header.zxid
    this.#applied(logged, request, tree.apply(header, txn, watchNotifier))
    return undefined
  }

  *#decodeInSteps(zxid: Zxid, payload: Uint8Array): Generator<void> {
    const steps = decodeInSteps(new Reader(payload), this.#options.tree.store)
    while (!this.#hasEnded) {
      const logged = this.#decodeStep(zxid, steps)
      if (logged !== undefined) return yield* this.#applyInSteps(logged)
      yield
    }
  }

  /** Decodes a part of a transaction, and returns it after the last one. Fails the connection to the leader where it has another zxid. */
  #decodeStep(zxid: Zxid, steps: Generator<void, LoggedTxn>): LoggedTxn | undefined {
    try {
      const { done, value } = steps.next()
      if (done !== true) return undefined
      if (value.header.zxid === zxid) return value
      this.#fail(`its packet of 0x${formatZxid(zxid)} holds 0x${formatZxid(value.header.zxid)}`)
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      this.#fail(`its transaction 0x${formatZxid(zxid)} cannot be decoded: ${error.message}`)
    }
    return undefined
  }

  *#applyInSteps(logged: LoggedTxn): Generator<void> {
    const { tree, watchNotifier } = this.#options
    const { header, txn } = logged
    const request = this.#takeRequest(header.sessionId, header.cxid)
    const steps = applyInSteps(tree, header, txn, watchNotifier, partCallback(txn, request))
    for (;;) {
      // Between two steps, notifications of other events may have changed it.
      watchNotifier.zxid = header.zxid
      const { done, value } = steps.next()
      if (done === true) return this.#applied(logged, request, value)
      yield
    }
  }

  #applied(logged: LoggedTxn, request: ForwardedWrite | undefined, err: number): void {
    const { tree, leader, stages, clock } = this.#options
    const { header, txn, digest } = logged
    this.#applySession(header.sessionId, txn, request?.callback)
    // The next role begins with this tree, and with its sessions.
    if (this.#hasEnded) return
    if (header.cxid === SESSION_USER_XID) this.#options.onSessionUserStored(header.sessionId)
    if (err !== ErrorCode.OK && request?.type === OpCode.createSession)
      this.#sessionRefused(header.sessionId, request)
    this.#digests.record(header.zxid)
    // A diverged tree must not be shown to any client.
    if (digest !== undefined && tree.options.digest && !tree.matches(digest)) {
      this.end()
      return leader.reportDivergence(header.zxid)
    }
    if (request?.callback === undefined) {
      if (stages.isSampled(header.zxid)) stages.appliedOfOther(header.zxid, clock.monotonic())
      return
    }
    const { callback, forwardedAt } = request
    stages.proposed(header.zxid, forwardedAt)
    if (stages.isSampled(header.zxid)) stages.begun(header.zxid, forwardedAt)
    request.logged = logged
    callback.onApplied(request, err)
  }

  #sessionRefused(id: SessionId, { callback }: ForwardedWrite): void {
    this.#routes?.remove(id)
    if (callback === undefined) this.#options.onUpgradeRefused(id)
  }

  /** Removes and returns the request that a transaction answers, if it came from this server. */
  #takeRequest(sessionId: SessionId, xid: number): ForwardedWrite | undefined {
    const pending = this.#pending.get(sessionId)
    if (pending === undefined || pending[0]!.xid !== xid) return undefined
    this.#outstanding--
    if (pending.length === 1) this.#pending.delete(sessionId)
    return pending.shift()
  }

  #applySession(id: SessionId, txn: Txn, callback: WriteCallback | undefined): void {
    const { sessions, clock, onSessionCreated, onSessionClosed } = this.#options
    if (txn.type === OpCode.createSession) onSessionCreated(sessions.add(id, txn.timeOut, clock.monotonic()))
    else if (txn.type === OpCode.closeSession) {
      sessions.remove(id)
      this.#routes?.remove(id)
      onSessionClosed(id, callback, txn)
    }
  }

  #fail(reason: string): void {
    this.end()
    this.#options.leader.fail(`Expected a leader that follows the protocol, but ${reason}`)
  }
}

/** Returns a function that reports the parts of a multi as the client sent them: the transaction holds create2 as create. */
function partCallback(txn: Txn, request: ForwardedWrite | undefined): PartCallback | undefined {
  if (txn.type !== OpCode.multi || request?.callback === undefined) return undefined
  const { callback, create2Parts } = request
  let index = 0
  let nextCreate2 = 0
  return (part, isApplied) => {
    const isCreate2 = create2Parts[nextCreate2] === index++
    if (isCreate2) nextCreate2++
    const { type } = part
    callback.onPart(isCreate2 && type === OpCode.create ? { ...part, type: OpCode.create2 } : part, isApplied)
  }
}

/** The body of a sync of the path "/". */
const ROOT_PATH = new Uint8Array([0, 0, 0, 1, 0x2f])
