import { ProtocolError } from '@zabra/protocol'
import type { Clock, Connection, Logger } from '@zabra/runtime'
import { HelloReader, printAddress, type Hello } from './hello.ts'

/** What a doorkeeper needs. */
export interface DoorkeeperOptions {
  readonly clock: Clock
  readonly logger: Logger
  /** Connections that have not said who they are: more than these are not let in. */
  readonly maxUnidentified: number
  /** How long one may take to say it. */
  readonly helloTimeoutMs: number
  /** Somebody has introduced itself; `rest` came behind its hello. The connection is the receiver's from now on. */
  identified(hello: Hello, wire: Connection, rest: Uint8Array): void
}

/** Keeps connections until they have said who they are: not for long, not too many, and nothing is believed yet. */
export class Doorkeeper {
  readonly #options: DoorkeeperOptions
  readonly #waiting = new Set<Connection>()
  #refused = 0

  constructor(options: DoorkeeperOptions) {
    this.#options = options
  }

  /** Connections that have not said who they are. */
  get waiting(): number {
    return this.#waiting.size
  }

  admit(wire: Connection): void {
    const { clock, helloTimeoutMs, maxUnidentified } = this.#options
    if (this.#waiting.size >= maxUnidentified) return this.#refuse(wire)
    this.#waiting.add(wire)
    const reader = new HelloReader()
    const cancel = clock.after(helloTimeoutMs, 'hello of an election peer', () =>
      this.#dismiss(
        wire,
        `it did not say who it is within ${helloTimeoutMs} ms (${reader.received} bytes came)`,
      ),
    )
    wire.listen({
      data: (chunk) => {
        if (this.#waiting.has(wire)) this.#read(reader, wire, chunk, cancel)
      },
      drain() {},
      closed: () => {
        cancel()
        this.#waiting.delete(wire)
        this.#calm()
      },
    })
  }

  /** Ends all that wait. */
  close(): void {
    for (const wire of this.#waiting) wire.destroy()
    this.#waiting.clear()
  }

  #read(reader: HelloReader, wire: Connection, chunk: Uint8Array, cancel: () => void): void {
    try {
      const whole = reader.push(chunk)
      if (whole === undefined) return
      cancel()
      this.#waiting.delete(wire)
      this.#calm()
      this.#options.identified(whole.hello, wire, whole.rest)
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      cancel()
      this.#dismiss(wire, error.message)
    }
  }

  #dismiss(wire: Connection, reason: string): void {
    this.#waiting.delete(wire)
    this.#options.logger.warn(
      { address: printAddress(wire.remote), reason },
      'A connection to the election port was closed',
    )
    wire.destroy()
  }

  /** One line when it begins and one when it is over: whoever floods the port must not flood the log. */
  #refuse(wire: Connection): void {
    if (this.#refused++ === 0)
      this.#options.logger.warn(
        { address: printAddress(wire.remote), waiting: this.#waiting.size },
        'Too many connections to the election port have not said who they are; more are refused for now',
      )
    wire.listen({ data() {}, drain() {}, closed() {} })
    wire.destroy()
  }

  #calm(): void {
    if (this.#refused === 0 || this.#waiting.size > this.#options.maxUnidentified / 2) return
    this.#options.logger.info(
      { refused: this.#refused },
      'Connections to the election port are accepted again',
    )
    this.#refused = 0
  }
}
