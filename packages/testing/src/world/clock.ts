import type { Cancel, Clock } from '@zabra/runtime'
import type { Incarnation } from './process.ts'
import type { SimulatedWorld } from './world.ts'

/** How a machine's clocks go. Change them through `setClockRate` and `jumpWallClock`. */
export interface ClockSkew {
  /** The wall clock is this far ahead of the world's. */
  offsetMs: number
  /** Milliseconds of this machine in one of the world. */
  rate: number
  /** When the rate was set, in the world's time, and what the monotonic clock showed then. */
  rateSetAtMs: number
  monotonicAtMs: number
}

/** Makes a machine's clock go faster or slower from now on. */
export function setClockRate(clock: ClockSkew, nowMs: number, rate: number): void {
  clock.monotonicAtMs += (nowMs - clock.rateSetAtMs) * clock.rate
  clock.rateSetAtMs = nowMs
  clock.rate = rate
}

/** Sets a machine's wall clock, as an administrator does. Its monotonic clock does not notice. */
export function jumpWallClock(clock: ClockSkew, ms: number): void {
  clock.offsetMs += ms
}

/** The clock of one process. */
export class SimulatedClock implements Clock {
  readonly #world: SimulatedWorld
  readonly #owner: Incarnation

  constructor(world: SimulatedWorld, owner: Incarnation) {
    this.#world = world
    this.#owner = owner
  }

  wall(): number {
    const { offsetMs } = this.#owner.host.clockSkew
    return 1_700_000_000_000 + this.monotonic() + offsetMs
  }

  monotonic(): number {
    const { rateSetAtMs, rate, monotonicAtMs } = this.#owner.host.clockSkew
    return monotonicAtMs + (this.#world.now - rateSetAtMs) * rate
  }

  after(delayMs: number, name: string, action: () => void): Cancel {
    // As the platform's timers do it: whole milliseconds, one at least, so that a timer may come a little early.
    const delay = Math.max(1, Math.trunc(delayMs)) / this.#owner.host.clockSkew.rate
    const timer = this.#world.schedule(delay, this.#owner, name, action)
    return () => {
      timer.action = undefined
    }
  }

  immediate(action: () => void): void {
    this.#world.schedule(0, this.#owner, 'soon', action)
  }

  afterMicrotasks(action: () => void): void {
    this.#world.afterPromises(this.#owner, action)
  }
}
