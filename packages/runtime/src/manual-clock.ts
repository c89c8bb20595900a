import type { Cancel, Clock } from './clock.ts'

interface Timer {
  readonly at: number
  readonly name: string
  readonly action: () => void
}

/**
 * A clock that a test advances. Timers run in the order of their times, and of their creation where these are equal, so a test is
 * reproducible.
 */
export class ManualClock implements Clock {
  #wall: number
  #monotonic: number
  #timers: Timer[] = []
  #immediates: (() => void)[] = []

  /** `wall` in milliseconds since 1970, `monotonic` in milliseconds since an arbitrary start. */
  constructor({ wall = 1_700_000_000_000, monotonic = 1000 }: { wall?: number; monotonic?: number } = {}) {
    this.#wall = wall
    this.#monotonic = monotonic
  }

  wall(): number {
    return this.#wall
  }

  monotonic(): number {
    return this.#monotonic
  }

  after(delayMs: number, name: string, action: () => void): Cancel {
    const timer = { at: this.#monotonic + Math.max(0, delayMs), name, action }
    const later = this.#timers.findIndex(({ at }) => at > timer.at)
    this.#timers.splice(later === -1 ? this.#timers.length : later, 0, timer)
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer)
    }
  }

  immediate(action: () => void): void {
    this.#immediates.push(action)
  }

  afterMicrotasks(action: () => void): void {
    this.#immediates.push(action)
  }

  /** Advances the time. Runs the timers that become due, including new ones, each at its own time. */
  advance(ms: number): void {
    if (!(ms >= 0)) throw new RangeError(`Expected milliseconds from 0 up, got ${ms}`)
    const end = this.#monotonic + ms
    this.#runImmediates()
    for (let next = this.#timers[0]; next !== undefined && next.at <= end; next = this.#timers[0]) {
      this.#timers.shift()
      this.#go(Math.max(0, next.at - this.#monotonic))
      next.action()
      this.#runImmediates()
    }
    // An action may have advanced the clock itself, which never goes back.
    this.#go(Math.max(0, end - this.#monotonic))
  }

  /**
   * Lets time pass in which nothing runs, as for a process that is stopped. Then runs the timers that have become due, before
   * anything else, as an event loop does.
   */
  standStill(ms: number): void {
    this.#go(ms)
    const due = this.#timers.filter(({ at }) => at <= this.#monotonic)
    this.#timers = this.#timers.slice(due.length)
    for (const { action } of due) action()
  }

  /** Moves the wall clock alone, as an administrator does. */
  jumpWall(ms: number): void {
    this.#wall += ms
  }

  /** Returns the pending timers, the next one first. */
  pendingTimers(): { readonly name: string; readonly at: number }[] {
    return this.#timers.map(({ name, at }) => ({ name, at }))
  }

  /** Resolves when no microtask and no `immediate` action is left at this time. */
  async untilIdle(): Promise<void> {
    for (let quiet = 0; quiet < 100; quiet++) {
      if (this.#immediates.length > 0) quiet = 0
      this.#runImmediates()
      await Promise.resolve()
    }
  }

  #go(ms: number): void {
    this.#monotonic += ms
    this.#wall += ms
  }

  #runImmediates(): void {
    while (this.#immediates.length > 0) {
      const actions = this.#immediates
      this.#immediates = []
      for (const action of actions) action()
    }
  }
}
