import {
  NetworkError,
  type Address,
  type Connection,
  type Listener,
  type Network,
  type PeerIdentity,
} from '@zabra/runtime'
import type { Prng } from './prng.ts'
import { SimulatedConnection, type Packet } from './connection.ts'
import type { CrashKind } from './disk-image.ts'
import type { HostState, ProcessState, Scheduler } from './types.ts'

/** How the network behaves where no link is cut. */
export interface NetworkConditions {
  /** Minimum one-way delay, and mean of the exponential jitter added to it, in milliseconds. */
  delayMs: number
  jitterMs: number
  /** Probability that a chunk takes `tailMs` longer. */
  tailRate: number
  tailMs: number
  /** Probability that a write arrives in two parts. */
  splitRate: number
  /** Probability that a stalled connection breaks when its link heals; other connections resume. */
  breakOnHealRate: number
}

/** Called with all bytes as they are sent, before any fault applies. */
export type Tap = (from: SimulatedConnection, bytes: Uint8Array) => void

interface BoundPort {
  readonly owner: ProcessState
  readonly accepted: (connection: Connection) => void
}

/** The kind of the event that brings a packet to a machine. */
export const PACKET = 'packet'

/** How long a system retries a connection attempt that gets no answer, in milliseconds. */
const CONNECT_LIMIT_MS = 60_000

/** The world as the network uses it. */
interface NetworkWorld extends Scheduler {
  readonly hosts: readonly HostState[]
}

/** The links between all hosts. */
export class SimulatedNetwork {
  readonly conditions: NetworkConditions = {
    delayMs: 0.1,
    jitterMs: 0.2,
    tailRate: 0.01,
    tailMs: 10,
    splitRate: 0.05,
    breakOnHealRate: 0.5,
  }
  tap: Tap | undefined
  readonly #world: NetworkWorld
  readonly #prng: Prng
  readonly #boundPorts = new Map<string, BoundPort>()
  readonly #cutLinks = new Set<string>()
  readonly #slowLinks = new Map<string, number>()
  readonly #connections = new Set<SimulatedConnection>()
  #nextPort = 40_000
  #ids = 0

  constructor(world: NetworkWorld) {
    this.#world = world
    this.#prng = world.prng.fork('network')
  }

  /** Drops everything from one host to another; the other direction is unaffected. */
  cut(from: HostState, to: HostState): void {
    this.#cutLinks.add(`${from.name}>${to.name}`)
  }

  isCut(from: HostState, to: HostState): boolean {
    return this.#cutLinks.size > 0 && this.#cutLinks.has(`${from.name}>${to.name}`)
  }

  /** Adds a delay to each chunk in one direction; 0 removes it. */
  slowLink(from: HostState, to: HostState, ms: number): void {
    if (ms > 0) this.#slowLinks.set(`${from.name}>${to.name}`, ms)
    else this.#slowLinks.delete(`${from.name}>${to.name}`)
  }

  /** Heals every link. Stalled connections resume or break. */
  heal(): void {
    this.#cutLinks.clear()
    this.#slowLinks.clear()
    this.#releaseStalled()
  }

  /** Heals both directions of the link between two hosts. */
  healLink(a: HostState, b: HostState): void {
    this.#cutLinks.delete(`${a.name}>${b.name}`)
    this.#cutLinks.delete(`${b.name}>${a.name}`)
    this.#releaseStalled()
  }

