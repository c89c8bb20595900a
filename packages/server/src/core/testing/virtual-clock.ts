interface Event {
  readonly at: number
  readonly order: number
  readonly run: () => void
}

/**
 * A clock of simulated milliseconds that runs events in order of their time, and of their creation where times are equal.
 */
export class VirtualClock {
  now = 0
  #created = 0
  /** A binary heap. */
  readonly #events: Event[] = []

  /** Runs `run` after a delay. */
  after(ms: number, run: () => void): void {
    const event = { at: this.now + ms, order: ++this.#created, run }
    const heap = this.#events
    heap.push(event)
    for (let i = heap.length - 1; i > 0;) {
      const parent = (i - 1) >> 1
      if (isBefore(heap[parent]!, event)) break
      heap[i] = heap[parent]!
      heap[parent] = event
      i = parent
    }
  }

  /** Advances the time and runs all events that are due. Calls `afterEach` after each of them. */
  run(ms: number, afterEach: () => void = () => {}): void {
    const end = this.now + ms
    while (this.#events.length > 0 && this.#events[0]!.at <= end) {
      const { at, run } = this.#pop()
      this.now = at
      run()
      afterEach()
    }
    this.now = end
  }

  #pop(): Event {
    const heap = this.#events
    const first = heap[0]!
    const last = heap.pop()!
    if (heap.length === 0) return first
    let i = 0
    for (;;) {
      let child = 2 * i + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++
      if (isBefore(last, heap[child]!)) break
      heap[i] = heap[child]!
      i = child
    }
    heap[i] = last
    return first
  }
}

const isBefore = (a: Event, b: Event): boolean => a.at < b.at || (a.at === b.at && a.order < b.order)
