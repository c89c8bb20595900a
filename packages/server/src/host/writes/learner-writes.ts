import { ErrorCode, formatZxid, OpCode, ProtocolError, Reader, Writer } from '@zabra/protocol'
import { screen } from '../../core/prepare/index.ts'
import { applyInSteps, isLarge, STEP, type PartDone } from '../../core/tree/index.ts'
import type { Identity, LoggedTxn, SessionId, Txn, Zxid } from '../../core/types.ts'
import type { Listener } from '../../core/watches/index.ts'
import { decodeInSteps, decodeLoggedTxn } from '../../log/index.ts'
import type { Asker, KeptDigests, Requester, Write, Writes, WritesKit } from './contract.ts'
import { Digests } from './digests.ts'
import { MOVED, OWN, SessionLinks, type SessionLink } from './session-links.ts'
import { Stepper } from './stepper.ts'

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
export interface LeaderLink {
  /** Sends a request, behind all that were sent before. Its body is read during the call. */
  forward(request: Forwarded): void
  /** Asks whether a session is alive (REVALIDATE). The answer comes to `revalidated`. */
  revalidate(id: SessionId, timeout: number): void
  /** When the leader was last heard, on the monotonic clock. */
  lastHeard(): number
  /** The leader does what no leader does: the connection must go. Nothing more is applied. */
  broken(reason: string): void
  /** The tree is not that of the leader, as the digest of a transaction shows: it must be fetched anew. Nothing more is applied. */
  diverged(zxid: Zxid): void
}

export interface LearnerParts<L extends Listener> extends WritesKit<L> {
  readonly link: LeaderLink
  /** The first zxid of the leader's epoch: this server has everything below it. */
  readonly epochStart: Zxid
  /** Whether a local session becomes global when it needs to (`localSessionsUpgradingEnabled`). */
  readonly upgradesSessions: boolean
  /**
   * How long it may take, in milliseconds, until the leader is told of a client that was heard here: a session may end so much
   * sooner than what its client says here makes believe.
   */
  readonly touchDelayMs: number
  /** Whether observers may stand behind this server. */
  readonly keepsObservers?: boolean
}

/** A sync on its way. */
interface Sync {
  readonly synced: () => void
  readonly sessionId: SessionId
  /** Its place among all requests; before all of them for an observer's, whose writes are not noted here. */
  readonly place: number
}

/** Who waits to hear whether a session may go on. */
interface Waiting {
  readonly asker: Asker
  readonly from: SessionLink
  /** Whether the session was taken to be there already when the leader was asked. */
  readonly noted: boolean
}

/** What a session has asked the leader for and no transaction has answered yet. */
interface Asked {
  /** Its place among all requests. */
  readonly place: number
  readonly xid: number
  readonly type: number
  readonly requester: Requester | undefined
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
 * All calls from the leader's side come inside `ServerCore.turn`.
 */
export class LearnerWrites<L extends Listener> implements Writes {
  readonly #parts: LearnerParts<L>
  readonly #digests: Digests
  readonly #asked = new Map<SessionId, Asked[]>()
  readonly #syncs: Sync[] = []
  #places = 0
  readonly #askers = new Map<SessionId, Waiting[]>()
  /** By which way sessions come, where there are several. */
  readonly #links: SessionLinks | undefined
  #outstanding = 0
  /** The large transaction that is being applied, and what the leader has said since. */
  readonly #applying: Stepper
  readonly #reader = new Reader()
  #ended = false

  constructor(parts: LearnerParts<L>) {
    this.#parts = parts
    this.#applying = new Stepper(parts)
    this.#digests = new Digests(parts.tree)
    const { sessions, keepsObservers = false } = parts
    if (keepsObservers) this.#links = new SessionLinks((id) => sessions.get(id) !== undefined)
  }

  get outstanding(): number {
    return this.#outstanding
  }

  get writable(): boolean {
    return !this.#ended
  }

