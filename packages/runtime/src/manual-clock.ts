import type { Cancel, Clock } from './clock.ts'

interface Timer {
  readonly at: number
  readonly name: string
  readonly action: () => void
}

/**
 * A clock that stands until it is told to go on. Timers run in the order of their times, and in the order in which they
 * were set when these are equal, so a test gives the same history each time.
 */
export class ManualClock implements Clock {
  #wall: number
  #monotonic: number
  #timers: Timer[] = []
  #soon: (() => void)[] = []

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
    this.#soon.push(action)
  }

  afterMicrotasks(action: () => void): void {
    this.#soon.push(action)
  }

  /** Advances the time. Runs the timers that become due, including new ones, each at its own time. */
  advance(ms: number): void {
    if (!(ms >= 0)) throw new RangeError(`Expected milliseconds from 0 up, got ${ms}`)
    const end = this.#monotonic + ms
    this.#runSoon()
    for (let next = this.#timers[0]; next !== undefined && next.at <= end; next = this.#timers[0]) {
      this.#timers.shift()
      this.#go(Math.max(0, next.at - this.#monotonic))
      next.action()
      this.#runSoon()
    }
    // An action may have advanced the clock itself, which never goes back.
    this.#go(Math.max(0, end - this.#monotonic))
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
      if (this.#soon.length > 0) quiet = 0
      this.#runSoon()
      await Promise.resolve()
    }
  }

  #go(ms: number): void {
    this.#monotonic += ms
    this.#wall += ms
  }

  #runSoon(): void {
    while (this.#soon.length > 0) {
      const actions = this.#soon
      this.#soon = []
      for (const action of actions) action()
    }
  }
}
