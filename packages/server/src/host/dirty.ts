/** Connections that are sent to in one turn. */
export const SENT_IN_A_TURN = 500
/** From so many on it can pay to write to them together. */
const MANY = 128

/** A connection that may have something to send. */
export interface Dirty {
  /** Whether it is on the list. */
  dirty: boolean
  /** Sends what is collected; it is not dirty any more. */
  flush(): void
}

export interface DirtyParts {
  /** Runs something in a later turn. */
  later(action: () => void): void
  /** Runs something that writes to many connections. */
  together(action: () => void): void
}

/**
 * The connections with something to send at the end of a turn. A change that very many are told of makes very many of them: some
 * of these wait for turns of their own, behind what has come in meanwhile, so that nobody else waits for all of them.
 */
export class DirtyList {
  readonly #parts: DirtyParts
  #now: Dirty[] = []
  readonly #waiting: Dirty[] = []

  constructor(parts: DirtyParts) {
    this.#parts = parts
  }

  mark(connection: Dirty): void {
    if (connection.dirty) return
    connection.dirty = true
    this.#now.push(connection)
  }

  /** Sends to all, or puts those off that are too many for one turn. */
  flush(): void {
    while (this.#now.length > 0) {
      const list = this.#now
      this.#now = []
      if (list.length > MANY) this.#putOff(list)
      else for (const connection of list) connection.flush()
    }
  }

  #putOff(list: Dirty[]): void {
    const isFirst = this.#waiting.length === 0
    for (const connection of list) this.#waiting.push(connection)
    if (isFirst) this.#flushSome()
  }

  #flushSome(): void {
    const some = this.#waiting.splice(0, SENT_IN_A_TURN)
    this.#parts.together(() => {
      for (const connection of some) connection.flush()
    })
    if (this.#waiting.length > 0) this.#parts.later(() => this.#flushSome())
  }
}
