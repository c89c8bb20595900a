/** Work that takes a short time. */
export type Step = () => void

/** Runs steps that share the time of a turn of the event loop. Those that wait for a later turn have the next time, oldest first. */
export class TurnQueue {
  readonly #turnMs: number
  /** The most steps that have waited and run in one turn. */
  readonly #most: number
  readonly #waiting = new Set<Step>()
  /** When the time of this turn is used up; undefined before the first step of the turn. */
  #end: number | undefined

  constructor(turnMs: number, most = Infinity) {
    this.#turnMs = turnMs
    this.#most = most
  }

  /** Runs a step: in this turn if there is time, else in a later one behind those that wait. */
  run(step: Step): void {
    this.#end ??= this.#beginTurn()
    if (this.#waiting.size === 0 && performance.now() < this.#end) step()
    else this.#waiting.add(step)
  }

  /** Runs a step in a later turn, behind those that wait. */
  runLater(step: Step): void {
    this.#end ??= this.#beginTurn()
    this.#waiting.add(step)
  }

  /** Drops a step that waits. */
  drop(step: Step): void {
    this.#waiting.delete(step)
  }

  /** Returns when the time of this turn is used up. */
  #beginTurn(): number {
    setImmediate(() => this.#nextTurn())
    return performance.now() + this.#turnMs
  }

  #nextTurn(): void {
    this.#end = undefined
    if (this.#waiting.size === 0) return
    this.#end = this.#beginTurn()
    let left = this.#most
    for (const step of this.#waiting) {
      this.#waiting.delete(step)
      step()
      if (--left === 0 || performance.now() >= this.#end) return
    }
  }
}
