import { epochOf, formatZxid, ProtocolError } from '@zabra/protocol'
import type { EnsembleConfiguration, ServerId } from '../quorum/index.ts'
import type { Zxid } from '../types.ts'
import { isNextZxid } from './committed-window.ts'
import { Entries } from './entries.ts'
import { proposedConfiguration } from './reconfig-txn.ts'

/**
 * The transactions that a learner has received and not committed. Rejects gaps in the history and commits out of order
 * (quorum-protocol 9.5, 10.4).
 */
export class ProposalQueue {
  readonly #pending = new Entries()
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

  get length(): number {
    return this.#pending.length
  }

  zxidAt(index: number): Zxid {
    return this.#pending.zxidAt(index)
  }

  payloadAt(index: number): Uint8Array {
    return this.#pending.payloadAt(index)
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
    const configuration = proposedConfiguration(data)
    this.#last = zxid
    return configuration
  }

  /** As `accept`, and keeps the transaction until it is taken. */
  add(zxid: Zxid, data: Uint8Array | null): EnsembleConfiguration | undefined {
    const configuration = this.accept(zxid, data)
    this.#pending.push(zxid, data!)
    return configuration
  }

  /** Removes the oldest transaction and returns its payload. Throws a `ProtocolError` if it has another zxid. */
  take(zxid: Zxid): Uint8Array {
    const payload = this.#expect(zxid, 0)
    this.#pending.shift()
    return payload
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
      const zxid = this.#pending.zxidAt(0)
      commit(zxid, this.take(zxid), this.#designatedLeaders.get(zxid))
    }
  }

  #expect(zxid: Zxid, index: number): Uint8Array {
    const isPending = index < this.#pending.length
    if (isPending && this.#pending.zxidAt(index) === zxid) return this.#pending.payloadAt(index)
    const due = isPending ? formatZxid(this.#pending.zxidAt(index)) : 'none'
    throw new ProtocolError(
      `Expected a commit of ${due}, got ${formatZxid(zxid)}`,
      0,
      'the commits of the leader',
    )
  }
}