  get horizon(): Zxid {
    return Math.max(this.#parts.tree.lastZxid, this.#parts.epochStart)
  }

  get digests(): KeptDigests {
    return this.#digests.kept
  }

  // Clients of this server

  write(write: Write, body: Reader, requester: Requester, startedAt: number): number {
    const { sessionId, xid, type, identities } = write
    if (!this.#mayPass(sessionId, type, OWN)) return ErrorCode.SESSIONMOVED
    const { offset } = body
    const { err, ephemeral } = screen(type, body)
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

  createSession(id: SessionId, timeout: number, requester: Requester, startedAt: number): boolean {
    this.#begin(id, timeout, requester, startedAt)
    return true
  }

  closeSession(id: SessionId, xid: number, requester: Requester | undefined, startedAt: number): boolean {
    const type = OpCode.closeSession
    if (!this.#mayPass(id, type, OWN)) return false
    const session = this.#parts.sessions.get(id)
    if (session !== undefined) session.closing = true
    this.#ask(id, { place: this.#places++, xid, type, requester, startedAt }, NOTHING, [])
    return true
  }

  sync({ sessionId, xid, identities }: Write, requester: Requester): undefined {
    this.#syncs.push({ synced: () => requester.synced(), sessionId, place: this.#places++ })
    // Nobody looks at what is synchronised; an empty path is what the reference's own checks send.
    this.#parts.link.forward({ sessionId, cxid: xid, type: OpCode.sync, body: ROOT, identities })
  }

  revalidate(id: SessionId, timeout: number, asker: Asker, from: SessionLink = OWN): void {
    const waiting = { asker, from, noted: this.#links?.comes(id, from) ?? true }
    const askers = this.#askers.get(id)
    if (askers === undefined) this.#askers.set(id, [waiting])
    else askers.push(waiting)
    this.#parts.link.revalidate(id, timeout)
  }

  /**
   * The leader ends sessions, and a server that does not hear it would not know. What was touched last before it fell silent it
   * may never have been told of.
   */
  mayAnswerPing(timeout: number, now: number): boolean {
    const { link, touchDelayMs } = this.#parts
    return now - link.lastHeard() < Math.max(timeout - touchDelayMs, timeout / 2)
  }

  // Observers behind this server

  /**
   * Hands on what an observer asks for its clients. A write is answered there, when it is committed; `synced` is called for a
   * sync, behind all that was committed when it came. A write of a session that has left this observer is refused; its sync
   * changes nothing, and the observer needs an answer in its turn.
   */
  relay(request: Forwarded, from: SessionLink, synced: () => void): void {
    if (this.#ended) return
    const { sessionId, cxid, type } = request
    const { link } = this.#parts
    if (type === OpCode.sync) this.#syncs.push({ synced, sessionId, place: -1 })
    else if (!this.#mayPass(sessionId, type, from))
      return link.forward({ sessionId, cxid, type: OpCode.check, body: MOVED, identities: [] })
    link.forward(request)
  }

  // What the leader says

  /** A transaction is committed: COMMIT of a proposal, or INFORM. The payload must not change until it is applied. */
  committed(zxid: Zxid, payload: Uint8Array): void {
    if (!this.#applying.busy && payload.length < LARGE_BYTES) return this.#take(zxid, payload)
    this.#applying.add({ begin: () => this.#takeInSteps(zxid, payload) })
  }

  /** SYNC. */
  synced(): void {
    if (this.#applying.busy) this.#applying.add({ begin: () => (this.#synced(), undefined) })
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
  revalidated(id: SessionId, valid: boolean): void {
    if (this.#ended) return
    const askers = this.#askers.get(id)
    const waiting = askers?.shift()
    if (waiting === undefined) return
    if (askers!.length === 0) this.#askers.delete(id)
    // It may have come by another way since.
    if (valid && !waiting.noted && !askers!.some(({ noted }) => noted)) this.#links?.goesOn(id, waiting.from)
    waiting.asker.revalidated(valid)
  }

  end(): void {
    this.#ended = true
    this.#asked.clear()
    this.#askers.clear()
    this.#syncs.length = 0
    this.#outstanding = 0
    // Nobody is told any more, but the tree is left as it is after a transaction, not within one. The rest is in the log.
    if (this.#parts.tree.halfway) this.#applying.finishCurrent()
    this.#applying.drop()
  }

  // On the way

  #mayPass(id: SessionId, type: number, from: SessionLink): boolean {
    return this.#links?.mayPass(id, type, from) ?? true
  }

  #begin(id: SessionId, timeout: number, requester: Requester | undefined, startedAt: number): void {
    const writer = new Writer(4)
    writer.int(timeout)
    const type = OpCode.createSession
    this.#mayPass(id, type, OWN)
    this.#ask(id, { place: this.#places++, xid: 0, type, requester, startedAt }, writer.take(), [])
  }

  #ask(sessionId: SessionId, asked: Asked, body: Uint8Array, identities: readonly Identity[]): void {
    const waiting = this.#asked.get(sessionId)
    if (waiting === undefined) this.#asked.set(sessionId, [asked])
    else waiting.push(asked)
    this.#outstanding++
    this.#parts.link.forward({ sessionId, cxid: asked.xid, type: asked.type, body, identities })
  }

  /** A local session that wants an ephemeral node becomes one that everybody knows, before its request. */
  #needsGlobal(id: SessionId, type: number): number {
    const { locals, upgradesSessions, clock } = this.#parts
    const session = locals?.get(id)
    if (session === undefined) return ErrorCode.OK
    // In a multi it is the leader that refuses: it does not know the session.
    if (!upgradesSessions) return type === OpCode.multi ? ErrorCode.OK : ErrorCode.EPHEMERALONLOCALSESSION
    locals!.remove(id)
    session.local = false
    this.#begin(id, session.timeout, undefined, clock.monotonic())
    return ErrorCode.OK
  }

  #take(zxid: Zxid, payload: Uint8Array): void {
    if (this.#ended) return
    const { tree, firing } = this.#parts
    const logged = this.#sound(zxid, () => decodeLoggedTxn(this.#reader.enter(payload), tree.store))
    if (logged === undefined) return
    const { header, txn } = logged
    if (isLarge(tree, header, txn)) return this.#applying.add({ begin: () => this.#applyInSteps(logged) })
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
    const { tree, firing } = this.#parts
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

  #isApplied(logged: LoggedTxn, asked: Asked | undefined, err: number): void {
    const { tree, link } = this.#parts
    const { header, txn, digest } = logged
    if (this.#ended) return
    this.#applySession(header.sessionId, txn, asked?.requester)
    this.#digests.applied(header.zxid)
    // What is wrong here is not shown to anybody any more.
    if (digest !== undefined && tree.options.digest && !tree.matches(digest)) {
      this.end()
      return link.diverged(header.zxid)
    }
    if (asked?.requester === undefined) return
    const { xid, type, requester, startedAt } = asked
    requester.applied({ logged, xid, type, requester, startedAt }, err)
  }

  /** What a transaction answers, if it was asked here. */
  #answered(sessionId: SessionId, xid: number): Asked | undefined {
    const waiting = this.#asked.get(sessionId)
    if (waiting === undefined || waiting[0]!.xid !== xid) return undefined
    this.#outstanding--
    if (waiting.length === 1) this.#asked.delete(sessionId)
    return waiting.shift()
  }

  #applySession(id: SessionId, txn: Txn, requester: Requester | undefined): void {
    const { sessions, clock, sessionBegun, sessionEnded } = this.#parts
    if (txn.type === OpCode.createSession) sessionBegun(sessions.add(id, txn.timeOut, clock.monotonic()))
    else if (txn.type === OpCode.closeSession) {
      sessions.remove(id)
      this.#links?.ended(id)
      sessionEnded(id, requester)
    }
  }

  #broken(reason: string): void {
    this.end()
    this.#parts.link.broken(`Expected a leader that keeps to the protocol, but ${reason}`)
  }
}

/** Who hears of the parts of a multi. */
const partsOf = (txn: Txn, asked: Asked | undefined): PartDone | undefined =>
  txn.type === OpCode.multi && asked?.requester !== undefined
    ? (sub, isApplied) => asked.requester!.part(sub, isApplied)
    : undefined

/** A sync of the root: what is synchronised is always everything. */
const ROOT = new Uint8Array([0, 0, 0, 1, 0x2f])
