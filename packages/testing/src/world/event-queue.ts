import type { Incarnation } from './process.ts'

/** Something that will happen. */
export interface ScheduledEvent {
  readonly at: number
  readonly order: number
  /** The process that it happens to; undefined for what belongs to the world, such as bytes on their way. */
  readonly owner: Incarnation | undefined
  readonly kind: string
  /** Undefined once it is cancelled. */
  action: (() => void) | undefined
}

/** What is to come, by time and, at one time, in the order in which it was asked for. */
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
