import type { Cancel, Clock } from '@zabra/runtime'
import type { ProcessState, Scheduler } from './types.ts'

/** The clock of one process. */
export class SimulatedClock implements Clock {
  readonly #world: Scheduler
  readonly #owner: ProcessState

  constructor(world: Scheduler, owner: ProcessState) {
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
