/** Counts time in half ticks: PINGs are sent every half tick, limits are in ticks. */
export class TickCounter {
  #halfTicks = 0

  /** Ticks so far. */
  get now(): number {
    return this.#halfTicks >> 1
  }

  /** Advances by half a tick. Returns whether that completes a tick. */
  advance(): boolean {
    this.#halfTicks++
    return this.#halfTicks % 2 === 0
  }
}
