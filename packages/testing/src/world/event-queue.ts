import type { ProcessState, ScheduledEvent } from './types.ts'

/** Events by time; events at the same time in the order in which they were scheduled. */
export class EventQueue {
  readonly #heap: ScheduledEvent[] = []
  #order = 0

  get peek(): ScheduledEvent | undefined {
    return this.#heap[0]
  }

  add(at: number, owner: ProcessState | undefined, kind: string, action: () => void): ScheduledEvent {
    const event: ScheduledEvent = { at, order: this.#order++, owner, kind, action }
    const heap = this.#heap
    let index = heap.length
    heap.push(event)
    while (index > 0) {
      const above = (index - 1) >> 1
      if (!before(event, heap[above]!)) break
      heap[index] = heap[above]!
      index = above
    }
    heap[index] = event
    return event
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
