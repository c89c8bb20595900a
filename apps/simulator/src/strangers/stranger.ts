import type { Address, Connection } from '@zabra/runtime'
import type { Host, Prng, SimulatedWorld } from '@zabra/testing'
import { QuorumPacketParser, type QuorumPacket } from '../simulation/quorum-packet-parser.ts'
import type { Recorder } from './recorder.ts'
import { ackEpoch, bare, garbage, hello, learnerInfo, superRequest, vote } from './messages.ts'
import { PORTS, type StrangerPort } from './ports.ts'

/** Packet types by their numbers on the wire. */
const [ACK, PROPOSAL, LEADERINFO, NEWLEADER] = [3, 2, 17, 10]

export interface StrangerOptions {
  readonly world: SimulatedWorld
  readonly prng: Prng
  readonly host: Host
  /** The number of servers, whose ids it claims. */
  readonly servers: number
  /**
   * The server whose address it has; undefined without one. With one it claims, and accepts the epoch of the leader that this server
   * follows, and acknowledges nothing: a program that can act as a voter in full can undo writes in any protocol with crash faults.
   */
  readonly neighbour: number | undefined
  /** Returns the leader that the neighbour follows and serves with, and its epoch; undefined while it does not. */
  readonly leaderOfNeighbour: () => { readonly id: number; readonly epoch: number } | undefined
  /** Whether it tries to follow, to acknowledge and to write. */
  readonly canFollow: boolean
  readonly recorder: Recorder
}

/** A program that is no member: it connects to the ports of all servers and sends anything, until it is stopped. */
export class Stranger {
  readonly #options: StrangerOptions
  readonly #connections = new Set<Connection>()
  #isStopped = false

  constructor(options: StrangerOptions) {
    this.#options = options
    if (options.host.current === undefined) options.host.start()
    this.#next()
  }

  stop(): void {
    this.#isStopped = true
    for (const connection of this.#connections) connection.destroy()
  }

  #next(): void {
    const { world, prng } = this.#options
    world.schedule(prng.exponential(15), undefined, 'stranger', () => {
      if (this.#isStopped) return
      this.#attack()
      this.#next()
    })
  }

  #attack(): void {
    const { prng, servers, host } = this.#options
    const port = prng.pickWeighted<StrangerPort>({ client: 1, quorum: 4, election: 4, observers: 1 })
    const server = prng.integer(1, servers)
    const to: Address = { host: `s${server}`, port: PORTS[port] }
    host.current!.platform.network.connect(to).then(
      (connection) => this.#connected(port, server, connection),
      () => {},
    )
  }

  #connected(port: StrangerPort, server: number, connection: Connection): void {
    const { world, prng } = this.#options
    this.#connections.add(connection)
    const received = this.#handlerOf(port, server, connection)
    connection.setHandler({
      data: received,
      drain() {},
      closed: () => this.#connections.delete(connection),
    })
    if (this.#isStopped) return connection.destroy()
    for (const bytes of this.#script(port)) connection.write(bytes)
    // Some connections stay open, silent, until the stranger is stopped.
    if (prng.chance(0.7))
      world.schedule(prng.exponential(500), undefined, 'stranger', () => connection.destroy())
  }

  /** Returns what it sends at first. */
  #script(port: StrangerPort): Uint8Array[] {
    const { prng, servers, neighbour, recorder } = this.#options
    const id = neighbour !== undefined && prng.chance(0.8) ? neighbour : prng.integer(1, servers)
    if (prng.chance(0.1)) return [garbage(prng)]
    if (port === 'client') return [garbage(prng), garbage(prng)]
    const canReplay = port === 'election' || neighbour === undefined
    if (canReplay && prng.chance(0.2)) return recorder.some(port, prng)
    if (port === 'election')
      return [hello(id), ...Array.from({ length: prng.integer(0, 4) }, () => vote(prng, servers))]
    return [learnerInfo(prng, id), ...(prng.chance(0.1) ? [garbage(prng)] : [])]
  }

  /** Returns the handler of received bytes: a stranger that may follow answers as a follower does, whatever it has. */
  #handlerOf(port: StrangerPort, server: number, connection: Connection): (chunk: Uint8Array) => void {
    const { prng, neighbour, canFollow, leaderOfNeighbour } = this.#options
    if (port !== 'quorum' || (neighbour === undefined && !canFollow)) return () => {}
    const parser = new QuorumPacketParser((packet) => {
      if (neighbour === undefined) for (const bytes of answersTo(packet, prng)) connection.write(bytes)
      else if (packet.type === LEADERINFO) {
        const leader = leaderOfNeighbour()
        if (leader?.id === server && leader.epoch === packet.zxid / 2 ** 32) connection.write(ackEpoch(0n, 0))
      }
    })
    return (chunk) => parser.push(chunk.slice())
  }
}

/** Returns the packets with which a stranger answers a leader that takes it for a follower. */
function answersTo({ type, zxid }: QuorumPacket, prng: Prng): Uint8Array[] {
  if (type === LEADERINFO) return [ackEpoch(0n, 0)]
  if (type === NEWLEADER) return [bare(ACK!, BigInt(zxid))]
  if (type !== PROPOSAL) return []
  return [bare(ACK!, BigInt(zxid)), ...(prng.chance(0.2) ? [superRequest('/w/probe')] : [])]
}
