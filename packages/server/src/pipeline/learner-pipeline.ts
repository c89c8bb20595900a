import { ErrorCode, formatZxid, OpCode, ProtocolError, Reader, Writer } from '@zabra/protocol'
import { precheck } from '../core/prepare/index.ts'
import { STEP } from '../core/steps.ts'
import { appliesInSteps, applyInSteps, type PartCallback } from '../core/tree/index.ts'
import type { Identity, LoggedTxn, SessionId, Txn, Zxid } from '../core/types.ts'
import type { NotifiedWatcher } from '../core/watches/index.ts'
import { decodeInSteps, decodeLoggedTxn } from '../persistence/index.ts'
import type {
  RevalidationCallback,
  RecordedDigests,
  WriteCallback,
  ClientWrite,
  RequestPipeline,
  PipelineContext,
} from './types.ts'
import { DigestHistory } from './digest-history.ts'
import { MOVED_SESSION_CHECK, LOCAL_ROUTE, SessionRoutes, type SessionRoute } from './session-routes.ts'
import { SlicedQueue } from './sliced-queue.ts'

/** A request on its way to the leader (REQUEST packet). */
export interface Forwarded {
  readonly sessionId: SessionId
  readonly cxid: number
  readonly type: number
  /** The client's bytes behind the header. */
  readonly body: Uint8Array
  readonly identities: readonly Identity[]
}

/** The connection to the leader. */
export interface LeaderChannel {
  /** Sends a request, behind all that were sent before. Its body is read during the call. */
  forward(request: Forwarded): void
  /** Asks whether a session is alive (REVALIDATE). The answer comes to `revalidated`. */
  revalidate(id: SessionId, timeout: number): void
  /** When the leader was last heard, on the monotonic clock. */
  lastContactAt(): number
  /** The leader does what no leader does: the connection must go. Nothing more is applied. */
  fail(reason: string): void
  /** The tree is not that of the leader, as the digest of a transaction shows: it must be fetched anew. Nothing more is applied. */
  reportDivergence(zxid: Zxid): void
}

export interface LearnerPipelineOptions<L extends NotifiedWatcher> extends PipelineContext<L> {
  readonly leader: LeaderChannel
  /** The first zxid of the leader's epoch: this server has everything below it. */
  readonly epochStart: Zxid
  /** Whether a local session becomes global when it needs to (`localSessionsUpgradingEnabled`). */
  readonly canUpgradeSessions: boolean
  /**
   * How long it may take, in milliseconds, until the leader is told of a client that was heard here: a session may end so much
   * sooner than what its client says here makes believe.
   */
  readonly touchDelayMs: number
  /** Whether observers may stand behind this server. */
  readonly hasObservers?: boolean
}

/** A sync on its way. */
interface Sync {
  readonly synced: () => void
  readonly sessionId: SessionId
  /** Its place among all requests; before all of them for an observer's, whose writes are not noted here. */
  readonly place: number
}

/** Who waits to hear whether a session may go on. */
interface PendingRevalidation {
  readonly asker: RevalidationCallback
  readonly from: SessionRoute
  /** Whether the session was taken to be there already when the leader was asked. */
  readonly noted: boolean
}

/** What a session has asked the leader for and no transaction has answered yet. */
interface PendingRequest {
  /** Its place among all requests. */
  readonly place: number
  readonly xid: number
  readonly type: number
  readonly requester: WriteCallback | undefined
  readonly startedAt: number
}

/** Bytes of a transaction from which on it is decoded and, if it has many parts, applied in steps. */
const LARGE_BYTES = 8192

const NOTHING = new Uint8Array(0)

/**
 * The way of writes where another server decides: they go to the leader, and come back as transactions among those of
 * everybody else. The rules, which only this file enforces:
 *
 * 1. A request is noted before it is sent, so its answer cannot come first.
 * 2. Transactions are applied in the order in which the leader commits them, each as soon as it is committed.
 * 3. A transaction answers the oldest request of its session if it has its xid; else it is somebody else's.
 * 4. Watchers are told while a transaction is applied, its requester after that.
 * 5. SYNC answers the oldest sync; all that was committed before has been applied by then.
 * 6. What the leader would never answer is refused here: a body that cannot be decoded.
 * 7. A large transaction is applied in steps, and nothing is read meanwhile. What the leader says behind it waits for its end.
 * 8. When the role ends nobody is told that a write failed: the leader may have it.
 *
 * All calls from the leader's side come inside `ClientService.runTurn`.
 */
