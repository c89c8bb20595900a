import type { Cancel, Clock } from '@zabra/runtime'
import { noop } from '../noop.ts'

/** An entry with one due time. Setting it again replaces the time. */
export interface TimerEntry {
  /** Monotonic milliseconds, and the index in the heap, -1 for none. `TimerQueue` owns both. */
  dueAt: number
  heapIndex: number
  onDue(): void
}

/** Minimum delay after a platform timer that fired early; a clock may round smaller delays to zero. */
const MIN_REARM_MS = 0.01
const OVERDUE_MS = 1000

/**
 * Runs callbacks by one clock with a single platform timer. A process may hold thousands of clients, and a platform
 * timer with closures for each of them would cost more memory than the state of a heartbeat.
 */
export class TimerQueue {
  readonly #clock: Clock
  /** A binary min-heap by due time. */
  readonly #heap: TimerEntry[] = []
  #cancel: Cancel = noop
  /** When the platform timer fires. It may fire early, for an entry that was removed since. */
  #nextRunAt = Number.POSITIVE_INFINITY
  readonly #run = (): void => this.#runDue()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get size(): number {
    return this.#heap.length
  }

  set(entry: TimerEntry, due: number): void {
    if (entry.heapIndex >= 0) this.#remove(entry)
    entry.dueAt = due
    this.#heap.push(entry)
    this.#siftUp(entry, this.#heap.length - 1)
    // A platform timer that is long overdue was removed by fake timers in a test.
    if (due < this.#nextRunAt || this.#nextRunAt + OVERDUE_MS < this.#clock.monotonic())
      this.#arm(this.#heap[0]!.dueAt)
  }

  /** Does nothing for an entry that is not set. */
  clear(entry: TimerEntry): void {
    if (entry.heapIndex < 0) return
    this.#remove(entry)
    // An unused platform timer would keep the process alive.
    if (this.#heap.length === 0) this.#disarm()
  }

  #runDue(): void {
    this.#nextRunAt = Number.POSITIVE_INFINITY
    const now = this.#clock.monotonic()
    try {
      for (let first = this.#heap[0]; first !== undefined && first.dueAt <= now; first = this.#heap[0]) {
        this.#remove(first)
        first.onDue()
      }
    } finally {
      // Also after a callback throws: the other entries need the platform timer.
      const next = this.#heap[0]
      if (next !== undefined && next.dueAt < this.#nextRunAt) this.#arm(next.dueAt, MIN_REARM_MS)
    }
  }

  #arm(due: number, least = 0): void {
    this.#cancel()
    this.#nextRunAt = due
    const delay = Math.max(least, due - this.#clock.monotonic())
    this.#cancel = this.#clock.after(delay, 'heartbeat', this.#run)
  }

  #disarm(): void {
    this.#cancel()
    this.#cancel = noop
    this.#nextRunAt = Number.POSITIVE_INFINITY
  }

  #remove(entry: TimerEntry): void {
    const { heapIndex: index } = entry
    const last = this.#heap.pop()!
    entry.heapIndex = -1
    if (last === entry) return
    this.#siftUp(last, index)
    this.#siftDown(last)
  }

  /** Puts an entry at an index, moving up past entries with later due times. */
  #siftUp(entry: TimerEntry, index: number): void {
    const heap = this.#heap
    while (index > 0) {
      const parent = (index - 1) >> 1
      const otherEntry = heap[parent]!
      if (otherEntry.dueAt <= entry.dueAt) break
      heap[index] = otherEntry
      otherEntry.heapIndex = index
      index = parent
    }
    heap[index] = entry
    entry.heapIndex = index
  }

  #siftDown(entry: TimerEntry): void {
    const heap = this.#heap
    let { heapIndex: index } = entry
    for (;;) {
      const left = 2 * index + 1
      const right = left + 1
      const earlier = right < heap.length && heap[right]!.dueAt < heap[left]!.dueAt ? right : left
      const otherEntry = heap[earlier]
      if (otherEntry === undefined || otherEntry.dueAt >= entry.dueAt) break
      heap[index] = otherEntry
      otherEntry.heapIndex = index
      index = earlier
    }
    heap[index] = entry
    entry.heapIndex = index
  }
}

const known = new WeakMap<Clock, TimerQueue>()

/** Returns the timer queue of a clock, which all clients with that clock share. */
export function timerQueueOf(clock: Clock): TimerQueue {
  const existing = known.get(clock)
  if (existing !== undefined) return existing
  const created = new TimerQueue(clock)
  known.set(clock, created)
  return created
}
