/** Runs asynchronous operations one after the other, in the order of the calls. */
export class Mutex {
  #last: Promise<unknown> = Promise.resolve()

  /** Runs `operation` when all earlier ones have settled, and settles as it does. */
  run<T>(operation: () => Promise<T>): Promise<T> {
    const done = this.#last.then(operation)
    this.#last = done.catch(() => {})
    return done
  }
}
