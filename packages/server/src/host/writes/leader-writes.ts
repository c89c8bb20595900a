import { ErrorCode, OpCode, Reader, Writer } from '@zabra/protocol'
import { invariant } from '@zabra/runtime'
import { screen, type Prepared, type Preparer } from '../../core/prepare/index.ts'
import { Range } from '../../core/range.ts'
import { STEP } from '../../core/tree/index.ts'
import type { LoggedTxn, SessionId, Txn, Zxid } from '../../core/types.ts'
import type { Listener } from '../../core/watches/index.ts'
import { encodeLoggedTxn, payloadInSteps } from '../../log/index.ts'
import type { Asker, Entry, KeptDigests, Requester, Write, Writes } from './contract.ts'
import { Application } from './application.ts'
import { Flight } from './flight.ts'
import type { LeaderParts, LearnerRequest } from './leader-contract.ts'
import { LeaderSessions } from './leader-sessions.ts'
import { LearnerGates } from './learner-gates.ts'
import { isMoved } from './session-links.ts'
import { Stepper } from './stepper.ts'

/** A request that may have to wait until another one is prepared. */
interface Asked extends Pick<Entry, 'xid' | 'type' | 'requester' | 'startedAt'> {
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
 * reply. A server that stands alone is a quorum of one, so durable is committed. The rules, which only this file enforces:
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
export class LeaderWrites<L extends Listener> implements Writes {
  readonly #parts: LeaderParts<L>
  readonly #preparer: Preparer
  readonly #reader = new Reader()
  /** Payloads are views of what it has written, and it writes on behind them. */
  readonly #writer = new Writer(1 << 12)
  readonly #gates: LearnerGates
  readonly #sessions: LeaderSessions<L>
  /** What is accepted, until it is applied. */
  readonly #application: Application<L>
  /** Bytes of proposals. */
  readonly proposalSize = new Range()
  lastProposalSize = -1
  /** Whether something was asked that is never answered: nothing behind it may be, and the role has to end. */
  swallowed = false
  /** Requests that are prepared in steps, and those behind them. */
  readonly #preparing: Stepper
  /** How many of the latter have a requester here. */
  #putOff = 0
  /** Syncs that wait for a confirmation. */
  #confirming = 0
  #last: Zxid
  /** Who asks for the write that is being prepared. */
  #owner: object = HERE
  #ended = false

