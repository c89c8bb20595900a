import { ProtocolError } from '@zabra/protocol'
import type { Cancel, Clock, Connection, Logger } from '@zabra/runtime'
import { HelloReader, formatAddress, type Hello } from './election-hello.ts'

/** What a doorkeeper needs. */
export interface PendingConnectionsOptions {
  readonly clock: Clock
  readonly logger: Logger
  /** Connections that have not said who they are: beyond these the one that has waited longest goes. */
  readonly maxUnidentified: number
  /** How long one may take to say it. */
  readonly helloTimeoutMs: number
  /** Somebody has introduced itself; `rest` came behind its hello. The connection is the receiver's from now on. */
  identified(hello: Hello, wire: Connection, rest: Uint8Array): void
}

/** At most one line about those who were sent away in so many milliseconds. */
const COMPLAINT_MS = 10_000

/**
 * Keeps connections until they have said who they are: not for long, not too many, and nothing is believed yet. Members say it
 * at once, so a flood of others does not keep them out.
 */
export class PendingConnections {
  readonly #options: PendingConnectionsOptions
  /** Oldest first, each with what ends its time. */
  readonly #waiting = new Map<Connection, Cancel>()
  #pushedOut = 0
  #complainedAt = -Infinity
  /** Those who were sent away since the log heard of one. */
  #unmentioned = 0

  constructor(options: PendingConnectionsOptions) {
    this.#options = options
  }

  /** Connections that have not said who they are. */
  get size(): number {
    return this.#waiting.size
  }

  add(wire: Connection): void {
    const { clock, helloTimeoutMs, maxUnidentified } = this.#options
    if (this.#waiting.size >= maxUnidentified) this.#makeRoom()
    const reader = new HelloReader()
    const cancel = clock.after(helloTimeoutMs, 'hello of an election peer', () =>
      this.#dismiss(
        wire,
        `it did not say who it is within ${helloTimeoutMs} ms (${reader.received} bytes came)`,
      ),
    )
    this.#waiting.set(wire, cancel)
    wire.setHandler({
      data: (chunk) => {
        if (this.#waiting.has(wire)) this.#read(reader, wire, chunk)
      },
      drain() {},
      closed: () => this.#forget(wire),
    })
  }

  /** Ends all that wait. */
  close(): void {
    for (const [wire, cancel] of this.#waiting) {
      cancel()
      wire.destroy()
    }
    this.#waiting.clear()
  }

  /** Tells of somebody who was sent away. Whoever floods the port must not flood the log. */
  logRejection(wire: Connection, facts: object): void {
    const now = this.#options.clock.monotonic()
    if (now - this.#complainedAt < COMPLAINT_MS) {
      this.#unmentioned++
      return
    }
    const others = this.#unmentioned === 0 ? {} : { others: this.#unmentioned }
    this.#complainedAt = now
    this.#unmentioned = 0
    this.#options.logger.warn(
      { address: formatAddress(wire.remote), ...facts, ...others },
      'A connection to the election port was closed',
    )
  }

  #read(reader: HelloReader, wire: Connection, chunk: Uint8Array): void {
    try {
      const whole = reader.push(chunk)
      if (whole === undefined) return
      this.#forget(wire)
      this.#options.identified(whole.hello, wire, whole.rest)
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      this.#dismiss(wire, error.message)
    }
  }

  #dismiss(wire: Connection, reason: string): void {
    this.#forget(wire)
    this.logRejection(wire, { reason })
    wire.destroy()
  }

  #forget(wire: Connection): void {
    this.#waiting.get(wire)?.()
    this.#waiting.delete(wire)
    this.#calm()
  }

  /** The oldest one goes. One line when it begins and one when it is over. */
  #makeRoom(): void {
    const [oldest] = this.#waiting.keys()
    if (this.#pushedOut++ === 0)
      this.#options.logger.warn(
        { address: formatAddress(oldest!.remote), waiting: this.#waiting.size },
        'Too many connections to the election port have not said who they are; the oldest give way for now',
      )
    this.#waiting.get(oldest!)?.()
    this.#waiting.delete(oldest!)
    oldest!.destroy()
  }

  #calm(): void {
    if (this.#pushedOut === 0 || this.#waiting.size > this.#options.maxUnidentified / 2) return
    this.#options.logger.info(
      { closed: this.#pushedOut },
      'Connections to the election port say who they are again',
    )
    this.#pushedOut = 0
  }
}
