import type { ConnectionId } from '../leader-types.ts'
import type { QuorumPacket } from '../packets.ts'
import type { Txn } from './simulated-disk.ts'
import { emptyLinkHistory, type LinkHistory } from './invariant-checker.ts'
import type { SimulatedMember } from './simulated-member.ts'
import type { ZabSimulation } from './zab-simulation.ts'

/** A packet, with the snapshot that follows it on the wire. */
export interface Delivery {
  readonly packet: QuorumPacket
  readonly snapshot?: readonly Txn[]
}

/** A connection from a learner to a leader: in order, and it may break. */
export class SimulatedLink {
  readonly id: ConnectionId
  readonly leader: SimulatedMember
  readonly learner: SimulatedMember
  readonly history: LinkHistory = emptyLinkHistory()
  isOpen = true
  readonly #world: ZabSimulation
  /** When the last parcel of each direction arrives. */
  #arrivals = { toLeader: 0, toLearner: 0 }

  constructor(world: ZabSimulation, id: ConnectionId, leader: SimulatedMember, learner: SimulatedMember) {
    this.#world = world
    this.id = id
    this.leader = leader
    this.learner = learner
  }

  toLeader(packet: QuorumPacket): void {
    this.#deliver('toLeader', () => this.leader.receiveFromLearner(this, packet))
  }

  toLearner(parcel: Delivery): void {
    this.#deliver('toLearner', () => this.learner.receiveFromLeader(this, parcel))
  }

  /** Both ends hear of it, each at its time; what is on its way is lost. */
  close(): void {
    if (!this.isOpen) return
    this.isOpen = false
    this.#world.after(this.#world.random.below(60), () => this.leader.linkClosed(this))
    this.#world.after(this.#world.random.below(60), () => this.learner.linkClosed(this))
  }

  #deliver(way: 'toLeader' | 'toLearner', deliver: () => void): void {
    if (!this.isOpen) return
    const world = this.#world
    if (!world.connected(this.leader.id, this.learner.id)) return this.close()
    const at = Math.max(world.now + 1 + world.random.below(world.faultRates.delayMs), this.#arrivals[way])
    this.#arrivals[way] = at
    world.after(at - world.now, () => {
      if (!this.isOpen) return
      if (world.connected(this.leader.id, this.learner.id)) deliver()
      else this.close()
    })
  }
}
