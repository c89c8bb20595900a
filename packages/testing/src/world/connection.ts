import { NetworkError, type Address, type Connection, type ConnectionHandler } from '@zabra/runtime'
import type { SimulatedNetwork } from './network.ts'
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
  readonly canReuseBuffers = true
  readonly owner: Incarnation
  readonly #network: SimulatedNetwork
  remoteEnd!: SimulatedConnection
  /** Which of the two it is: the one that has connected. */
  readonly isInitiator: boolean
  readonly id: number
  /** Nothing that is sent arrives before this time, so that the order of bytes is kept. */
  lastArrival = 0
  /** Sent while the way was cut; goes on, or is lost with the connection, when it is whole again. */
  readonly stalledPackets: Packet[] = []
  #events: ConnectionHandler | undefined
  #incoming: (Uint8Array | 'fin')[] = []
  #paused = false
  #delivering = false
  #isOpen = true
  #hasSentEnd = false
  #inFlightBytes = 0
  #needsDrain = false

  constructor(
    fabric: SimulatedNetwork,
    owner: Incarnation,
    local: Address,
    remote: Address,
    isDialer: boolean,
    id: number,
  ) {
    this.#network = fabric
    this.owner = owner
    this.local = local
    this.remote = remote
    this.isInitiator = isDialer
    this.id = id
    owner.connections.add(this)
  }

  get isOpen(): boolean {
    return this.#isOpen && this.owner.isAlive
  }

  get bufferedBytes(): number {
    return this.#isOpen ? this.#inFlightBytes : 0
  }

  setHandler(events: ConnectionHandler): void {
    this.#events = events
    this.#deliverLater()
  }

  write(bytes: Uint8Array): boolean {
    if (!this.isOpen || this.#hasSentEnd || bytes.length === 0) return true
    this.#inFlightBytes += bytes.length
    this.#network.send(this, bytes.slice())
    this.#needsDrain ||= this.#inFlightBytes >= HIGH_WATER
    return !this.#needsDrain
  }

  pause(): void {
    this.#paused = true
  }

  resume(): void {
    this.#paused = false
    this.#deliverLater()
  }

  end(): void {
    if (!this.isOpen || this.#hasSentEnd) return
    this.#hasSentEnd = true
    this.#network.send(this, 'fin')
  }

  destroy(cause?: Error): void {
    if (!this.isOpen) return
    if (!this.#hasSentEnd) this.#network.send(this, this.#incoming.length > 0 ? 'reset' : 'fin')
    this.#close(cause)
  }

  /** Breaks at this side, as the system does it. */
  breakWith(code: string): void {
    if (this.#isOpen)
      this.#close(new NetworkError(`The connection to ${this.remote.host} broke (${code})`, code))
  }

  /** The process that owned it is gone. */
  abandon(): void {
    this.#isOpen = false
    this.#incoming = []
  }

  /** The peer's system has taken this many bytes and handed them over. */
  acknowledge(bytes: number): void {
    this.#inFlightBytes -= bytes
    if (!this.#needsDrain || this.#inFlightBytes > 0 || !this.isOpen) return
    this.#needsDrain = false
    this.owner.later(0, 'drain', () => {
      if (this.#isOpen) this.#events?.drain()
    })
  }

  /** Something arrives at this side's system. */
  receive(packet: Packet): void {
    if (!this.isOpen) {
      // Nobody has this end any more: the other side learns it when it sends.
      if (packet !== 'reset' && this.owner.host.isPowered) this.#network.send(this, 'reset')
      return
    }
    if (packet === 'reset') return this.breakWith('ECONNRESET')
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
    while (this.#isOpen && !this.#paused && this.#incoming.length > 0) {
      const first = this.#incoming.shift()!
      if (first === 'fin') return this.#ended()
      // Handed over as a copy that is spoilt afterwards: who keeps a view of it is found out.
      const chunk = first.slice()
      this.#events!.data(chunk)
      chunk.fill(0xdb)
      this.remoteEnd.acknowledge(first.length)
    }
  }

  #ended(): void {
    if (!this.#hasSentEnd && this.#events!.ended?.() === true) return
    if (!this.#hasSentEnd && this.#isOpen) {
      this.#hasSentEnd = true
      this.#network.send(this, 'fin')
    }
    if (this.#isOpen) this.#close(undefined)
  }

  #close(cause: Error | undefined): void {
    this.#isOpen = false
    this.#incoming = []
    this.owner.connections.delete(this)
    this.#network.remove(this)
    this.owner.later(0, 'closed', () => this.#events?.closed(cause))
  }
}
