/** The time in which what repeats is counted, in milliseconds. */
export const WINDOW_MS = 10_000

/** Counts what repeats, by a key. */
export class Repetitions {
  /** The times of the last `WINDOW_MS`, by key. */
  readonly #times = new Map<string, number[]>()

  /** Counts one more at a time in milliseconds. Returns how many there were in the last `WINDOW_MS`. */
  add(key: string, at: number): number {
    let times = this.#times.get(key)
    if (times === undefined) this.#times.set(key, (times = []))
    times.push(at)
    while (times[0]! < at - WINDOW_MS) times.shift()
    return times.length
  }

  /** Counts a key from 0 again. */
  forget(key: string): void {
    this.#times.delete(key)
  }
}
