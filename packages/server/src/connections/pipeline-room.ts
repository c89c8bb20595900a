/** Bytes of all writes and syncs in flight at which connections wait: half of what a member may leave unread of another. */
const MAX_BYTES = 64 << 20

/** A connection whose requests may have to wait. */
export interface WaitingClient {
  readonly requests: { process(): void }
}

/**
 * Bounds the bytes of writes and syncs in flight: a follower forwards each to its leader with the identities of the client, and a leader
 * sends each write to its followers. Connections that find no room wait, and start their next requests in the order in which they came.
 */
export class PipelineRoom {
  readonly #runLater: (action: () => void) => void
  readonly #maxBytes: number
  readonly #waiting = new Set<WaitingClient>()
  #bytes = 0
  #willWake = false
  #isWaking = false

  /** `runLater` runs a function in a later turn. */
  constructor(runLater: (action: () => void) => void, maxBytes = MAX_BYTES) {
    this.#runLater = runLater
    this.#maxBytes = maxBytes
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
    if (this.#bytes < this.#maxBytes && (this.#isWaking || this.#waiting.size === 0)) return true
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
    if (this.#willWake || this.#waiting.size === 0 || this.#bytes >= this.#maxBytes) return
    this.#willWake = true
    this.#runLater(() => this.#wake())
  }

  #wake(): void {
    this.#willWake = false
    this.#isWaking = true
    for (const channel of this.#waiting) {
      if (this.#bytes >= this.#maxBytes) break
      // It is the last one if it waits again.
      this.#waiting.delete(channel)
      channel.requests.process()
    }
    this.#isWaking = false
  }
}