  /** Resets every connection between two hosts on both sides. Returns their number. */
  reset(a: HostState, b: HostState): number {
    let count = 0
    for (const connection of Array.from(this.#connections)) {
      const { host } = connection.owner
      const other = connection.remoteEnd.owner.host
      if (!connection.isInitiator || !((host === a && other === b) || (host === b && other === a))) continue
      count++
      connection.breakWith('ECONNRESET')
      connection.remoteEnd.breakWith('ECONNRESET')
    }
    return count
  }

  resolve(name: string, from: HostState): HostState | undefined {
    if (name === 'localhost' || name === '127.0.0.1') return from
    return this.#world.hosts.find((host) => host.name === name || host.address === name)
  }

  bind(owner: ProcessState, port: number, accepted: (connection: Connection) => void): number | undefined {
    const own = port === 0 ? this.#nextPort++ : port
    const key = `${owner.host.name}:${own}`
    if (this.#boundPorts.get(key)?.owner.isAlive === true) return undefined
    this.#boundPorts.set(key, { owner, accepted })
    return own
  }

  unbind(owner: ProcessState, port: number): void {
    const key = `${owner.host.name}:${port}`
    if (this.#boundPorts.get(key)?.owner === owner) this.#boundPorts.delete(key)
  }

  /** Opens a connection. The other side sees `peer` as the identity that a certificate gives this one. */
  connect(
    owner: ProcessState,
    to: Address,
    signal: AbortSignal | undefined,
    peer?: PeerIdentity,
  ): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const settle = (): void => {
        settled = true
        // Removes the listener: a composed signal stays in memory as long as it has listeners.
        signal?.removeEventListener('abort', abort)
        owner.pendingConnects.delete(settle)
      }
      owner.pendingConnects.add(settle)
      const fail = (code: string, cause?: unknown): void => {
        settle()
        reject(new NetworkError(`Cannot connect to ${to.host}:${to.port} (${code})`, code, { cause }))
      }
      let settled = false
      const abort = (): void => {
        if (!settled) fail('ABORT_ERR', signal!.reason)
      }
      if (signal?.aborted === true) return fail('ABORT_ERR', signal.reason)
      const host = this.resolve(to.host, owner.host)
      if (host === undefined) return void owner.schedule(1, 'dial', () => fail('ENOTFOUND'))
      signal?.addEventListener('abort', abort, { once: true })
      const begun = this.#world.now
      let pause = 1000
      const attempt = (): void => {
        if (settled) return
        if (!this.#isReachable(owner.host, host)) {
          if (this.#world.now - begun > CONNECT_LIMIT_MS)
            return void owner.schedule(0, 'dial', () => fail('ETIMEDOUT'))
          this.#world.schedule(pause, undefined, 'dial again', attempt)
          pause *= 2
          return
        }
        const bound = this.#boundPorts.get(`${host.name}:${to.port}`)
        const back = this.delay(host, owner.host)
        if (bound === undefined || !bound.owner.isAlive) {
          return void owner.schedule(back, 'dial', () => {
            if (!settled) fail('ECONNREFUSED')
          })
        }
        const [dialer, listener] = this.#pair(owner, bound.owner, to.port)
        listener.peer = peer
        // A connection that broke before it was accepted is never reported.
        bound.owner.schedule(0, 'accept', () => {
          if (listener.isOpen) bound.accepted(listener)
        })
        owner.schedule(back, 'connected', () => {
          if (settled) return dialer.destroy()
          if (!dialer.isOpen) return fail('ECONNRESET')
          settle()
          resolve(dialer)
        })
      }
      this.#world.schedule(this.delay(owner.host, host), undefined, 'dial', attempt)
    })
  }

  processEnded(ended: ProcessState, kind: CrashKind): void {
    for (const [key, bound] of this.#boundPorts) if (bound.owner === ended) this.#boundPorts.delete(key)
    for (const connection of Array.from(this.#connections)) {
      if (connection.owner !== ended) continue
      // A machine without power sends no reset now: the peer gets one when it sends.
      if (kind === 'kill') this.send(connection, 'reset')
      connection.abandon()
      this.remove(connection)
    }
    for (const settle of ended.pendingConnects) settle()
  }

  /** Sends a packet from one side of a connection to the other. */
  send(from: SimulatedConnection, packet: Packet): void {
    const [source, target] = [from.owner.host, from.remoteEnd.owner.host]
    if (packet instanceof Uint8Array) this.tap?.(from, packet)
    if (from.stalledPackets.length > 0 || this.isCut(source, target))
      return void from.stalledPackets.push(packet)
    if (!(packet instanceof Uint8Array) || packet.length < 2 || !this.#prng.chance(this.conditions.splitRate))
      return this.#dispatch(from, packet)
    const at = this.#prng.integer(1, packet.length - 1)
    this.#dispatch(from, packet.subarray(0, at))
    this.#dispatch(from, packet.subarray(at))
  }

  remove(connection: SimulatedConnection): void {
    this.#connections.delete(connection)
  }

  delay(from: HostState, to: HostState): number {
    const { delayMs, jitterMs, tailRate, tailMs } = this.conditions
    const late = this.#prng.chance(tailRate) ? this.#prng.exponential(tailMs) : 0
    const slow = this.#slowLinks.size > 0 ? (this.#slowLinks.get(`${from.name}>${to.name}`) ?? 0) : 0
    return (
      delayMs + this.#prng.exponential(jitterMs) + late + (slow > 0 ? this.#prng.between(slow / 2, slow) : 0)
    )
  }

  #dispatch(from: SimulatedConnection, packet: Packet): void {
    const { now } = this.#world
    const target = from.remoteEnd.owner.host
    const at = Math.max(from.lastArrival, now + this.delay(from.owner.host, target))
    from.lastArrival = at
    if (packet instanceof Uint8Array) this.#world.mixIntoHash(packet.length * 31 + packet[packet.length - 1]!)
    this.#world.scheduleAt(at, undefined, PACKET, () => {
      if (target.isPowered) from.remoteEnd.receive(packet)
    })
  }

  #isReachable(from: HostState, to: HostState): boolean {
    return to.isPowered && !this.isCut(from, to) && !this.isCut(to, from)
  }

