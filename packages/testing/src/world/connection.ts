import {
  NetworkError,
  type Address,
  type Connection,
  type ConnectionHandler,
  type PeerIdentity,
} from '@zabra/runtime'
import { copyBytes } from './copy-bytes.ts'
import type { ProcessState } from './types.ts'

const HIGH_WATER = 64 * 1024

/** A unit of transmission: bytes, the end of one direction, or a reset. */
export type Packet = Uint8Array | 'fin' | 'reset'

/** What carries the packets of a connection. */
export interface PacketCarrier {
  /** Sends a packet from one side of a connection to the other. */
  send(from: SimulatedConnection, packet: Packet): void
  /** Forgets a closed side. */
  remove(connection: SimulatedConnection): void
}

/** One side of a connection. The network delays, stalls or drops what it sends. */
export class SimulatedConnection implements Connection {
  readonly local: Address
  readonly remote: Address
  readonly transport = 'tcp'
  /** The system copies what is written: the caller may reuse its buffers. */
  readonly canReuseBuffers = true
  readonly owner: ProcessState
  readonly #network: PacketCarrier
  remoteEnd!: SimulatedConnection
  /** The identity that the certificate of the other side gives it. */
  peer: PeerIdentity | undefined
  /** Whether this side opened the connection. */
  readonly isInitiator: boolean
  readonly id: number
  /** Earliest arrival time of the next packet, which keeps packets in order. */
  lastArrival = 0
  /** Packets sent while the link was cut. They are delivered, or lost with the connection, when the link heals. */
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
    network: PacketCarrier,
    owner: ProcessState,
    local: Address,
    remote: Address,
    isInitiator: boolean,
    id: number,
  ) {
    this.#network = network
    this.owner = owner
    this.local = local
    this.remote = remote
    this.isInitiator = isInitiator
    this.id = id
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
    this.#network.send(this, copyBytes(bytes))
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

  /** Breaks this side of the connection with an error code. */
  breakWith(code: string): void {
    if (this.#isOpen)
      this.#close(new NetworkError(`The connection to ${this.remote.host} broke (${code})`, code))
  }

  /** Closes this side silently: its process has ended. */
  abandon(): void {
    this.#isOpen = false
    this.#incoming = []
  }

  /** Marks bytes as delivered to the peer's application. */
  acknowledge(bytes: number): void {
    this.#inFlightBytes -= bytes
    if (!this.#needsDrain || this.#inFlightBytes > 0 || !this.isOpen) return
    this.#needsDrain = false
    this.owner.schedule(0, 'drain', () => {
      if (this.#isOpen) this.#events?.drain()
    })
  }

  /** Receives a packet at this side's system. */
  receive(packet: Packet): void {
    if (!this.isOpen) {
      // This side is closed: the peer gets a reset when it sends.
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
    this.owner.schedule(0, 'bytes', () => {
      this.#delivering = false
      this.#deliver()
    })
  }

  #deliver(): void {
    while (this.#isOpen && !this.#paused && this.#incoming.length > 0) {
      const first = this.#incoming.shift()!
      if (first === 'fin') return this.#ended()
      deliver(first, this.#events!)
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
    this.#network.remove(this)
    this.owner.schedule(0, 'closed', () => this.#events?.closed(cause))
  }
}

/** The memory of the chunk that a handler receives; calls never nest. */
let delivered = new Uint8Array(HIGH_WATER)
/** Views of its first bytes, by their number: a view costs more than the copy of a short packet. */
const MAX_KEPT_VIEW = 1024
let views: (Uint8Array | undefined)[] = []

/** Hands over a copy that is overwritten afterwards, so that a handler that keeps a view of the chunk fails. */
function deliver(bytes: Uint8Array, events: ConnectionHandler): void {
  const { length } = bytes
  if (length > delivered.length) {
    delivered = new Uint8Array(length)
    views = []
  }
  delivered.set(bytes)
  const chunk =
    length > MAX_KEPT_VIEW
      ? new Uint8Array(delivered.buffer, 0, length)
      : (views[length] ??= new Uint8Array(delivered.buffer, 0, length))
  events.data(chunk)
  chunk.fill(0xdb)
}
