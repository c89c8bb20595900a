import type { ApplyHint, NodeRef } from '../core/tree/index.ts'
import type { Digest, LoggedTxn, SessionId, Txn, TxnHeader, Zxid } from '../core/types.ts'
import type { PreparedTxn } from '../core/prepare/index.ts'
import type { AcceptedWrite, WriteCallback } from './types.ts'

/**
 * A write between its acceptance and its reply.
 *
 * FENCED: one object is the entry, what is logged, its header, its digest and the hint for the tree.
 * Why: a thousand writes are on their way at a time, so that what each of them is made of survives collections and is copied by
 * them; that costs the more the more objects there are.
 * Rules: nothing of it changes. Whoever compares or prints a part of it must name the fields. Oracle: the five objects, in
 * `flight.test.ts`.
 */
export class InFlightWrite implements AcceptedWrite, LoggedTxn, TxnHeader, Digest, ApplyHint {
  readonly sessionId: SessionId
  readonly xid: number
  readonly type: number
  readonly zxid: Zxid
  readonly time: number
  readonly txn: Txn
  readonly hi: number
  readonly lo: number
  readonly node: NodeRef | undefined
  readonly crc: number
  readonly callback: WriteCallback | undefined
  readonly startedAt: number
  readonly #hasDigest: boolean

  constructor(
    sessionId: SessionId,
    xid: number,
    type: number,
    zxid: Zxid,
    time: number,
    { txn, digest, node: place, crc }: PreparedTxn,
    requester: WriteCallback | undefined,
    startedAt: number,
  ) {
    this.sessionId = sessionId
    this.xid = xid
    this.type = type
    this.zxid = zxid
    this.time = time
    this.txn = txn
    this.hi = digest === undefined ? 0 : digest.hi
    this.lo = digest === undefined ? 0 : digest.lo
    this.node = place
    this.crc = crc
    this.callback = requester
    this.startedAt = startedAt
    this.#hasDigest = digest !== undefined
  }

  get logged(): LoggedTxn {
    return this
  }

  get header(): TxnHeader {
    return this
  }

  get cxid(): number {
    return this.xid
  }

  get digest(): Digest | undefined {
    return this.#hasDigest ? this : undefined
  }

  get hint(): ApplyHint {
    return this
  }
}
