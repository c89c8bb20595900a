import type { ConnectionState, StateChange } from '../types.ts'
import { Stream } from '../stream.ts'

/** Nobody needs more history than this; who reads slower loses the oldest changes. */
const LIMIT = 1024

interface Listener {
  readonly stream: Stream<StateChange>
  /** The view through which it listens. */
  readonly owner: object
}

const NOBODY: readonly Listener[] = []
const BEGINNING: StateChange = { state: 'connecting', previous: 'connecting', sessionEpoch: 1, order: 0 }

export interface StatesOwner {
  /** The state is another one; told before those who listen. */
  changed(change: StateChange): void
}

/** The one place that knows in which state a client is, and tells. */
export class States {
  #listeners = NOBODY
  #last = BEGINNING
  #opening: { resolve(): void; reject(error: unknown): void } | undefined
  readonly #owner: StatesOwner

  constructor(owner: StatesOwner) {
    this.#owner = owner
  }

  get state(): ConnectionState {
    return this.#last.state
  }

  /** The state is this from now on, for whoever reads it and then for whoever listens. The object is kept. */
  change(to: StateChange): void {
    if (to.state === this.#last.state && to.sessionEpoch === this.#last.sessionEpoch) return
    this.#last = to
    if (to.state === 'connected' || to.state === 'connectedReadOnly') {
      this.#opening?.resolve()
      this.#opening = undefined
    }
    this.#owner.changed(this.#last)
    for (const { stream } of this.#listeners) stream.push(this.#last)
  }

  /** Resolves with the first connection. Rejects with the reason when the client is finished before. */
  connected(): Promise<void> {
    return new Promise((resolve, reject) => (this.#opening = { resolve, reject }))
  }

  /** The current state, then each change. Ends with the client or the view; `last` is what there is for a view that has. */
  listen(owner: object, last?: Omit<StateChange, 'previous'>): AsyncIterableIterator<StateChange> {
    const stream = new Stream<StateChange>(
      LIMIT,
      (waiting, change) => [...waiting.slice(1), change],
      () => this.#left(stream),
    )
    stream.push(last === undefined ? this.#last : { ...last, previous: this.#last.state })
    if (this.#over || last !== undefined) stream.end()
    else this.#listeners = [...this.#listeners, { stream, owner }]
    return stream
  }

  /** Tells a last change to those who listen through some views, and nothing after it. */
  endOf(covers: (owner: object) => boolean, to: Omit<StateChange, 'previous'>): void {
    const last = { ...to, previous: this.#last.state }
    for (const { stream, owner } of this.#listeners) {
      if (!covers(owner)) continue
      stream.push(last)
      stream.end()
      this.#left(stream)
    }
  }

  #left(stream: Stream<StateChange>): void {
    const others = this.#listeners.filter((other) => other.stream !== stream)
    this.#listeners = others.length === 0 ? NOBODY : others
  }

  #over = false

  end(): void {
    this.#over = true
    this.#opening?.reject(this.#last.cause)
    this.#opening = undefined
    for (const { stream } of this.#listeners) stream.end()
    this.#listeners = NOBODY
  }
}