  constructor(parts: LeaderParts<L>) {
    this.#parts = parts
    this.#last = parts.lastZxid
    const hasQuorum = parts.quorum !== undefined
    this.#sessions = new LeaderSessions({ ...parts, hasQuorum })
    const check = (id: SessionId, global: boolean): number => this.#sessions.check(id, global, this.#owner)
    this.#preparer = parts.preparer({ check })
    const sessions = (id: SessionId, txn: Txn, told: Requester | undefined): void =>
      this.#sessions.applied(id, txn, told)
    this.#application = new Application({ ...parts, preparer: this.#preparer, hasQuorum, sessions })
    this.#preparing = new Stepper(parts)
    this.#gates = new LearnerGates({
      sync: (learner, done) =>
        this.#inOrder(undefined, () => this.#confirm(() => (parts.quorum?.synced(learner), done()))),
      take: (learner, request) => this.#inOrder(undefined, () => this.#take(learner, request)),
    })
  }

  get outstanding(): number {
    return this.#application.outstanding + this.#putOff
  }

  get writable(): boolean {
    return this.#parts.journal.state === 'open'
  }

  get horizon(): Zxid {
    // The epoch begins behind everything that is older, and clients of other servers are told so.
    const { quorum, tree, lastZxid } = this.#parts
    return quorum === undefined ? tree.lastZxid : Math.max(tree.lastZxid, lastZxid)
  }

  /** The last zxid handed out. */
  get lastZxid(): Zxid {
    return this.#last
  }

  /** Syncs that wait, those of learners included. */
  get pendingSyncs(): number {
    return this.#application.waiting + this.#confirming
  }

  get digests(): KeptDigests {
    return this.#application.digests.kept
  }

  // Clients of this server

  write(write: Write, body: Reader, requester: Requester, startedAt: number): number {
    if (!this.writable) return ErrorCode.SYSTEMERROR
    if (this.#preparing.busy || isLargeRequest(write.type, body)) {
      // The bytes are the connection's; what is prepared later needs its own.
      const own = new Reader(body.raw(body.remaining).slice(), 0, undefined, body.maxElement)
      this.#inOrder({ ...write, requester, startedAt }, () =>
        this.#writeBehind(write, own, requester, startedAt),
      )
      return ErrorCode.OK
    }
    if (this.#parts.locals !== undefined) this.#upgrade(write, body, startedAt)
    const zxid = this.#last + 1
    const time = this.#now()
    const prepared = this.#preparer.prepare(write, body, zxid, time)
    if (typeof prepared === 'number') return prepared
    this.#accept(write.sessionId, write.xid, write.type, zxid, time, prepared, requester, startedAt)
    return ErrorCode.OK
  }

  createSession(id: SessionId, timeout: number, requester: Requester, startedAt: number): boolean {
    if (!this.writable) return false
    const asked = { xid: 0, type: OpCode.createSession, requester, startedAt }
    this.#inOrder(asked, () => this.#begin(id, 0, timeout, HERE, requester, startedAt))
    return true
  }

  closeSession(id: SessionId, xid: number, requester: Requester | undefined, startedAt: number): boolean {
    if (!this.writable) return false
    this.#inOrder({ xid, type: OpCode.closeSession, requester, startedAt, closes: id }, () =>
      this.#close(id, xid, requester, startedAt),
    )
    return true
  }

  deleteContainer(path: string, startedAt: number, isDue: () => boolean): boolean {
    if (!this.writable) return false
    this.#inOrder(undefined, () => {
      // A change that is on its way may be a new life.
      if (this.#preparer.isChanging(path) || !isDue()) return
      const zxid = this.#last + 1
      const prepared = this.#preparer.deleteContainer(path, zxid)
      this.#accept(0n, 0, OpCode.deleteContainer, zxid, this.#now(), prepared, undefined, startedAt)
    })
    return true
  }

  sync(_write: Write, requester: Requester): number | undefined {
    if (this.#preparing.busy) {
      this.#inOrder(undefined, () => {
        const done = (): void => requester.synced()
        if (this.#parts.quorum !== undefined) this.#confirm(done)
        else if (this.#application.tell(this.#last, done)) done()
      })
      return undefined
    }
    if (this.#parts.quorum === undefined) {
      if (this.outstanding === 0) return ErrorCode.OK
      this.#application.wait(this.#last, () => requester.synced())
      return undefined
    }
    let isOver = false
    let isWaiting = false
    this.#confirm(() => (isWaiting ? requester.synced() : (isOver = true)))
    isWaiting = true
    return isOver ? ErrorCode.OK : undefined
  }

  revalidate(id: SessionId, timeout: number, asker: Asker): void {
    asker.revalidated(this.#sessions.mayGoOn(id, timeout, HERE))
  }

  mayAnswerPing(): boolean {
    return true
  }

  /** Ephemeral nodes whose session is unknown would stay for ever; they go with a transaction of their own. */
  endOrphans(): void {
    const { tree, sessions, clock } = this.#parts
    const orphans = [...tree.owners.sessions()].filter((id) => sessions.get(id) === undefined)
    for (const id of orphans) this.closeSession(id, 0, undefined, clock.monotonic())
  }

  // Learners

  /** A learner forwards a request; `learner` is the mark of its connection. Keeps the body. */
  request(learner: object, request: LearnerRequest): void {
    if (!this.#ended) this.#gates.push(learner, request)
  }

  /** A session has come to a learner (REVALIDATE): whether it lives. If so its requests must come through that learner. */
  revalidateFor(learner: object, id: SessionId, timeout: number): boolean {
    return !this.#ended && this.#sessions.mayGoOn(id, timeout, learner)
  }

  /**
   * The same behind what the learner has forwarded before. A session that left the learner and comes back must not take a
   * request of its first stay with it that still waits behind a sync: what it did elsewhere meanwhile came later.
   */
  revalidateBehind(learner: object, id: SessionId, timeout: number, answer: (valid: boolean) => void): void {
    if (!this.#ended) this.#gates.behind(learner, () => answer(this.revalidateFor(learner, id, timeout)))
  }

  /** The connection of a learner is gone. Its sessions stay until they come back elsewhere or their time is over. */
  learnerGone(learner: object): void {
    this.#gates.forget(learner)
  }

  /** A learner has heard of a session (in its answer to a PING). One that is unknown or over is not brought back. */
  touch(id: SessionId, timeout: number): void {
    this.#sessions.touch(id, timeout)
  }

  // What is decided

  /** Everything up to a zxid is committed: durable when the server stands alone, else acknowledged by a quorum. */
  commit(zxid: Zxid): void {
    this.#application.commit(zxid)
  }

  /** Whether something is prepared or applied in several turns. */
  get busy(): boolean {
    return this.#preparing.busy || this.#application.busy
  }

  /** Does in this turn all that is begun, for a server that stops. */
  finish(): void {
    this.#preparing.finish()
    this.#application.finish()
  }

  /** Everything above a zxid is lost before it was durable. Only a server that stands alone can know that. */
  lose(durable: Zxid): void {
    invariant(this.#parts.quorum === undefined, 'What was proposed to a quorum is never taken back.', {})
    const lost = this.#application.lose(durable)
    this.#last = durable
    this.#preparer.reset()
    this.#sessions.lose()
    for (const { logged } of lost)
      if (logged.txn.type === OpCode.closeSession) this.#sessions.reopen(logged.header.sessionId)
    for (const entry of lost) entry.requester?.lost(entry)
    this.#preparing.drop()
    this.#application.release()
  }

  end(): void {
    this.#ended = true
    this.#gates.clear()
    this.#application.end()
    this.#preparing.drop()
  }

  // Acceptance

  /** Does what makes a transaction now, or behind a request that is being prepared in steps. */
  #inOrder(asked: Asked | undefined, action: () => Generator<void> | void): void {
    const here = asked?.requester !== undefined
    if (here) this.#putOff++
    this.#preparing.add({
      begin: () => {
        if (here) this.#putOff--
        // No space is left meanwhile.
        if (!this.writable) return this.#dropped(asked)
        return action() ?? undefined
      },
      dropped: () => {
        if (here && this.#putOff > 0) this.#putOff--
        this.#dropped(asked)
      },
    })
  }

  #dropped(asked: Asked | undefined): undefined {
    if (this.#ended || asked === undefined) return
    if (asked.closes !== undefined) this.#sessions.reopen(asked.closes)
    asked.requester?.lost(asked)
  }

  /** A write that is large, or stands behind one. What cannot be decoded takes a zxid here, since its turn to be refused is over. */
  *#writeBehind(write: Write, body: Reader, requester: Requester, startedAt: number): Generator<void> {
    if (this.#parts.locals !== undefined) this.#upgrade(write, body, startedAt)
    const zxid = this.#last + 1
    const time = this.#now()
    const prepared = isLargeRequest(write.type, body)
      ? yield* this.#preparer.multiInSteps(write, body, zxid, time)
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

  #take(owner: object, { sessionId, cxid, type, body, identities }: LearnerRequest): Generator<void> | void {
    const startedAt = this.#parts.clock.monotonic()
    if (type === OpCode.closeSession && !this.#sessions.isOver(sessionId))
      return this.#close(sessionId, cxid, undefined, startedAt)
    const reader = body.length > LARGE_BYTES ? new Reader(body) : this.#reader.reset(body)
    if (type === OpCode.createSession && body.length >= 4)
      return this.#begin(sessionId, cxid, reader.int(), owner, undefined, startedAt)
    const zxid = this.#last + 1
    const time = this.#now()
    if (isLargeRequest(type, reader)) {
      const write = { sessionId, xid: cxid, type, identities }
      return this.#takeInSteps(owner, write, reader, zxid, time, startedAt)
    }
    this.#owner = owner
    // A session ends once: it was ended here while its client's wish was on its way.
    const prepared = isMoved(type, body)
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
    write: Write,
    body: Reader,
    zxid: Zxid,
    time: number,
    startedAt: number,
  ): Generator<void> {
    const steps = this.#preparer.multiInSteps(write, body, zxid, time)
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
    requester: Requester | undefined,
    startedAt: number,
  ): void {
    this.#sessions.arrives(id, owner)
    const prepared = this.#preparer.createSession(timeout)
    this.#accept(id, xid, OpCode.createSession, this.#last + 1, this.#now(), prepared, requester, startedAt)
  }

  #close(
    id: SessionId,
    xid: number,
    requester: Requester | undefined,
    startedAt: number,
  ): Generator<void> | void {
    this.#sessions.closes(id)
    if (this.#parts.tree.owners.ofSession(id).size > STEP)
      return this.#closeInSteps(id, xid, requester, startedAt)
    const zxid = this.#last + 1
    const prepared = this.#preparer.closeSession(id, zxid)
    this.#accept(id, xid, OpCode.closeSession, zxid, this.#now(), prepared, requester, startedAt)
  }

  *#closeInSteps(
    id: SessionId,
    xid: number,
    requester: Requester | undefined,
    startedAt: number,
  ): Generator<void> {
    const zxid = this.#last + 1
    const prepared = yield* this.#preparer.closeInSteps(id, zxid)
    const time = this.#now()
    yield* this.#acceptInSteps(id, xid, OpCode.closeSession, zxid, time, prepared, requester, startedAt)
  }

  #accept(
    sessionId: SessionId,
    xid: number,
    type: number,
    zxid: Zxid,
    time: number,
    prepared: Prepared,
    requester: Requester | undefined,
    startedAt: number,
  ): void {
    const entry = new Flight(sessionId, xid, type, zxid, time, prepared, requester, startedAt)
    const payload = this.#parts.quorum === undefined ? undefined : this.#encode(entry)
    this.#append(entry, payload)
  }

  /** As `#accept`, for what may be large. */
  *#acceptInSteps(
    sessionId: SessionId,
    xid: number,
    type: number,
    zxid: Zxid,
    time: number,
    prepared: Prepared,
    requester: Requester | undefined,
    startedAt: number,
  ): Generator<void> {
    const entry = new Flight(sessionId, xid, type, zxid, time, prepared, requester, startedAt)
    const { payload, adler } = yield* payloadInSteps(entry, STEP)
    this.#append(entry, payload, adler)
  }

  #append(entry: Entry, payload: Uint8Array | undefined, adler?: number): void {
    const { journal, quorum } = this.#parts
    const { logged } = entry
    const { zxid } = logged.header
    // The role is about to end, and with it the connection of whoever asks: nobody can know what becomes of this.
    this.swallowed ||= quorum?.accepting === false
    if (this.swallowed) return
    this.#application.push(entry)
    this.#last = zxid
    journal.append(logged, payload, adler)
    if (quorum === undefined) return
    this.lastProposalSize = payload!.length
    this.proposalSize.add(payload!.length)
    quorum.propose(zxid, payload!, logged)
  }

  #encode(logged: LoggedTxn): Uint8Array {
    const writer = this.#writer
    if (writer.length > SHARED_BYTES) writer.take()
    const start = writer.length
    encodeLoggedTxn(writer, logged)
    return writer.since(start)
  }

  // Sessions

  /** A local session that wants an ephemeral node becomes one that everybody knows, before its request. */
  #upgrade({ sessionId, type }: Write, body: Reader, startedAt: number): void {
    const { locals, upgradesSessions = false } = this.#parts
    const session = locals!.get(sessionId)
    if (session === undefined || !upgradesSessions) return
    const { offset } = body
    const { ephemeral } = screen(type, body)
    body.offset = offset
    if (!ephemeral) return
    locals!.remove(sessionId)
    session.local = false
    this.#begin(sessionId, 0, session.timeout, HERE, undefined, startedAt)
  }

  #confirm(done: () => void): void {
    this.#confirming++
    this.#parts.quorum!.confirm(() => {
      if (this.#ended || this.swallowed) return
      this.#confirming--
      // What is committed by now may still be on its way into the tree.
      this.#application.whenApplied(done)
    })
  }

  #now(): number {
    return Math.floor(this.#parts.clock.wall())
  }
}

const isLargeRequest = (type: number, body: Reader): boolean =>
  type === OpCode.multi && body.remaining > LARGE_BYTES

const failure = (err: number): Prepared => ({
  txn: { type: OpCode.error, err },
  digest: undefined,
  place: undefined,
  crc: 0,
})
