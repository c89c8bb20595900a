import { ErrorCode, formatZxid, OpCode, type Reader } from '@zabra/protocol'
import { invariant, type Clock } from '@zabra/runtime'
import type { Prepared, Preparer } from '../core/prepare/index.ts'
import type { SessionTracker } from '../core/sessions/index.ts'
import type { PartDone, Tree } from '../core/tree/index.ts'
import type { Digest, Identity, LoggedTxn, SessionId, SubTxn, Txn, Zxid } from '../core/types.ts'
import type { Firing, Listener } from '../core/watches/index.ts'

/** Who waits for a write. */
export interface Requester {
  /** A part of the requester's multi is applied; the tree shows its result. */
  part(txn: SubTxn): void
  /** The write is applied, or has failed, under its zxid. */
  applied(entry: Entry, err: number): void
  /** The write did not happen and never will: its transaction is lost before it was durable. */
  lost(entry: Entry): void
}

/** A write on its way from acceptance to its reply. */
export interface Entry {
  readonly logged: LoggedTxn
  readonly xid: number
  /** Op code of the request. */
  readonly type: number
  readonly requester: Requester | undefined
  /** On the monotonic clock. */
  readonly startedAt: number
}

/** Where transactions become durable. */
export interface Journal {
  readonly lastZxid: Zxid
  readonly state: string
  append(logged: LoggedTxn): void
}

export interface PipelineParts<L extends Listener> {
  readonly tree: Tree
  readonly preparer: Preparer
  readonly sessions: SessionTracker
  readonly firing: Firing<L>
  readonly journal: Journal
  readonly clock: Clock
}

/** A write as a client asks for it. */
export interface Write {
  readonly sessionId: SessionId
  readonly xid: number
  readonly type: number
  readonly identities: readonly Identity[]
}

/**
 * The way of every write: prepare, log, wait until it is durable and acknowledged by a quorum, apply, tell watchers,
 * reply. A single server is a quorum of one, so durable is committed. The rules, which only this file enforces:
 *
 * 1. A zxid is one above the last one appended; nothing else hands out zxids.
 * 2. What is prepared is appended in the same turn, so log and pending view have one order.
 * 3. Nothing is applied, and nobody is answered, before it is durable.
 * 4. Transactions are applied in the order of their zxids, all that is durable in one go.
 * 5. Watchers are told while a transaction is applied, its requester after that.
 * 6. When the disk is full, what was not durable never happens: its requesters are told, and the pending view is dropped.
 */
export class Pipeline<L extends Listener> {
  readonly #parts: PipelineParts<L>
  /** Digests of the tree at every 128th zxid, the last 1024 of them, for comparing servers. */
  readonly digests: { readonly zxid: Zxid; readonly digest: Digest }[] = []
  #queue: Entry[] = []
  #front = 0

  constructor(parts: PipelineParts<L>) {
    this.#parts = parts
  }

  /** Writes that are accepted and not answered. */
  get outstanding(): number {
    return this.#queue.length - this.#front
  }

  /** Whether writes are accepted; not while the disk is full. */
  get writable(): boolean {
    return this.#parts.journal.state === 'open'
  }

  /**
   * Accepts a write. Returns 0 when its requester will be called, else the error of a request that takes no zxid: it could
   * not be decoded, or there is no space for it.
   */
  write(write: Write, body: Reader, requester: Requester, startedAt: number): number {
    if (!this.writable) return ErrorCode.SYSTEMERROR
    const { clock, journal, preparer } = this.#parts
    const zxid = journal.lastZxid + 1
    const time = Math.floor(clock.wall())
    const prepared = preparer.prepare(write, body, zxid, time)
    if (typeof prepared === 'number') return prepared
    this.#accept(write.sessionId, write.xid, write.type, zxid, time, prepared, requester, startedAt)
    return ErrorCode.OK
  }

