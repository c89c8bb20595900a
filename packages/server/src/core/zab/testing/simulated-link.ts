import type { ManualClock, SeededRandom } from '@zabra/runtime'
import type { ServerId } from '../../quorum/index.ts'
import type { ConnectionId } from '../leader-types.ts'
import type { QuorumPacket } from '../packets.ts'
import { emptyLinkHistory, type CheckedServer, type LinkHistory } from './invariant-checker.ts'
import type { Txn } from './txn.ts'

/** A packet, with the snapshot that follows it. */
export interface Delivery {
  readonly packet: QuorumPacket
  readonly snapshot?: readonly Txn[]
}

/** A leader or learner at the end of a link. */
export interface LinkEndpoint extends CheckedServer {
  receiveFromLearner(link: SimulatedLink, packet: QuorumPacket): void
  receiveFromLeader(link: SimulatedLink, delivery: Delivery): void
  linkClosed(link: SimulatedLink): void
}

/** The network of a link. */
export interface LinkNetwork {
  readonly random: SeededRandom
  readonly clock: ManualClock
  readonly faultRates: { readonly delayMs: number }
  areConnected(a: ServerId, b: ServerId): boolean
}

/** A connection from a learner to a leader: in order, until it breaks. */
export class SimulatedLink {
  readonly id: ConnectionId
  readonly leader: LinkEndpoint
  readonly learner: LinkEndpoint
  readonly history: LinkHistory = emptyLinkHistory()
  isOpen = true
  readonly #network: LinkNetwork
  /** When the last packet of each direction arrives. */
  #arrivals = { toLeader: 0, toLearner: 0 }

  constructor(network: LinkNetwork, id: ConnectionId, leader: LinkEndpoint, learner: LinkEndpoint) {
    this.#network = network
    this.id = id
    this.leader = leader
    this.learner = learner
  }

  toLeader(packet: QuorumPacket): void {
    this.#send('toLeader', () => this.leader.receiveFromLearner(this, packet))
  }

  toLearner(delivery: Delivery): void {
    this.#send('toLearner', () => this.learner.receiveFromLeader(this, delivery))
  }

  /** Notifies each end after a delay. Packets in flight are lost. */
  close(): void {
    if (!this.isOpen) return
    this.isOpen = false
    const { clock, random } = this.#network
    clock.after(random.below(60), 'close', () => this.leader.linkClosed(this))
    clock.after(random.below(60), 'close', () => this.learner.linkClosed(this))
  }

  #send(direction: 'toLeader' | 'toLearner', deliver: () => void): void {
    if (!this.isOpen) return
    if (!this.#isConnected) return this.close()
    const { clock, random, faultRates } = this.#network
    const at = Math.max(clock.monotonic() + 1 + random.below(faultRates.delayMs), this.#arrivals[direction])
    this.#arrivals[direction] = at
    clock.after(at - clock.monotonic(), 'packet', () => {
      if (!this.isOpen) return
      if (this.#isConnected) deliver()
      else this.close()
    })
  }

  get #isConnected(): boolean {
    return this.#network.areConnected(this.leader.id, this.learner.id)
  }
}
