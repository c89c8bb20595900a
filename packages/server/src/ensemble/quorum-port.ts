import { NetworkError, type Address, type Cancel, type Connection, type Listener } from '@zabra/runtime'
import type { Clock, Logger, Network } from '@zabra/runtime'
import { ProtocolError } from '@zabra/protocol'
import { decodeLearnerInfo, PacketSplitter, PacketType, type QuorumPacket } from '../core/zab/index.ts'
import { formatAddress } from './election-hello.ts'

/** What a quorum port needs. Times are in milliseconds. */
export interface QuorumPortOptions {
  readonly network: Network
  readonly clock: Clock
  readonly logger: Logger
  /** Without a host on all interfaces. */
  readonly listen: readonly { readonly host?: string; readonly port: number }[]
  /** How often binding is tried, one second apart. */
  readonly bindAttempts: number
  /** Connections that have not said who they are: beyond these the one that has waited longest goes. */
  readonly maxUnidentified: number
  /** How long a connection may take to say who it is. */
  readonly firstPacketTimeoutMs: number
  /** Why a learner that says so of itself must not come in, if it must not. */
  readonly refusal?: (packet: QuorumPacket) => string | undefined
  /** A learner has introduced itself. The connection is the receiver's from now on. */
  readonly identified: (packet: QuorumPacket, wire: Connection) => void
}

export const quorumPortDefaults = {
  bindAttempts: 3,
  maxUnidentified: 64,
  firstPacketTimeoutMs: 5000,
} as const

const BIND_PAUSE_MS = 1000
/** Longest first packet that is read; a real one takes 44 bytes. */
const FIRST_PACKET_BYTES = 1024
/** At most one line about strangers in so many milliseconds. */
const COMPLAINT_MS = 10_000

/** A packet without data and identities. */
const BARE_PACKET_BYTES = 20

interface Stranger {
  readonly wire: Connection
  readonly splitter: PacketSplitter
  /** What it has sent, in bytes. */
  received: number
  packet: QuorumPacket | undefined
  cancel: Cancel
}

/**
 * The port on which a leader takes learners. Whoever connects is a stranger until its first packet has come whole: that
 * of a learner, and nothing behind it. Strangers wait neither long nor in great number, and the log hears of them rarely.
 */
export class QuorumPort {
  readonly #options: QuorumPortOptions
  readonly #strangers = new Set<Stranger>()
  readonly #listeners: Listener[] = []
  #closed = false
  #stopWaiting: () => void = () => {}
  #complainedAt = -Infinity
  /** Strangers that were sent away since the log heard of one. */
  #unmentioned = 0

  constructor(options: QuorumPortOptions) {
    this.#options = options
  }

  /** Listens on all addresses, or on none: rejects with a `NetworkError` when one cannot be had after all attempts. */
  async open(): Promise<void> {
    try {
      for (const at of this.#options.listen) {
        const listener = await this.#bind(at)
        this.#listeners.push(listener)
        if (this.#closed) throw new NetworkError('The quorum port was closed while it opened', 'ABORT_ERR')
      }
    } catch (error) {
      await this.close()
      throw error
    }
  }

  get addresses(): Address[] {
    return this.#listeners.map(({ address }) => address)
  }

  /** Connections that have not said who they are. */
  get unidentified(): number {
    return this.#strangers.size
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#stopWaiting()
    for (const stranger of this.#strangers) this.#drop(stranger)
    await Promise.all(this.#listeners.map((listener) => listener.close()))
  }

  async #bind(at: QuorumPortOptions['listen'][number]): Promise<Listener> {
    const { network, logger, bindAttempts } = this.#options
    for (let attempt = 1; ; attempt++) {
      try {
        return await network.listen(
          { ...at, keepAlive: true },
          (wire) => this.#admit(wire),
          (error) => this.#complain(error.message, undefined),
        )
      } catch (error) {
        if (!(error instanceof NetworkError) || attempt >= bindAttempts || this.#closed) throw error
        logger.warn({ reason: error.message, attempt }, 'The quorum port cannot be had yet; trying again')
        await this.#pause()
      }
    }
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#options.clock.after(BIND_PAUSE_MS, 'quorum port', resolve)
      this.#stopWaiting = () => {
        cancel()
        resolve()
      }
    })
  }

  #admit(wire: Connection): void {
    const { clock, maxUnidentified, firstPacketTimeoutMs: firstPacketMs } = this.#options
    const splitter = new PacketSplitter({
      maxData: FIRST_PACKET_BYTES,
      packet: (type, zxid, data, auth) => {
        stranger.packet ??= { type, zxid, data: data && new Uint8Array(data), auth }
      },
    })
    const stranger: Stranger = { wire, splitter, received: 0, packet: undefined, cancel: () => {} }
    wire.setHandler({
      data: (chunk) => this.#read(stranger, chunk),
      drain() {},
      closed: () => this.#forget(stranger),
    })
    if (this.#closed) return wire.destroy()
    if (this.#strangers.size >= maxUnidentified) {
      const [oldest] = this.#strangers
      this.#dismiss(oldest!, 'too many connections have not said who they are')
    }
    this.#strangers.add(stranger)
    stranger.cancel = clock.after(firstPacketMs, 'first packet of a learner', () =>
      this.#dismiss(
        stranger,
        `it did not say who it is within ${firstPacketMs} ms (${stranger.received} bytes came)`,
      ),
    )
  }

  #read(stranger: Stranger, chunk: Uint8Array): void {
    if (!this.#strangers.has(stranger)) return
    stranger.received += chunk.length
    let objection: string | undefined
    try {
      stranger.splitter.push(chunk)
      if (stranger.packet === undefined) return
      objection = objectionTo(stranger.packet, stranger.received) ?? this.#options.refusal?.(stranger.packet)
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      objection = error.message
    }
    if (objection !== undefined) return this.#dismiss(stranger, objection)
    this.#forget(stranger)
    this.#options.identified(stranger.packet!, stranger.wire)
  }

  #forget(stranger: Stranger): void {
    stranger.cancel()
    this.#strangers.delete(stranger)
  }

  #drop(stranger: Stranger): void {
    this.#forget(stranger)
    stranger.wire.destroy()
  }

  #dismiss(stranger: Stranger, reason: string): void {
    this.#drop(stranger)
    this.#complain(reason, stranger.wire.remote)
  }

  /** Whoever floods the port must not flood the log. */
  #complain(reason: string, remote: Address | undefined): void {
    const now = this.#options.clock.monotonic()
    if (now - this.#complainedAt < COMPLAINT_MS) {
      this.#unmentioned++
      return
    }
    const address = remote === undefined ? undefined : formatAddress(remote)
    const others = this.#unmentioned
    this.#complainedAt = now
    this.#unmentioned = 0
    this.#options.logger.warn({ address, reason, others }, 'A connection to the quorum port was closed')
  }
}

/**
 * A learner waits for an answer before it says anything else, so there is nothing behind its first packet. Throws a
 * `ProtocolError` when it cannot be read who it is.
 */
function objectionTo({ type, data }: QuorumPacket, received: number): string | undefined {
  if (type !== PacketType.followerInfo && type !== PacketType.observerInfo)
    return `expected it to introduce itself as a learner, got a packet of type ${type}`
  decodeLearnerInfo(data)
  const behind = received - BARE_PACKET_BYTES - (data?.length ?? 0)
  return behind > 0 ? `${behind} bytes came behind its first packet` : undefined
}