  /** Begins a session. False while nothing can be written. */
  createSession(id: SessionId, timeout: number, requester: Requester, startedAt: number): boolean {
    if (!this.writable) return false
    const prepared = this.#parts.preparer.createSession(timeout)
    this.#accept(
      id,
      0,
      OpCode.createSession,
      this.#parts.journal.lastZxid + 1,
      this.#now(),
      prepared,
      requester,
      startedAt,
    )
    return true
  }

  /** Ends a session with its ephemeral nodes. False while nothing can be written. */
  closeSession(id: SessionId, xid: number, requester: Requester | undefined, startedAt: number): boolean {
    if (!this.writable) return false
    const session = this.#parts.sessions.get(id)
    if (session !== undefined) session.closing = true
    const zxid = this.#parts.journal.lastZxid + 1
    const prepared = this.#parts.preparer.closeSession(id, zxid)
    this.#accept(id, xid, OpCode.closeSession, zxid, this.#now(), prepared, requester, startedAt)
    return true
  }

  /** Removes a container or a node whose time is over. */
  deleteContainer(path: string, startedAt: number): boolean {
    if (!this.writable) return false
    const zxid = this.#parts.journal.lastZxid + 1
    const prepared = this.#parts.preparer.deleteContainer(path, zxid)
    this.#accept(0n, 0, OpCode.deleteContainer, zxid, this.#now(), prepared, undefined, startedAt)
    return true
  }

  /** Everything up to a zxid is durable. */
  durable(zxid: Zxid): void {
    while (this.#front < this.#queue.length && this.#queue[this.#front]!.logged.header.zxid <= zxid) {
      const entry = this.#queue[this.#front]!
      this.#front++
      this.#commit(entry)
    }
    this.#compact()
  }

  /** Everything above a zxid is lost before it was durable. */
  lose(durable: Zxid): void {
    this.durable(durable)
    const lost = this.#queue.slice(this.#front)
    this.#queue = []
    this.#front = 0
    this.#parts.preparer.reset()
    for (const { logged } of lost) {
      // A session that could not be ended stays, and is ended once there is space.
      const session =
        logged.txn.type === OpCode.closeSession
          ? this.#parts.sessions.get(logged.header.sessionId)
          : undefined
      if (session !== undefined) this.#parts.sessions.reopen(session)
    }
    for (const entry of lost) entry.requester?.lost(entry)
  }

  #accept(
    sessionId: SessionId,
    xid: number,
    type: number,
    zxid: Zxid,
    time: number,
    { txn, digest }: Prepared,
    requester: Requester | undefined,
    startedAt: number,
  ): void {
    const logged: LoggedTxn = { header: { sessionId, cxid: xid, zxid, time }, txn, digest }
    this.#queue.push({ logged, xid, type, requester, startedAt })
    this.#parts.journal.append(logged)
  }

  #commit(entry: Entry): void {
    const { tree, preparer, firing } = this.#parts
    const { header, txn, digest } = entry.logged
    firing.zxid = header.zxid
    const part: PartDone | undefined =
      txn.type === OpCode.multi && entry.requester !== undefined
        ? (sub) => entry.requester!.part(sub)
        : undefined
    const err = tree.apply(header, txn, firing, part)
    this.#applySession(header.sessionId, txn)
    preparer.committed(header.zxid)
    if (header.zxid % 128 === 0) this.#keepDigest(header.zxid)
    invariant(
      digest === undefined || tree.matches(digest),
      'The tree after a transaction has the digest that was foreseen.',
      { zxid: formatZxid(header.zxid), type: txn.type, path: 'path' in txn ? txn.path : undefined },
    )
    entry.requester?.applied(entry, err)
  }

  #applySession(id: SessionId, txn: Txn): void {
    const { sessions, clock } = this.#parts
    if (txn.type === OpCode.createSession) sessions.add(id, txn.timeOut, clock.monotonic())
    else if (txn.type === OpCode.closeSession) sessions.remove(id)
  }

  #keepDigest(zxid: Zxid): void {
    const { digest } = this.#parts.tree
    if (digest === undefined) return
    this.digests.push({ zxid, digest })
    if (this.digests.length > 1024) this.digests.shift()
  }

  #now(): number {
    return Math.floor(this.#parts.clock.wall())
  }

  #compact(): void {
    if (this.#front === this.#queue.length) {
      this.#queue = []
      this.#front = 0
    } else if (this.#front > 8192) {
      this.#queue = this.#queue.slice(this.#front)
      this.#front = 0
    }
  }
}
