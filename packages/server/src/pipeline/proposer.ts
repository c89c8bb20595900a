import { Writer } from '@zabra/protocol'
import type { PreparedTxn } from '../core/prepare/index.ts'
import { Summary } from '../core/histogram.ts'
import type { ApplyHint, NodeRef } from '../core/tree/index.ts'
import type { Digest, LoggedTxn, SessionId, Txn, TxnHeader, Zxid } from '../core/types.ts'
import { encodeLoggedTxn, encodePayloadInSteps } from '../persistence/index.ts'
import type { AcceptedWrite, ClientWrite, PipelineLog, QuorumProtocol, WriteCallback } from './types.ts'

/** Encoded transactions share a buffer until it holds this many bytes. */
const SHARED_BYTES = 60_000
const NO_PAYLOAD = new Uint8Array(0)

export interface ProposerOptions {
  readonly log: PipelineLog
  readonly quorum: QuorumProtocol
  /** The zxid before the first transaction. */
  readonly lastZxid: Zxid
  /** Queues a write to be applied once it is committed. */
  readonly enqueue: (write: AcceptedWrite) => void
}

type RequestIdentity = Pick<ClientWrite, 'sessionId' | 'xid' | 'type'>

/** Assigns zxids, and logs and proposes prepared transactions in their order. */
export class Proposer {
  /** The sizes of proposals in bytes. */
  readonly sizes = new Summary()
  /** Size of the last proposal in bytes; -1 before the first. */
  lastSize = -1
  /** The last zxid assigned. */
  lastZxid: Zxid
  /**
   * Whether a transaction was dropped because the quorum accepts none any more. No later one may be proposed, and the role has
   * to end.
   */
  hasDropped = false
  readonly #options: ProposerOptions
  /** Payloads are views of its buffer; it appends after them. */
  readonly #writer = new Writer(1 << 12)

  constructor(options: ProposerOptions) {
    this.#options = options
    this.lastZxid = options.lastZxid
  }

  /** Proposes a transaction that was prepared with the zxid after `lastZxid`. */
  propose(
    id: RequestIdentity,
    time: number,
    prepared: PreparedTxn,
    callback: WriteCallback | undefined,
    startedAt: number,
  ): void {
    const write = new InFlightWrite(id, this.lastZxid + 1, time, prepared, callback, startedAt)
    this.#append(write, this.#options.quorum.sendsPayloads ? this.#encode(write) : NO_PAYLOAD)
  }

  /** As `propose`, encoding a large transaction in steps. Nothing else may be proposed between them. */
  *proposeInSteps(
    id: RequestIdentity,
    time: number,
    prepared: PreparedTxn,
    callback: WriteCallback | undefined,
    startedAt: number,
  ): Generator<void> {
    const write = new InFlightWrite(id, this.lastZxid + 1, time, prepared, callback, startedAt)
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
    const { log, quorum, enqueue } = this.#options
    const { logged } = write
    const { zxid } = logged.header
    // The role is about to end. The client's connection closes with it, because the outcome of the write is unknown.
    this.hasDropped ||= !quorum.isAccepting
    if (this.hasDropped) return
    enqueue(write)
    this.lastZxid = zxid
    if (payload === NO_PAYLOAD) log.append(logged)
    else {
      log.appendPayload(zxid, payload, adler)
      this.lastSize = payload.length
      this.sizes.add(payload.length)
    }
    quorum.propose(zxid, payload, logged)
  }
}

/**
 * Represents a write of the leader between its acceptance and its reply.
 *
 * Optimised: one object is the accepted write, the logged transaction, its header, its digest and the hint for the tree.
 * Why: with a thousand writes in flight, their objects survive garbage collections and are copied by them, which costs the more
 * the more objects there are.
 * Rules: it never changes. Code that compares or prints one of the five names the fields. Tested against five separate objects, in
 * `proposer.test.ts`.
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
    id: Pick<ClientWrite, 'sessionId' | 'xid' | 'type'>,
    zxid: Zxid,
    time: number,
    { txn, digest, node, crc }: PreparedTxn,
    callback: WriteCallback | undefined,
    startedAt: number,
  ) {
    this.sessionId = id.sessionId
    this.xid = id.xid
    this.type = id.type
    this.zxid = zxid
    this.time = time
    this.txn = txn
    this.hi = digest === undefined ? 0 : digest.hi
    this.lo = digest === undefined ? 0 : digest.lo
    this.node = node
    this.crc = crc
    this.callback = callback
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
