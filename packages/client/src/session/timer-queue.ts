import type { Cancel, Clock } from '@zabra/runtime'
import { noop } from '../noop.ts'

/** Something that falls due once. One that is set already is moved by setting it again. */
export interface TimerEntry {
  /** Monotonic milliseconds, and the place among all that wait: both belong to `TimerQueue`, which -1 says is none. */
  dueAt: number
  heapIndex: number
  onDue(): void
}

/** A timer that came a little early is not set again for less than this, which a clock may round away. */
const SHORTEST_MS = 0.01
const LATE_MS = 1000

/**
 * What waits for its time on one clock, behind a single timer: a process may hold thousands of clients, and a timer for
 * each of them with what it calls and what cancels it costs more than all that a heartbeat has to know.
 */
export class TimerQueue {
  readonly #clock: Clock
  /** A binary heap by time: nobody waits longer than both that stand at twice its place. */
  readonly #heap: TimerEntry[] = []
  #cancel: Cancel = noop
  /** When the timer runs. It may run early, for something that was taken out since. */
  #nextRunAt = Number.POSITIVE_INFINITY
  readonly #run = (): void => this.#runDue()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get size(): number {
    return this.#heap.length
  }

  set(one: TimerEntry, due: number): void {
    if (one.heapIndex >= 0) this.#remove(one)
    one.dueAt = due
    this.#heap.push(one)
    this.#siftUp(one, this.#heap.length - 1)
    // A timer that is long overdue was taken away by whoever plays with those of the process.
    if (due < this.#nextRunAt || this.#nextRunAt + LATE_MS < this.#clock.monotonic())
      this.#arm(this.#heap[0]!.dueAt)
  }

  /** Nothing happens for one that is not set. */
  clear(one: TimerEntry): void {
    if (one.heapIndex < 0) return
    this.#remove(one)
    // A timer that nobody needs would keep the process alive.
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
      // Also when one of them throws: the others wait for the same timer.
      const next = this.#heap[0]
      if (next !== undefined && next.dueAt < this.#nextRunAt) this.#arm(next.dueAt, SHORTEST_MS)
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

  #remove(one: TimerEntry): void {
    const { heapIndex: place } = one
    const last = this.#heap.pop()!
    one.heapIndex = -1
    if (last === one) return
    this.#siftUp(last, place)
    this.#siftDown(last)
  }

  /** Puts one into a place, and those before it behind it that fall due later. */
  #siftUp(one: TimerEntry, place: number): void {
    const waiting = this.#heap
    while (place > 0) {
      const above = (place - 1) >> 1
      const other = waiting[above]!
      if (other.dueAt <= one.dueAt) break
      waiting[place] = other
      other.heapIndex = place
      place = above
    }
    waiting[place] = one
    one.heapIndex = place
  }

  #siftDown(one: TimerEntry): void {
    const waiting = this.#heap
    let { heapIndex: place } = one
    for (;;) {
      const left = 2 * place + 1
      const right = left + 1
      const earlier = right < waiting.length && waiting[right]!.dueAt < waiting[left]!.dueAt ? right : left
      const other = waiting[earlier]
      if (other === undefined || other.dueAt >= one.dueAt) break
      waiting[place] = other
      other.heapIndex = place
      place = earlier
    }
    waiting[place] = one
    one.heapIndex = place
  }
}

const known = new WeakMap<Clock, TimerQueue>()

/** What waits on a clock: one for all clients that go by it. */
export function timerQueueOf(clock: Clock): TimerQueue {
  const there = known.get(clock)
  if (there !== undefined) return there
  const made = new TimerQueue(clock)
  known.set(clock, made)
  return made
}
