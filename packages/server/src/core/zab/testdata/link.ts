import type { ConnectionId } from '../leader-types.ts'
import type { QuorumPacket } from '../packets.ts'
import type { Txn } from './disk.ts'
import { channel, type Channel } from './judge.ts'
import type { Server } from './server.ts'
import type { World } from './world.ts'

/** A packet, with the snapshot that follows it on the wire. */
export interface Parcel {
  readonly packet: QuorumPacket
  readonly snapshot?: readonly Txn[]
}

/** A connection from a learner to a leader: in order, and it may break. */
export class Link {
  readonly id: ConnectionId
  readonly leader: Server
  readonly learner: Server
  readonly said: Channel = channel()
  open = true
  readonly #world: World
  /** When the last parcel of each direction arrives. */
  #arrivals = { toLeader: 0, toLearner: 0 }

  constructor(world: World, id: ConnectionId, leader: Server, learner: Server) {
    this.#world = world
    this.id = id
    this.leader = leader
    this.learner = learner
  }

  toLeader(packet: QuorumPacket): void {
    this.#carry('toLeader', () => this.leader.fromLearner(this, packet))
  }

  toLearner(parcel: Parcel): void {
    this.#carry('toLearner', () => this.learner.fromLeader(this, parcel))
  }

  /** Both ends hear of it, each at its time; what is on its way is lost. */
  close(): void {
    if (!this.open) return
    this.open = false
    this.#world.after(this.#world.random.below(60), () => this.leader.lost(this))
    this.#world.after(this.#world.random.below(60), () => this.learner.lost(this))
  }

  #carry(way: 'toLeader' | 'toLearner', deliver: () => void): void {
    if (!this.open) return
    const world = this.#world
    if (!world.connected(this.leader.id, this.learner.id)) return this.close()
    const at = Math.max(world.now + 1 + world.random.below(world.weather.delayMs), this.#arrivals[way])
    this.#arrivals[way] = at
    world.after(at - world.now, () => {
      if (!this.open) return
      if (world.connected(this.leader.id, this.learner.id)) deliver()
      else this.close()
    })
  }
}
