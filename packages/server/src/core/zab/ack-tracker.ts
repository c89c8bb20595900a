import type { QuorumVerifier, ServerId } from '../quorum/index.ts'
import { RingBuffer } from '../ring-buffer.ts'
import type { Zxid } from '../types.ts'

/**
 * The proposals that are not committed, and how much of them each server has acknowledged.
 *
 * Every server logs in order, so an ACK says that all earlier transactions are durable there too
 * (quorum-protocol invariant 15). One zxid per server is enough, and commits are in order whatever the order of the ACKs.
 *
 * Uses parallel arrays and one reused set, since it is called for every ACK of every write.
 */
export class AckTracker {
  /** The payloads of the proposals, from the first one after the last committed zxid on. */
  readonly pending = new RingBuffer<Uint8Array | undefined>(undefined)
  readonly #servers: ServerId[] = []
  readonly #acks: Zxid[] = []
  /** The result of `#ackersOf`, reused. */
  readonly #ackers = new Set<ServerId>()
  /** By index in `#servers`, whether the server is a voter of `#verifier`, the last verifier used. */
  #votes: boolean[] = []
  #verifier: QuorumVerifier | undefined

  /** Returns the last zxid that a server has acknowledged, or -1. */
  ackedBy(server: ServerId): Zxid {
    const index = this.#servers.indexOf(server)
    return index === -1 ? -1 : this.#acks[index]!
  }

  /** Records that a server has everything up to `zxid`. Returns whether that is new. */
  acknowledge(server: ServerId, zxid: Zxid): boolean {
    const index = this.#servers.indexOf(server)
    if (index === -1) {
      this.#servers.push(server)
      this.#acks.push(zxid)
      this.#verifier = undefined
      return true
    }
    if (zxid <= this.#acks[index]!) return false
    this.#acks[index] = zxid
    return true
  }

  /**
   * Forgets the ACKs of a server, called when its sync begins: it may have to truncate uncommitted transactions, and
   * gets them again as proposals.
   */
  forget(server: ServerId): void {
    const index = this.#servers.indexOf(server)
    if (index === -1) return
    this.#servers.splice(index, 1)
    this.#acks.splice(index, 1)
    this.#verifier = undefined
  }

  /** Returns the highest zxid above `floor` and up to `limit` that a quorum has acknowledged, or `floor`. */
  quorumZxid(verifier: QuorumVerifier, floor: Zxid, limit: Zxid): Zxid {
    const acks = this.#acks
    let best = floor
    for (let i = 0; i < acks.length; i++) {
      const candidate = acks[i]! < limit ? acks[i]! : limit
      if (candidate > best && this.#isAckedByQuorum(verifier, candidate)) best = candidate
    }
    return best
  }

  /** Counts voters in place where all have the same weight, without building a set. */
  #isAckedByQuorum(verifier: QuorumVerifier, zxid: Zxid): boolean {
    const { quorumSize } = verifier
    if (quorumSize === undefined) return verifier.isQuorum(this.#ackersOf(zxid))
    if (this.#verifier !== verifier) {
      this.#verifier = verifier
      this.#votes = this.#servers.map((server) => verifier.voters.has(server))
    }
    let count = 0
    for (let i = 0; i < this.#acks.length; i++) if (this.#acks[i]! >= zxid && this.#votes[i]!) count++
    return count >= quorumSize
  }

  /** Returns the servers that have everything up to this zxid. The set is reused by the next call. */
  #ackersOf(zxid: Zxid): ReadonlySet<ServerId> {
    const ackers = this.#ackers
    ackers.clear()
    for (let i = 0; i < this.#acks.length; i++) if (this.#acks[i]! >= zxid) ackers.add(this.#servers[i]!)
    return ackers
  }
}
