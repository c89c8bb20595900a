import { NetworkError, type Address, type Connection, type ConnectionEvents } from '@zabra/runtime'
import type { Fabric } from './network.ts'
import type { Incarnation } from './process.ts'

const HIGH_WATER = 64 * 1024

/** What travels: bytes, the end of one direction, or a reset. */
export type Packet = Uint8Array | 'fin' | 'reset'

/** One side of a connection. What it sends goes through the fabric, which delays it, holds it back or loses it all. */
export class SimulatedConnection implements Connection {
  readonly local: Address
  readonly remote: Address
  readonly transport = 'tcp'
  /** As the system does it: whoever writes may write over it. */
  readonly copied = true
  readonly owner: Incarnation
  readonly #fabric: Fabric
  other!: SimulatedConnection
  /** Which of the two it is: the one that has connected. */
  readonly isDialer: boolean
  readonly id: number
  /** Nothing that is sent arrives before this time, so that the order of bytes is kept. */
  lastArrival = 0
  /** Sent while the way was cut; goes on, or is lost with the connection, when it is whole again. */
  readonly stalled: Packet[] = []
  #events: ConnectionEvents | undefined
  #incoming: (Uint8Array | 'fin')[] = []
  #paused = false
  #delivering = false
  #open = true
  #sentEnd = false
  #underWay = 0
  #full = false

  constructor(
    fabric: Fabric,
    owner: Incarnation,
    local: Address,
    remote: Address,
    isDialer: boolean,
    id: number,
  ) {
    this.#fabric = fabric
    this.owner = owner
    this.local = local
    this.remote = remote
    this.isDialer = isDialer
    this.id = id
    owner.connections.add(this)
  }

  get isOpen(): boolean {
    return this.#open && this.owner.alive
  }

  get buffered(): number {
    return this.#open ? this.#underWay : 0
  }

  listen(events: ConnectionEvents): void {
    this.#events = events
    this.#deliverLater()
  }

  write(bytes: Uint8Array): boolean {
    if (!this.isOpen || this.#sentEnd || bytes.length === 0) return true
    this.#underWay += bytes.length
    this.#fabric.send(this, bytes.slice())
    this.#full ||= this.#underWay >= HIGH_WATER
    return !this.#full
  }

  pause(): void {
    this.#paused = true
  }

  resume(): void {
    this.#paused = false
    this.#deliverLater()
  }

  end(): void {
    if (!this.isOpen || this.#sentEnd) return
    this.#sentEnd = true
    this.#fabric.send(this, 'fin')
  }

  destroy(cause?: Error): void {
    if (!this.isOpen) return
    if (!this.#sentEnd) this.#fabric.send(this, this.#incoming.length > 0 ? 'reset' : 'fin')
    this.#close(cause)
  }

  /** Breaks at this side, as the system does it. */
  broken(code: string): void {
    if (this.#open)
      this.#close(new NetworkError(`The connection to ${this.remote.host} broke (${code})`, code))
  }

  /** The process that owned it is gone. */
  abandon(): void {
    this.#open = false
    this.#incoming = []
  }

  /** The peer's system has taken this many bytes and handed them over. */
  taken(bytes: number): void {
    this.#underWay -= bytes
    if (!this.#full || this.#underWay > 0 || !this.isOpen) return
    this.#full = false
    this.owner.later(0, 'drain', () => {
      if (this.#open) this.#events?.drain()
    })
  }

  /** Something arrives at this side's system. */
  arrive(packet: Packet): void {
    if (!this.isOpen) {
      // Nobody has this end any more: the other side learns it when it sends.
      if (packet !== 'reset' && this.owner.host.powered) this.#fabric.send(this, 'reset')
      return
    }
    if (packet === 'reset') return this.broken('ECONNRESET')
    this.#incoming.push(packet)
    this.#deliverLater()
  }

  #deliverLater(): void {
    if (this.#delivering || this.#events === undefined || !this.isOpen) return
    if (this.#incoming.length === 0 || this.#paused) return
    this.#delivering = true
    this.owner.later(0, 'bytes', () => {
      this.#delivering = false
      this.#deliver()
    })
  }

  #deliver(): void {
    while (this.#open && !this.#paused && this.#incoming.length > 0) {
      const first = this.#incoming.shift()!
      if (first === 'fin') return this.#ended()
      // Handed over as a copy that is spoilt afterwards: who keeps a view of it is found out.
      const chunk = first.slice()
      this.#events!.data(chunk)
      chunk.fill(0xdb)
      this.other.taken(first.length)
    }
  }

  #ended(): void {
    if (!this.#sentEnd && this.#events!.ended?.() === true) return
    if (!this.#sentEnd && this.#open) {
      this.#sentEnd = true
      this.#fabric.send(this, 'fin')
    }
    if (this.#open) this.#close(undefined)
  }

  #close(cause: Error | undefined): void {
    this.#open = false
    this.#incoming = []
    this.owner.connections.delete(this)
    this.#fabric.forget(this)
    this.owner.later(0, 'closed', () => this.#events?.closed(cause))
  }
}
