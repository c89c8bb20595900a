import type { Cancel, Clock } from '@zabra/runtime'
import type { Incarnation } from './process.ts'
import type { World } from './world.ts'

/** How a machine's clocks go. Change them through `setRate` and `jumpWall`. */
export interface ClockFaults {
  /** The wall clock is this far ahead of the world's. */
  offsetMs: number
  /** Milliseconds of this machine in one of the world. */
  rate: number
  /** When the rate was set, in the world's time, and what the monotonic clock showed then. */
  since: number
  monotonicAt: number
}

/** Makes a machine's clock go faster or slower from now on. */
export function setRate(clock: ClockFaults, nowMs: number, rate: number): void {
  clock.monotonicAt += (nowMs - clock.since) * clock.rate
  clock.since = nowMs
  clock.rate = rate
}

/** Sets a machine's wall clock, as an administrator does. Its monotonic clock does not notice. */
export function jumpWall(clock: ClockFaults, ms: number): void {
  clock.offsetMs += ms
}

/** The clock of one process. */
export class SimulatedClock implements Clock {
  readonly #world: World
  readonly #owner: Incarnation

  constructor(world: World, owner: Incarnation) {
    this.#world = world
    this.#owner = owner
  }

  wall(): number {
    const { offsetMs } = this.#owner.host.clock
    return 1_700_000_000_000 + this.monotonic() + offsetMs
  }

  monotonic(): number {
    const { since, rate, monotonicAt } = this.#owner.host.clock
    return monotonicAt + (this.#world.now - since) * rate
  }

  after(delayMs: number, name: string, action: () => void): Cancel {
    // As the platform's timers do it: whole milliseconds, one at least, so that a timer may come a little early.
    const delay = Math.max(1, Math.trunc(delayMs)) / this.#owner.host.clock.rate
    const timer = this.#world.later(delay, this.#owner, name, action)
    return () => {
      timer.action = undefined
    }
  }

  soon(action: () => void): void {
    this.#world.later(0, this.#owner, 'soon', action)
  }

  afterPromises(action: () => void): void {
    this.#world.afterPromises(this.#owner, action)
  }
}
