/** Parts of the window; `rotate` begins a new one. */
const PARTS = 5

/** Keeps the least of the values of a window. */
export class LeastValue {
  readonly #parts: number[] = [Infinity]

  add(value: number): void {
    if (value < this.#parts[0]!) this.#parts[0] = value
  }

  /** The least value since five parts began; undefined without any. */
  get least(): number | undefined {
    const least = Math.min(...this.#parts)
    return least === Infinity ? undefined : least
  }

  /** Begins a new part of the window, and forgets the oldest one. */
  rotate(): void {
    this.#parts.unshift(Infinity)
    if (this.#parts.length > PARTS) this.#parts.pop()
  }

  clear(): void {
    this.#parts.splice(0, Infinity, Infinity)
  }
}
