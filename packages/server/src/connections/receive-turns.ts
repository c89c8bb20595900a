import { PauseReason, type ThrottledChannel } from './flow-control.ts'

/**
 * Bytes of one iteration of the event loop that all connections receive of requests that are not complete. The system holds up to some
 * MiB for each socket, and Node reads up to 2 MiB of each in one iteration: 900 kB of 300 sessions took 250 ms.
 */
const RECEIVED_BYTES = 2 << 20
/** Connections that have their turn in one iteration, and bytes that each of them receives in it. */
const AT_ONCE = 8
const SHARE_BYTES = RECEIVED_BYTES / AT_ONCE

export interface ReceiveTurnsOptions {
  /** Runs a function in the next iteration of the event loop. */
  readonly runLater: (action: () => void) => void
}

/**
 * Divides what the event loop receives between connections that are in the middle of long requests. When they have received enough in an
 * iteration, none of them is read until its turn: a few of them have theirs in each iteration, in order.
 */
export class ReceiveTurns {
  readonly #options: ReceiveTurnsOptions
  /** Connections in the middle of a request that are read. */
  readonly #receiving = new Set<ThrottledChannel>()
  /** Those that wait for their turn, in its order. */
  readonly #waiting = new Set<ThrottledChannel>()
  #bytes = 0
  /** The connection of the last read, and the bytes of its reads in a row. */
  #reader: ThrottledChannel | undefined
  #readerBytes = 0
  #isScheduled = false

  constructor(options: ReceiveTurnsOptions) {
    this.#options = options
  }

  /** The connections that are not read: their pings wait in the sockets. */
  get waiting(): Iterable<ThrottledChannel> {
    return this.#waiting
  }

  /** Counts a read. `isComplete` says that all requests in it were complete. */
  received(channel: ThrottledChannel, bytes: number, isComplete: boolean): void {
    if (isComplete) return void this.#receiving.delete(channel)
    this.#receiving.add(channel)
    this.#bytes += bytes
    this.#readerBytes = bytes + (this.#reader === channel ? this.#readerBytes : 0)
    this.#reader = channel
    this.#schedule()
    if (this.#bytes >= RECEIVED_BYTES) for (const one of this.#receiving) this.#wait(one)
    else if (this.#waiting.size > 0 && this.#readerBytes >= SHARE_BYTES) this.#wait(channel)
  }

  #wait(channel: ThrottledChannel): void {
    this.#receiving.delete(channel)
    this.#waiting.add(channel)
    channel.flow.pause(PauseReason.receive)
  }

  remove(channel: ThrottledChannel): void {
    this.#receiving.delete(channel)
    this.#waiting.delete(channel)
    if (this.#reader === channel) this.#reader = undefined
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    this.#options.runLater(() => {
      this.#isScheduled = false
      this.#bytes = this.#readerBytes = 0
      this.#reader = undefined
      let left = AT_ONCE
      for (const one of this.#waiting) {
        if (left-- === 0) break
        this.#waiting.delete(one)
        this.#receiving.add(one)
        one.flow.resume(PauseReason.receive)
      }
      if (this.#waiting.size > 0) this.#schedule()
    })
  }
}
