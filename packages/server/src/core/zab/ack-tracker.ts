import type { QuorumVerifier, ServerId } from '../quorum/index.ts'
import type { Zxid } from '../types.ts'
import { Entries } from './entries.ts'

/**
 * What was proposed and is not committed yet, and who has how much of it.
 *
 * B1 (10.3, invariant 15) Every server logs in order, so an ACK says that all before it is durable there too. One number a server
 * is enough, commits come out in order whatever order acks come in, and the successor of a commit needs no second look.
 *
 * FENCED: parallel arrays and one set that is filled anew for each question.
 * Why: this is asked for every acknowledgement of every write.
 * Rules: `#ackers` means nothing between calls.
 */
export class AckTracker {
  readonly pending = new Entries()
  readonly #servers: ServerId[] = []
  readonly #acks: Zxid[] = []
  readonly #ackers = new Set<ServerId>()
  /** Who votes, by place in `#servers`, in the eyes of the verifier that was asked last. */
  #votes: boolean[] = []
  #verifier: QuorumVerifier | undefined

  /** How far a server has everything, or -1. */
  ackedBy(server: ServerId): Zxid {
    const index = this.#servers.indexOf(server)
    return index === -1 ? -1 : this.#acks[index]!
  }

  /** Says that a server has everything up to `zxid`. Whether that is news. */
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
   * B2 What a server acknowledged counts no more once it is brought up to date again: it may be told to cut what is not
   * committed, and gets it again as a proposal.
   */
  forget(server: ServerId): void {
    const index = this.#servers.indexOf(server)
    if (index === -1) return
    this.#servers.splice(index, 1)
    this.#acks.splice(index, 1)
    this.#verifier = undefined
  }

  /** The highest zxid above `floor` and up to `limit` that a quorum has; `floor` when there is none. */
  quorumZxid(verifier: QuorumVerifier, floor: Zxid, limit: Zxid): Zxid {
    const acks = this.#acks
    let best = floor
    for (let i = 0; i < acks.length; i++) {
      const candidate = acks[i]! < limit ? acks[i]! : limit
      if (candidate > best && this.#isAckedByQuorum(verifier, candidate)) best = candidate
    }
    return best
  }

  /** Whether a quorum has everything up to this zxid. Where voices are equal they are counted in place. */
  #isAckedByQuorum(verifier: QuorumVerifier, zxid: Zxid): boolean {
    const { quorumSize: needed } = verifier
    if (needed === undefined) return verifier.isQuorum(this.ackersOf(zxid))
    if (this.#verifier !== verifier) {
      this.#verifier = verifier
      this.#votes = this.#servers.map((server) => verifier.voters.has(server))
    }
    let count = 0
    for (let i = 0; i < this.#acks.length; i++) if (this.#acks[i]! >= zxid && this.#votes[i]!) count++
    return count >= needed
  }

  /** Who has everything up to this zxid. The set is the same at each call. */
  ackersOf(zxid: Zxid): ReadonlySet<ServerId> {
    const ackers = this.#ackers
    ackers.clear()
    for (let i = 0; i < this.#acks.length; i++) if (this.#acks[i]! >= zxid) ackers.add(this.#servers[i]!)
    return ackers
  }
}
