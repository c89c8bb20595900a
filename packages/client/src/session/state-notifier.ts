import type { ConnectionState, StateChange } from '../types.ts'
import { AsyncQueue } from '../async-queue.ts'

/** Nobody needs more history than this; who reads slower loses the oldest changes. */
const MAX_BUFFERED_CHANGES = 1024

interface Listener {
  readonly stream: AsyncQueue<StateChange>
  /** The view through which it listens. */
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
  /** The state is another one; told before those who listen. */
  onStateChange(change: StateChange): void
}

/** The one place that knows in which state a client is, and tells. */
export class StateNotifier {
  #listeners = NO_LISTENERS
  #last = INITIAL_STATE
  #firstConnection: { resolve(): void; reject(error: unknown): void } | undefined
  readonly #callbacks: StateCallbacks

  constructor(owner: StateCallbacks) {
    this.#callbacks = owner
  }

  get state(): ConnectionState {
    return this.#last.state
  }

  /** The state is this from now on, for whoever reads it and then for whoever listens. The object is kept. */
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

  /** Resolves with the first connection. Rejects with the reason when the client is finished before. */
  firstConnection(): Promise<void> {
    return new Promise((resolve, reject) => (this.#firstConnection = { resolve, reject }))
  }

  /** The current state, then each change. Ends with the client or the view; `last` is what there is for a view that has. */
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

  /** Tells a last change to those who listen through some views, and nothing after it. */
  endFor(covers: (owner: object) => boolean, to: Omit<StateChange, 'previous'>): void {
    const last = { ...to, previous: this.#last.state }
    for (const { stream, owner } of this.#listeners) {
      if (!covers(owner)) continue
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
