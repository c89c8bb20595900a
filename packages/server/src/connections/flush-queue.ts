import type { Histogram } from '../core/histogram.ts'

/** Connections that are notified in one turn of the event loop: a socket write costs 10 µs and more, so these hold it for 2 to 4 ms. */
export const NOTIFIED_PER_TURN = 200
/** A change that notifies at most this many connections is flushed at the end of its own turn. */
const FLUSHED_AT_ONCE = 128

/** A connection that may have buffered bytes. The flags belong to the queue. */
export interface Flushable {
  /** Whether the connection is flushed at the end of this turn. */
  isFlushQueued: boolean
  /** Whether the connection is queued because of a watch event. */
  isNotifyQueued: boolean
  /** Writes the buffered bytes to the socket. */
  flush(): void
}

/**
 * Holds the connections to flush at the end of a turn. A change with very many watchers queues very many connections: these are
 * flushed in slices, one in each turn of the event loop, so that requests which arrive meanwhile do not wait for all of them.
 */
export class FlushQueue {
  readonly #runLater: (action: () => void) => void
  readonly #now: () => number
  readonly #latency: Histogram | undefined
  #replying: Flushable[] = []
  #notifying: Flushable[] = []
  readonly #backlog: Flushable[] = []
  /** When those in the backlog were queued. */
  readonly #queuedAt: number[] = []
  /** When the first connection of this turn was queued because of an event. */
  #notifiedAt = 0

  /**
   * `runLater` runs a function in a later turn, `now` reads the monotonic clock. `latency` gets the milliseconds from an event until it
   * is written, for each connection that is not flushed for a reply as well.
   */
  constructor(runLater: (action: () => void) => void, now: () => number = () => 0, latency?: Histogram) {
    this.#runLater = runLater
    this.#now = now
    this.#latency = latency
  }

  /** Queues a connection with a reply for the end of this turn. Events that it has pending go out before the reply. */
  add(connection: Flushable): void {
    if (connection.isFlushQueued) return
    connection.isFlushQueued = true
    this.#replying.push(connection)
  }

  /** Queues a connection with a watch event and no reply: its flush may happen in a later turn. */
  notify(connection: Flushable): void {
    if (connection.isFlushQueued || connection.isNotifyQueued) return
    connection.isNotifyQueued = true
    if (this.#notifying.push(connection) === 1) this.#notifiedAt = this.#now()
  }

  /** Flushes the queued connections, or the first slice of them when a change has notified too many for one turn. */
  flush(): void {
    while (this.#replying.length + this.#notifying.length > 0) {
      const replying = this.#replying
      const notifying = this.#notifying
      this.#replying = []
      this.#notifying = []
      if (notifying.length > FLUSHED_AT_ONCE) this.#flushInSlices(notifying)
      else if (notifying.length > 0) {
        flushNotified(notifying)
        this.#record(notifying.length, () => this.#notifiedAt)
      }
      flushAll(replying)
    }
  }

  #flushInSlices(connections: readonly Flushable[]): void {
    const isFirst = this.#backlog.length === 0
    for (const connection of connections) {
      this.#backlog.push(connection)
      this.#queuedAt.push(this.#notifiedAt)
    }
    if (isFirst) this.#flushSlice()
  }

  #flushSlice(): void {
    const slice = this.#backlog.splice(0, NOTIFIED_PER_TURN)
    flushNotified(slice)
    const queuedAt = this.#queuedAt.splice(0, slice.length)
    this.#record(slice.length, (index) => queuedAt[index]!)
    if (this.#backlog.length > 0) this.#runLater(() => this.#flushSlice())
  }

  #record(count: number, queuedAt: (index: number) => number): void {
    if (this.#latency === undefined) return
    const now = this.#now()
    for (let index = 0; index < count; index++) this.#latency.add(Math.max(0, now - queuedAt(index)))
  }
}

function flushNotified(connections: readonly Flushable[]): void {
  for (const connection of connections) connection.isNotifyQueued = false
  flushAll(connections)
}

function flushAll(connections: readonly Flushable[]): void {
  for (const connection of connections) {
    connection.isFlushQueued = false
    connection.flush()
  }
}