export class LearnerPipeline<L extends NotifiedWatcher> implements RequestPipeline {
  readonly #parts: LearnerPipelineOptions<L>
  readonly #digests: DigestHistory
  readonly #asked = new Map<SessionId, PendingRequest[]>()
  readonly #syncs: Sync[] = []
  #places = 0
  readonly #askers = new Map<SessionId, PendingRevalidation[]>()
  /** By which way sessions come, where there are several. */
  readonly #routes: SessionRoutes | undefined
  #outstanding = 0
  /** The large transaction that is being applied, and what the leader has said since. */
  readonly #applying: SlicedQueue
  readonly #reader = new Reader()
  #ended = false

  constructor(parts: LearnerPipelineOptions<L>) {
    this.#parts = parts
    this.#applying = new SlicedQueue(parts)
    this.#digests = new DigestHistory(parts.tree)
    const { sessions, hasObservers: keepsObservers = false } = parts
    if (keepsObservers) this.#routes = new SessionRoutes((id) => sessions.get(id) !== undefined)
  }

  get outstanding(): number {
    return this.#outstanding
  }

  get isWritable(): boolean {
    return !this.#ended
  }

  get lastVisibleZxid(): Zxid {
    return Math.max(this.#parts.tree.lastZxid, this.#parts.epochStart)
  }

  get digests(): RecordedDigests {
    return this.#digests.entries
  }

  // Clients of this server

  write(write: ClientWrite, body: Reader, requester: WriteCallback, startedAt: number): number {
    const { sessionId, xid, type, identities } = write
    if (!this.#mayPass(sessionId, type, LOCAL_ROUTE)) return ErrorCode.SESSIONMOVED
    const { offset } = body
    const { err, isEphemeral: ephemeral } = precheck(type, body)
    if (err !== ErrorCode.OK) return err
    if (ephemeral) {
      const refusal = this.#needsGlobal(sessionId, type)
      if (refusal !== ErrorCode.OK) return refusal
    }
    body.offset = offset
    const bytes = body.raw(body.end - offset)
    this.#ask(sessionId, { place: this.#places++, xid, type, requester, startedAt }, bytes, identities)
    return ErrorCode.OK
  }

  createSession(id: SessionId, timeout: number, requester: WriteCallback, startedAt: number): boolean {
    this.#begin(id, timeout, requester, startedAt)
    return true
  }

  closeSession(id: SessionId, xid: number, requester: WriteCallback | undefined, startedAt: number): boolean {
    const type = OpCode.closeSession
    if (!this.#mayPass(id, type, LOCAL_ROUTE)) return false
    const session = this.#parts.sessions.get(id)
    if (session !== undefined) session.isClosing = true
    this.#ask(id, { place: this.#places++, xid, type, requester, startedAt }, NOTHING, [])
    return true
  }

  sync({ sessionId, xid, identities }: ClientWrite, requester: WriteCallback): undefined {
    this.#syncs.push({ synced: () => requester.onSynced(), sessionId, place: this.#places++ })
    // Nobody looks at what is synchronised; an empty path is what the reference's own checks send.
    this.#parts.leader.forward({ sessionId, cxid: xid, type: OpCode.sync, body: ROOT, identities })
  }

  revalidate(
    id: SessionId,
    timeout: number,
    asker: RevalidationCallback,
    from: SessionRoute = LOCAL_ROUTE,
  ): void {
    const waiting = { asker, from, noted: this.#routes?.claim(id, from) ?? true }
    const askers = this.#askers.get(id)
    if (askers === undefined) this.#askers.set(id, [waiting])
    else askers.push(waiting)
    this.#parts.leader.revalidate(id, timeout)
  }

  /**
   * The leader ends sessions, and a server that does not hear it would not know. What was touched last before it fell silent it
   * may never have been told of.
   */
  canAnswerPing(timeout: number, now: number): boolean {
    const { leader: link, touchDelayMs } = this.#parts
    return now - link.lastContactAt() < Math.max(timeout - touchDelayMs, timeout / 2)
  }

  // Observers behind this server

  /**
   * Hands on what an observer asks for its clients. A write is answered there, when it is committed; `synced` is called for a
   * sync, behind all that was committed when it came. A write of a session that has left this observer is refused; its sync
   * changes nothing, and the observer needs an answer in its turn.
   */
  forwardFromObserver(request: Forwarded, from: SessionRoute, synced: () => void): void {
    if (this.#ended) return
    const { sessionId, cxid, type } = request
    const { leader: link } = this.#parts
    if (type === OpCode.sync) this.#syncs.push({ synced, sessionId, place: -1 })
    else if (!this.#mayPass(sessionId, type, from))
      return link.forward({ sessionId, cxid, type: OpCode.check, body: MOVED_SESSION_CHECK, identities: [] })
    link.forward(request)
  }

  // What the leader says

  /** A transaction is committed: COMMIT of a proposal, or INFORM. The payload must not change until it is applied. */
  applyCommitted(zxid: Zxid, payload: Uint8Array): void {
    if (!this.#applying.isBusy && payload.length < LARGE_BYTES) return this.#take(zxid, payload)
    this.#applying.add({ begin: () => this.#takeInSteps(zxid, payload) })
  }

  /** SYNC. */
  completeSync(): void {
    if (this.#applying.isBusy) this.#applying.add({ begin: () => (this.#synced(), undefined) })
    else this.#synced()
  }

  #synced(): void {
    if (this.#ended) return
    const sync = this.#syncs.shift()
    if (sync === undefined) return this.#broken('it answers a sync that nobody has asked for')
    const oldest = this.#asked.get(sync.sessionId)?.[0]
    if (oldest !== undefined && oldest.place < sync.place)
      return this.#broken('it answers a sync before an older write of the same session')
    sync.synced()
  }

  /** The answer to REVALIDATE. */
  completeRevalidation(id: SessionId, valid: boolean): void {
    if (this.#ended) return
    const askers = this.#askers.get(id)
    const waiting = askers?.shift()
    if (waiting === undefined) return
    if (askers!.length === 0) this.#askers.delete(id)
    // It may have come by another way since.
    if (valid && !waiting.noted && !askers!.some(({ noted }) => noted))
      this.#routes?.confirm(id, waiting.from)
    waiting.asker.onRevalidated(valid)
  }

  end(): void {
    this.#ended = true
    this.#asked.clear()
    this.#askers.clear()
    this.#syncs.length = 0
    this.#outstanding = 0
    // Nobody is told any more, but the tree is left as it is after a transaction, not within one. The rest is in the log.
    if (this.#parts.tree.isApplying) this.#applying.drainCurrent()
    this.#applying.abort()
  }

  // On the way

  #mayPass(id: SessionId, type: number, from: SessionRoute): boolean {
    return this.#routes?.canForward(id, type, from) ?? true
  }

  #begin(id: SessionId, timeout: number, requester: WriteCallback | undefined, startedAt: number): void {
    const writer = new Writer(4)
    writer.int(timeout)
    const type = OpCode.createSession
    this.#mayPass(id, type, LOCAL_ROUTE)
    this.#ask(id, { place: this.#places++, xid: 0, type, requester, startedAt }, writer.take(), [])
  }

  #ask(sessionId: SessionId, asked: PendingRequest, body: Uint8Array, identities: readonly Identity[]): void {
    const waiting = this.#asked.get(sessionId)
    if (waiting === undefined) this.#asked.set(sessionId, [asked])
    else waiting.push(asked)
    this.#outstanding++
    this.#parts.leader.forward({ sessionId, cxid: asked.xid, type: asked.type, body, identities })
  }

  /** A local session that wants an ephemeral node becomes one that everybody knows, before its request. */
  #needsGlobal(id: SessionId, type: number): number {
    const { localSessions: locals, canUpgradeSessions: upgradesSessions, clock } = this.#parts
    const session = locals?.get(id)
    if (session === undefined) return ErrorCode.OK
    // In a multi it is the leader that refuses: it does not know the session.
    if (!upgradesSessions) return type === OpCode.multi ? ErrorCode.OK : ErrorCode.EPHEMERALONLOCALSESSION
    locals!.remove(id)
    session.isLocal = false
    this.#begin(id, session.timeout, undefined, clock.monotonic())
    return ErrorCode.OK
  }

  #take(zxid: Zxid, payload: Uint8Array): void {
    if (this.#ended) return
    const { tree, watchNotifier: firing } = this.#parts
    const logged = this.#sound(zxid, () => decodeLoggedTxn(this.#reader.resetToView(payload), tree.store))
    if (logged === undefined) return
    const { header, txn } = logged
    if (appliesInSteps(tree, txn)) return this.#applying.add({ begin: () => this.#applyInSteps(logged) })
    const asked = this.#answered(header.sessionId, header.cxid)
    firing.zxid = header.zxid
    this.#isApplied(logged, asked, tree.apply(header, txn, firing, partsOf(txn, asked)))
  }

  *#takeInSteps(zxid: Zxid, payload: Uint8Array): Generator<void> {
    const steps = decodeInSteps(new Reader(payload), STEP, this.#parts.tree.store)
    let logged: LoggedTxn | undefined
    const decode = (): LoggedTxn | undefined => {
      const { done, value } = steps.next()
      return done === true ? value : undefined
    }
    while (logged === undefined && !this.#ended) {
      logged = this.#sound(zxid, decode)
      if (logged !== undefined) yield* this.#applyInSteps(logged)
      else yield
    }
  }

  /** What was decoded; undefined, and the leader is left, when it is not the transaction that it should be. */
  #sound(zxid: Zxid, decode: () => LoggedTxn | undefined): LoggedTxn | undefined {
    try {
      const logged = decode()
      if (logged === undefined || logged.header.zxid === zxid) return logged
      this.#broken(`its packet of 0x${formatZxid(zxid)} holds 0x${formatZxid(logged.header.zxid)}`)
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      this.#broken(`its transaction 0x${formatZxid(zxid)} cannot be decoded: ${error.message}`)
    }
    return undefined
  }

  *#applyInSteps(logged: LoggedTxn): Generator<void> {
    const { tree, watchNotifier: firing } = this.#parts
    const { header, txn } = logged
    const asked = this.#answered(header.sessionId, header.cxid)
    const steps = applyInSteps(tree, header, txn, firing, partsOf(txn, asked))
    for (;;) {
      // Between two steps others may have had events.
      firing.zxid = header.zxid
      const { done, value } = steps.next()
      if (done === true) return this.#isApplied(logged, asked, value)
      yield
    }
  }

  #isApplied(logged: LoggedTxn, asked: PendingRequest | undefined, err: number): void {
    const { tree, leader: link } = this.#parts
    const { header, txn, digest } = logged
    if (this.#ended) return
    this.#applySession(header.sessionId, txn, asked?.requester)
    this.#digests.record(header.zxid)
    // What is wrong here is not shown to anybody any more.
    if (digest !== undefined && tree.options.digest && !tree.matches(digest)) {
      this.end()
      return link.reportDivergence(header.zxid)
    }
    if (asked?.requester === undefined) return
    const { xid, type, requester, startedAt } = asked
    requester.onApplied({ logged, xid, type, callback: requester, startedAt }, err)
  }

  /** What a transaction answers, if it was asked here. */
  #answered(sessionId: SessionId, xid: number): PendingRequest | undefined {
    const waiting = this.#asked.get(sessionId)
    if (waiting === undefined || waiting[0]!.xid !== xid) return undefined
    this.#outstanding--
    if (waiting.length === 1) this.#asked.delete(sessionId)
    return waiting.shift()
  }

  #applySession(id: SessionId, txn: Txn, requester: WriteCallback | undefined): void {
    const { sessions, clock, onSessionCreated: sessionBegun, onSessionClosed: sessionEnded } = this.#parts
    if (txn.type === OpCode.createSession) sessionBegun(sessions.add(id, txn.timeOut, clock.monotonic()))
    else if (txn.type === OpCode.closeSession) {
      sessions.remove(id)
      this.#routes?.remove(id)
      sessionEnded(id, requester)
    }
  }

  #broken(reason: string): void {
    this.end()
    this.#parts.leader.fail(`Expected a leader that keeps to the protocol, but ${reason}`)
  }
}

/** Who hears of the parts of a multi. */
const partsOf = (txn: Txn, asked: PendingRequest | undefined): PartCallback | undefined =>
  txn.type === OpCode.multi && asked?.requester !== undefined
    ? (sub, isApplied) => asked.requester!.onPart(sub, isApplied)
    : undefined

/** A sync of the root: what is synchronised is always everything. */
const ROOT = new Uint8Array([0, 0, 0, 1, 0x2f])
