import { epochOf, formatZxid, ProtocolError } from '@zabra/protocol'
import type { EnsembleConfiguration, ServerId } from '../quorum/index.ts'
import { RingBuffer } from '../ring-buffer.ts'
import type { Zxid } from '../types.ts'
import { isNextZxid, type EncodedTxn } from './committed-window.ts'
import { checkTransaction, proposedConfiguration } from './payloads.ts'

/**
 * The transactions that a learner has received and not committed. Rejects gaps in the history and commits out of order
 * (quorum-protocol 9.5, 10.4).
 */
export class ProposalQueue {
  /** The zxids and the payloads of the same transactions: two rings, so that adding one allocates nothing. */
  readonly #zxids = new RingBuffer<Zxid>(0)
  readonly #payloads = new RingBuffer<Uint8Array | undefined>(undefined)
  /** Number of pending transactions, from the oldest, of which a commit was noted. */
  #noted = 0
  /** The designated leaders of the noted reconfigs. */
  readonly #designatedLeaders = new Map<Zxid, ServerId>()
  #epoch = -1
  #last: Zxid

  /** `last` is the last transaction that the learner has. */
  constructor(last: Zxid) {
    this.#last = last
  }

  /** The last transaction received. The next one must directly follow it. */
  get last(): Zxid {
    return this.#last
  }

  /** The pending transactions, oldest first. */
  get pending(): EncodedTxn[] {
    return Array.from(this.#zxids, (zxid, index) => ({ zxid, payload: this.#payloads.at(index)! }))
  }

  /** Sets the epoch of the leader, above which no transaction is accepted. */
  setEpoch(epoch: number): void {
    this.#epoch = epoch
  }

  /** Continues after another transaction, since the history was truncated or replaced. */
  continueAfter(zxid: Zxid): void {
    this.#last = zxid
  }

  /**
   * Checks that a transaction directly follows the last one, and makes it the last one. Returns the configuration of a
   * reconfig. Throws a `ProtocolError`.
   */
  accept(zxid: Zxid, data: Uint8Array | null): EnsembleConfiguration | undefined {
    if (data === null) throw new ProtocolError('Expected a transaction, got null', 0, formatZxid(zxid))
    if (!isNextZxid(this.#last, zxid) || epochOf(zxid) > this.#epoch)
      throw new ProtocolError(
        `Expected the transaction after ${formatZxid(this.#last)}, got ${formatZxid(zxid)}`,
        0,
        'the history of the leader',
      )
    checkTransaction(zxid, data)
    const configuration = proposedConfiguration(data)
    this.#last = zxid
    return configuration
  }

  /** As `accept`, and keeps the transaction until it is taken. */
  add(zxid: Zxid, data: Uint8Array | null): EnsembleConfiguration | undefined {
    const configuration = this.accept(zxid, data)
    this.#zxids.push(zxid)
    this.#payloads.push(data!)
    return configuration
  }

  /** Removes the oldest transaction and returns its payload. Throws a `ProtocolError` if it has another zxid. */
  take(zxid: Zxid): Uint8Array {
    this.#expect(zxid, 0)
    this.#zxids.shift()
    return this.#payloads.shift()!
  }

  /** Notes a commit for `takeNoted`. Throws a `ProtocolError` if it is out of order. */
  noteCommit(zxid: Zxid, designated?: ServerId): void {
    this.#expect(zxid, this.#noted)
    this.#noted++
    if (designated !== undefined) this.#designatedLeaders.set(zxid, designated)
  }

  /** Removes the transactions whose commit was noted, and passes each to `commit`. */
  takeNoted(commit: (zxid: Zxid, payload: Uint8Array, designated: ServerId | undefined) => void): void {
    for (; this.#noted > 0; this.#noted--) {
      const zxid = this.#zxids.first
      commit(zxid, this.take(zxid), this.#designatedLeaders.get(zxid))
    }
  }

  #expect(zxid: Zxid, index: number): void {
    const expected = index < this.#zxids.length ? this.#zxids.at(index) : undefined
    if (expected === zxid) return
    const due = expected === undefined ? 'none' : formatZxid(expected)
    throw new ProtocolError(
      `Expected a commit of ${due}, got ${formatZxid(zxid)}`,
      0,
      'the commits of the leader',
    )
  }
}