  #pair(owner: ProcessState, other: ProcessState, port: number): [SimulatedConnection, SimulatedConnection] {
    const from = { host: owner.host.address, port: this.#nextPort++ }
    const to = { host: other.host.address, port }
    const id = ++this.#ids
    const dialer = new SimulatedConnection(this, owner, from, to, true, id)
    const listener = new SimulatedConnection(this, other, to, from, false, id)
    dialer.remoteEnd = listener
    listener.remoteEnd = dialer
    this.#connections.add(dialer)
    this.#connections.add(listener)
    return [dialer, listener]
  }

  /** Releases packets that were stalled on links that are healed. */
  #releaseStalled(): void {
    const { breakOnHealRate } = this.conditions
    for (const connection of Array.from(this.#stalledOnes())) {
      if (this.isCut(connection.owner.host, connection.remoteEnd.owner.host)) continue
      const packets = connection.stalledPackets.splice(0)
      if (this.#prng.chance(breakOnHealRate)) {
        connection.breakWith('ETIMEDOUT')
        connection.remoteEnd.breakWith('ECONNRESET')
      } else for (const packet of packets) this.#dispatch(connection, packet)
    }
  }

  *#stalledOnes(): Generator<SimulatedConnection> {
    for (const connection of this.#connections) {
      if (connection.stalledPackets.length > 0) yield connection
      // One side may be closed while its last packets are still stalled.
      if (connection.remoteEnd.stalledPackets.length > 0 && !this.#connections.has(connection.remoteEnd))
        yield connection.remoteEnd
    }
  }
}

/** The network as one process sees it. */
export class ProcessNetwork implements Network {
  readonly #network: SimulatedNetwork
  readonly #owner: ProcessState

  constructor(network: SimulatedNetwork, owner: ProcessState) {
    this.#network = network
    this.#owner = owner
  }

  listen(at: { host?: string; port: number }, accepted: (connection: Connection) => void): Promise<Listener> {
    const owner = this.#owner
    return new Promise((resolve, reject) => {
      owner.schedule(0.01, 'listen', () => {
        const port = this.#network.bind(owner, at.port, accepted)
        if (port === undefined) {
          const where = `${at.host ?? owner.host.address}:${at.port}`
          const message = `Cannot listen on ${where} (EADDRINUSE). Another program listens there. Stop it, or choose another port.`
          return reject(new NetworkError(message, 'EADDRINUSE'))
        }
        resolve({
          address: { host: owner.host.address, port },
          close: () => {
            this.#network.unbind(owner, port)
            return new Promise((done) => void owner.schedule(0, 'deaf', done))
          },
        })
      })
    })
  }

  connect(to: Address, options: { signal?: AbortSignal } = {}): Promise<Connection> {
    return this.#network.connect(this.#owner, to, options.signal)
  }

  resolve(name: string): Promise<readonly string[]> {
    const owner = this.#owner
    return new Promise((resolve, reject) => {
      owner.schedule(0.1, 'resolve', () => {
        const host = this.#network.resolve(name, owner.host)
        if (host === undefined) reject(new NetworkError(`Cannot resolve ${name} (ENOTFOUND)`, 'ENOTFOUND'))
        else resolve([host.address])
      })
    })
  }
}
