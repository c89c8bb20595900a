import type { Clock } from '@zabra/runtime'

/**
 * Bytes of all writes and syncs in flight at which connections wait, those of all members together: half of what a member may leave unread
 * of another. A leader sends each follower the writes of all members.
 */
const MAX_BYTES = 64 << 20

/** Milliseconds of one turn for connections that waited; the one that has begun takes its own time. */
const WAKE_MS = 1.5

export interface PipelineRoomOptions {
  readonly clock: Pick<Clock, 'monotonic'>
  /** Runs a function in a later turn. */
  readonly runLater: (action: () => void) => void
  /** Bytes in flight at which connections wait; 64 MiB by default. */
  readonly maxBytes?: number
  /** Returns how many servers have a share of them; 1 by default. */
  readonly servers?: () => number
}

/** A connection whose requests may have to wait. */
export interface WaitingClient {
  readonly requests: { process(): void }
}

/**
 * Bounds the bytes of writes and syncs in flight: a follower forwards each to its leader with the identities of the client, and a leader
 * sends each write to its followers. Connections that find no room wait, and start their next requests in the order in which they came.
 */
export class PipelineRoom {
  readonly #clock: PipelineRoomOptions['clock']
  readonly #runLater: PipelineRoomOptions['runLater']
  readonly #maxBytes: number
  readonly #servers: () => number
  readonly #waiting = new Set<WaitingClient>()
  #bytes = 0
  #willWake = false
  /** Whether a connection that waited has its turn. */
  isWaking = false

  constructor({ clock, runLater, maxBytes = MAX_BYTES, servers = () => 1 }: PipelineRoomOptions) {
    this.#clock = clock
    this.#runLater = runLater
    this.#maxBytes = maxBytes
    this.#servers = servers
  }

  /** Bytes of the requests in flight. */
  get bytes(): number {
    return this.#bytes
  }

  /** Connections that wait. */
  get size(): number {
    return this.#waiting.size
  }

  /** Whether a connection may start a request. With false it waits, and processes its requests again when it is its turn. */
  admits(channel: WaitingClient): boolean {
    if (this.#hasRoom() && (this.isWaking || this.#waiting.size === 0)) return true
    this.#waiting.add(channel)
    return false
  }

  /** Counts the bytes of a request that has started. */
  take(bytes: number): void {
    this.#bytes += bytes
  }

  /** Counts requests no more: they have results, or their connection is closed. */
  release(bytes: number): void {
    this.#bytes -= bytes
    this.#wakeLater()
  }

  remove(channel: WaitingClient): void {
    this.#waiting.delete(channel)
  }

  #wakeLater(): void {
    if (this.#willWake || this.#waiting.size === 0 || !this.#hasRoom()) return
    this.#willWake = true
    this.#runLater(() => this.#wake())
  }

  #wake(): void {
    this.#willWake = false
    this.isWaking = true
    const end = this.#clock.monotonic() + WAKE_MS
    for (const channel of this.#waiting) {
      // It is the last one if it waits again.
      this.#waiting.delete(channel)
      channel.requests.process()
      if (!this.#hasRoom() || this.#clock.monotonic() >= end) break
    }
    this.isWaking = false
    this.#wakeLater()
  }

  #hasRoom(): boolean {
    return this.#bytes * this.#servers() < this.#maxBytes
  }
}
