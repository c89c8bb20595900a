/** Connections that are told of changes in one turn. */
export const NOTIFIED_PER_TURN = 500
/** From so many on it can pay to write to them together. */
const MANY = 128

/** A connection that may have something to send. The list keeps what it knows of it there. */
export interface Flushable {
  /** Whether it is sent to at the end of the turn. */
  isFlushQueued: boolean
  /** Whether it is among those that are told of a change, or wait for it. */
  isNotifyQueued: boolean
  /** Sends what is collected. */
  flush(): void
}

export interface FlushQueueOptions {
  /** Runs something in a later turn. */
  runLater(action: () => void): void
  /** Runs something that writes to many connections. */
  together(action: () => void): void
}

/**
 * The connections with something to send at the end of a turn. A change that very many are told of makes very many of them: some
 * of these wait for turns of their own, behind what has come in meanwhile, so that nobody who has asked waits for all of them.
 */
export class FlushQueue {
  readonly #parts: FlushQueueOptions
  #now: Flushable[] = []
  #told: Flushable[] = []
  readonly #waiting: Flushable[] = []

  constructor(parts: FlushQueueOptions) {
    this.#parts = parts
  }

  /** Has a connection be sent to at the end of the turn, with what it waits to be told. */
  add(connection: Flushable): void {
    if (connection.isFlushQueued) return
    connection.isFlushQueued = true
    this.#now.push(connection)
  }

  /** The same for one that is told of a change and has not asked: it may wait behind others. */
  notify(connection: Flushable): void {
    if (connection.isFlushQueued || connection.isNotifyQueued) return
    connection.isNotifyQueued = true
    this.#told.push(connection)
  }

  /** Sends to all, or puts those off that are too many to be told in one turn. */
  flush(): void {
    while (this.#now.length + this.#told.length > 0) {
      const [now, told] = [this.#now, this.#told]
      this.#now = []
      this.#told = []
      if (told.length > MANY) this.#putOff(told)
      else this.#sendTold(told)
      this.#send(now)
    }
  }

  #putOff(list: readonly Flushable[]): void {
    const isFirst = this.#waiting.length === 0
    for (const connection of list) this.#waiting.push(connection)
    if (isFirst) this.#sendSome()
  }

  #sendSome(): void {
    this.#sendTold(this.#waiting.splice(0, NOTIFIED_PER_TURN))
    if (this.#waiting.length > 0) this.#parts.runLater(() => this.#sendSome())
  }

  #sendTold(list: readonly Flushable[]): void {
    for (const connection of list) connection.isNotifyQueued = false
    this.#send(list)
  }

  #send(list: readonly Flushable[]): void {
    const flush = (): void => {
      for (const connection of list) {
        connection.isFlushQueued = false
        connection.flush()
      }
    }
    if (list.length > MANY) this.#parts.together(flush)
    else flush()
  }
}
