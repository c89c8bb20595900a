import type { Cancel, Clock } from '@zabra/runtime'
import type { Incarnation } from './process.ts'
import type { SimulatedWorld } from './world.ts'

/** The state of a machine's clocks. Change it with `setClockRate` and `jumpWallClock`. */
export interface ClockSkew {
  /** How far the wall clock is ahead of the world's clock. */
  offsetMs: number
  /** Milliseconds that pass on this machine per millisecond of the world. */
  rate: number
  /** When the rate was set, in world time, and the value of the monotonic clock at that time. */
  rateSetAtMs: number
  monotonicAtMs: number
}

/** Changes the rate of a machine's clocks from now on. */
export function setClockRate(clock: ClockSkew, nowMs: number, rate: number): void {
  clock.monotonicAtMs += (nowMs - clock.rateSetAtMs) * clock.rate
  clock.rateSetAtMs = nowMs
  clock.rate = rate
}

/** Moves a machine's wall clock, as an administrator does. The monotonic clock does not change. */
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
    // As platform timers do: whole milliseconds, at least one, so a timer may fire slightly early.
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
