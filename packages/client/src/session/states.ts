import type { ConnectionState, StateChange } from '../types.ts'
import { Stream } from '../stream.ts'

/** Nobody needs more history than this; who reads slower loses the oldest changes. */
const LIMIT = 1024

/** The one place that knows in which state a client is, and tells. */
export class States {
  #streams: Stream<StateChange>[] = []
  #last: StateChange = { state: 'connecting', previous: 'connecting', sessionEpoch: 1, order: 0 }
  readonly #told: (change: StateChange) => void

  constructor(told: (change: StateChange) => void) {
    this.#told = told
  }

  get state(): ConnectionState {
    return this.#last.state
  }

  /** The state is this from now on, for whoever reads it and then for whoever listens. */
  change(to: Omit<StateChange, 'previous'>): void {
    if (to.state === this.#last.state && to.sessionEpoch === this.#last.sessionEpoch) return
    this.#last = { ...to, previous: this.#last.state }
    this.#told(this.#last)
    for (const stream of this.#streams) stream.push(this.#last)
  }

  /** The current state, then each change. Ends with the client. */
  listen(): AsyncIterableIterator<StateChange> {
    const stream = new Stream<StateChange>(
      LIMIT,
      (waiting, change) => [...waiting.slice(1), change],
      () => void (this.#streams = this.#streams.filter((other) => other !== stream)),
    )
    stream.push(this.#last)
    if (this.#over) stream.end()
    else this.#streams.push(stream)
    return stream
  }

  #over = false

  end(): void {
    this.#over = true
    for (const stream of this.#streams) stream.end()
    this.#streams = []
  }
}
