import type { Cancel, Clock } from '@zabra/runtime'
import { nothing } from '../nothing.ts'

/** Something that falls due once. One that is set already is moved by setting it again. */
export interface Due {
  /** Monotonic milliseconds, and the place among all that wait: both belong to `DueTimes`, which -1 says is none. */
  due: number
  place: number
  fallDue(): void
}

/** A timer that came a little early is not set again for less than this, which a clock may round away. */
const SHORTEST_MS = 0.01
const LATE_MS = 1000

/**
 * What waits for its time on one clock, behind a single timer: a process may hold thousands of clients, and a timer for
 * each of them with what it calls and what cancels it costs more than all that a heartbeat has to know.
 */
export class DueTimes {
  readonly #clock: Clock
  /** A binary heap by time: nobody waits longer than both that stand at twice its place. */
  readonly #waiting: Due[] = []
  #cancel: Cancel = nothing
  /** When the timer runs. It may run early, for something that was taken out since. */
  #runs = Number.POSITIVE_INFINITY
  readonly #run = (): void => this.#settle()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get size(): number {
    return this.#waiting.length
  }

  set(one: Due, due: number): void {
    if (one.place >= 0) this.#takeOut(one)
    one.due = due
    this.#waiting.push(one)
    this.#rise(one, this.#waiting.length - 1)
    // A timer that is long overdue was taken away by whoever plays with those of the process.
    if (due < this.#runs || this.#runs + LATE_MS < this.#clock.monotonic()) this.#arm(this.#waiting[0]!.due)
  }

  /** Nothing happens for one that is not set. */
  clear(one: Due): void {
    if (one.place < 0) return
    this.#takeOut(one)
    // A timer that nobody needs would keep the process alive.
    if (this.#waiting.length === 0) this.#disarm()
  }

  #settle(): void {
    this.#runs = Number.POSITIVE_INFINITY
    const now = this.#clock.monotonic()
    try {
      for (let first = this.#waiting[0]; first !== undefined && first.due <= now; first = this.#waiting[0]) {
        this.#takeOut(first)
        first.fallDue()
      }
    } finally {
      // Also when one of them throws: the others wait for the same timer.
      const next = this.#waiting[0]
      if (next !== undefined && next.due < this.#runs) this.#arm(next.due, SHORTEST_MS)
    }
  }

  #arm(due: number, least = 0): void {
    this.#cancel()
    this.#runs = due
    const delay = Math.max(least, due - this.#clock.monotonic())
    this.#cancel = this.#clock.after(delay, 'heartbeat', this.#run)
  }

  #disarm(): void {
    this.#cancel()
    this.#cancel = nothing
    this.#runs = Number.POSITIVE_INFINITY
  }

  #takeOut(one: Due): void {
    const { place } = one
    const last = this.#waiting.pop()!
    one.place = -1
    if (last === one) return
    this.#rise(last, place)
    this.#sink(last)
  }

  /** Puts one into a place, and those before it behind it that fall due later. */
  #rise(one: Due, place: number): void {
    const waiting = this.#waiting
    while (place > 0) {
      const above = (place - 1) >> 1
      const other = waiting[above]!
      if (other.due <= one.due) break
      waiting[place] = other
      other.place = place
      place = above
    }
    waiting[place] = one
    one.place = place
  }

  #sink(one: Due): void {
    const waiting = this.#waiting
    let { place } = one
    for (;;) {
      const left = 2 * place + 1
      const right = left + 1
      const earlier = right < waiting.length && waiting[right]!.due < waiting[left]!.due ? right : left
      const other = waiting[earlier]
      if (other === undefined || other.due >= one.due) break
      waiting[place] = other
      other.place = place
      place = earlier
    }
    waiting[place] = one
    one.place = place
  }
}

const known = new WeakMap<Clock, DueTimes>()

/** What waits on a clock: one for all clients that go by it. */
export function dueTimesOf(clock: Clock): DueTimes {
  const there = known.get(clock)
  if (there !== undefined) return there
  const made = new DueTimes(clock)
  known.set(clock, made)
  return made
}
