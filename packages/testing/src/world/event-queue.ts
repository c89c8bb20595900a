import type { Incarnation } from './process.ts'

/** An event in the queue. */
export interface ScheduledEvent {
  readonly at: number
  readonly order: number
  /** The process that the event belongs to; undefined for events of the world, such as packets in flight. */
  readonly owner: Incarnation | undefined
  readonly kind: string
  /** Undefined once the event is cancelled. */
  action: (() => void) | undefined
}

/** Events by time; events at the same time in the order in which they were scheduled. */
export class EventQueue {
  readonly #heap: ScheduledEvent[] = []
  #order = 0

  get size(): number {
    return this.#heap.length
  }

  get peek(): ScheduledEvent | undefined {
    return this.#heap[0]
  }

  add(at: number, to: Incarnation | undefined, kind: string, action: () => void): ScheduledEvent {
    const happening: ScheduledEvent = { at, order: this.#order++, owner: to, kind, action }
    const heap = this.#heap
    let index = heap.length
    heap.push(happening)
    while (index > 0) {
      const above = (index - 1) >> 1
      if (!before(happening, heap[above]!)) break
      heap[index] = heap[above]!
      index = above
    }
    heap[index] = happening
    return happening
  }

  pop(): ScheduledEvent | undefined {
    const heap = this.#heap
    const first = heap[0]
    const last = heap.pop()
    if (first === undefined || heap.length === 0) return first
    let index = 0
    for (;;) {
      let child = 2 * index + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && before(heap[child + 1]!, heap[child]!)) child++
      if (!before(heap[child]!, last!)) break
      heap[index] = heap[child]!
      index = child
    }
    heap[index] = last!
    return first
  }
}

function before(a: ScheduledEvent, b: ScheduledEvent): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order)
}
