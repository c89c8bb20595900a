import type { ConnectionState, StateChange } from '../types.ts'
import { AsyncQueue } from '../async-queue.ts'

/** A slow consumer loses the oldest changes beyond this number. */
const MAX_BUFFERED_CHANGES = 1024

interface Listener {
  readonly stream: AsyncQueue<StateChange>
  /** The client whose `states()` returned the stream. */
  readonly owner: object
}

const NO_LISTENERS: readonly Listener[] = []
const INITIAL_STATE: StateChange = {
  state: 'connecting',
  previous: 'connecting',
  sessionGeneration: 1,
  order: 0,
}

export interface StateCallbacks {
  /** Called with each change, before the listeners. */
  onStateChange(change: StateChange): void
}

/** Holds the connection state of a client and notifies listeners of changes. */
export class StateNotifier {
  #listeners = NO_LISTENERS
  #last = INITIAL_STATE
  #firstConnection: { resolve(): void; reject(error: unknown): void } | undefined
  readonly #callbacks: StateCallbacks

  constructor(callbacks: StateCallbacks) {
    this.#callbacks = callbacks
  }

  get state(): ConnectionState {
    return this.#last.state
  }

  /** Changes the state and notifies the listeners. Keeps the object. */
  change(to: StateChange): void {
    if (to.state === this.#last.state && to.sessionGeneration === this.#last.sessionGeneration) return
    this.#last = to
    if (to.state === 'connected' || to.state === 'connectedReadOnly') {
      this.#firstConnection?.resolve()
      this.#firstConnection = undefined
    }
    this.#callbacks.onStateChange(this.#last)
    for (const { stream } of this.#listeners) stream.push(this.#last)
  }

  /** Resolves with the first connection. Rejects with the reason when the client closes before. */
  firstConnection(): Promise<void> {
    return new Promise((resolve, reject) => (this.#firstConnection = { resolve, reject }))
  }

  /**
   * Returns a stream of the current state and each change. It ends with the client; for a client that is closed it
   * yields only `last`.
   */
  listen(owner: object, last?: Omit<StateChange, 'previous'>): AsyncIterableIterator<StateChange> {
    const stream = new AsyncQueue<StateChange>(
      MAX_BUFFERED_CHANGES,
      (waiting, change) => [...waiting.slice(1), change],
      () => this.#remove(stream),
    )
    stream.push(last === undefined ? this.#last : { ...last, previous: this.#last.state })
    if (this.#hasEnded || last !== undefined) stream.end()
    else this.#listeners = [...this.#listeners, { stream, owner }]
    return stream
  }

  /** Sends a last change to the listeners of the matching clients, and ends their streams. */
  endFor(matches: (owner: object) => boolean, to: Omit<StateChange, 'previous'>): void {
    const last = { ...to, previous: this.#last.state }
    for (const { stream, owner } of this.#listeners) {
      if (!matches(owner)) continue
      stream.push(last)
      stream.end()
      this.#remove(stream)
    }
  }

  #remove(stream: AsyncQueue<StateChange>): void {
    const others = this.#listeners.filter((other) => other.stream !== stream)
    this.#listeners = others.length === 0 ? NO_LISTENERS : others
  }

  #hasEnded = false

  end(): void {
    this.#hasEnded = true
    this.#firstConnection?.reject(this.#last.cause)
    this.#firstConnection = undefined
    for (const { stream } of this.#listeners) stream.end()
    this.#listeners = NO_LISTENERS
  }
}
