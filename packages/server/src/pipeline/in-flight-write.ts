import type { PreparedTxn } from '../core/prepare/index.ts'
import type { ApplyHint, NodeRef } from '../core/tree/index.ts'
import type { Digest, LoggedTxn, SessionId, Txn, TxnHeader, Zxid } from '../core/types.ts'
import type { AcceptedWrite, ClientWrite, WriteCallback } from './types.ts'

/** Which request of which session a write is. */
export type RequestIdentity = Pick<ClientWrite, 'sessionId' | 'xid' | 'type'>

/**
 * Represents a write of the leader between its acceptance and its reply.
 *
 * Optimised: one object is the accepted write, the logged transaction, its header, its digest and the hint for the tree. It holds what has
 * 32 bits as signed numbers, since V8 keeps an unsigned one in an object of its own.
 * Why: with a thousand writes in flight, their objects survive garbage collections and are copied by them, which costs the more
 * the more objects there are.
 * Rules: it never changes. Code that compares or prints one of the five names the fields. Tested against five separate objects, in
 * `in-flight-write.test.ts`.
 */
export class InFlightWrite implements AcceptedWrite, LoggedTxn, TxnHeader, Digest, ApplyHint {
  readonly sessionId: SessionId
  readonly xid: number
  readonly type: number
  readonly zxid: Zxid
  readonly time: number
  readonly txn: Txn
  readonly node: NodeRef | undefined
  readonly callback: WriteCallback | undefined
  readonly #hasDigest: boolean
  readonly #hi: number
  readonly #lo: number
  readonly #crc: number

  constructor(
    id: RequestIdentity,
    zxid: Zxid,
    time: number,
    { txn, digest, node, crc }: PreparedTxn,
    callback: WriteCallback | undefined,
  ) {
    this.sessionId = id.sessionId
    this.xid = id.xid
    this.type = id.type
    this.zxid = zxid
    this.time = time
    this.txn = txn
    this.node = node
    this.callback = callback
    this.#hasDigest = digest !== undefined
    this.#hi = digest === undefined ? 0 : digest.hi | 0
    this.#lo = digest === undefined ? 0 : digest.lo | 0
    this.#crc = crc | 0
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

  get hi(): number {
    return this.#hi >>> 0
  }

  get lo(): number {
    return this.#lo >>> 0
  }

  get hint(): ApplyHint {
    return this
  }

  get crc(): number {
    return this.#crc >>> 0
  }
}
