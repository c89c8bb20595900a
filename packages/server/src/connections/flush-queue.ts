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
  #replying: Flushable[] = []
  #notifying: Flushable[] = []
  readonly #backlog: Flushable[] = []

  /** `runLater` runs a function in a later turn. */
  constructor(runLater: (action: () => void) => void) {
    this.#runLater = runLater
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
    this.#notifying.push(connection)
  }

  /** Flushes the queued connections, or the first slice of them when a change has notified too many for one turn. */
  flush(): void {
    while (this.#replying.length + this.#notifying.length > 0) {
      const replying = this.#replying
      const notifying = this.#notifying
      this.#replying = []
      this.#notifying = []
      if (notifying.length > FLUSHED_AT_ONCE) this.#flushInSlices(notifying)
      else flushNotified(notifying)
      flushAll(replying)
    }
  }

  #flushInSlices(connections: readonly Flushable[]): void {
    const isFirst = this.#backlog.length === 0
    for (const connection of connections) this.#backlog.push(connection)
    if (isFirst) this.#flushSlice()
  }

  #flushSlice(): void {
    flushNotified(this.#backlog.splice(0, NOTIFIED_PER_TURN))
    if (this.#backlog.length > 0) this.#runLater(() => this.#flushSlice())
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
