export interface SerialExecutorOptions {
  /** Runs the next jobs in a turn of their own, after one that had to be waited for. */
  readonly resume: (action: () => void) => void
  /** A job has failed; those behind it are not done. */
  readonly failed: (error: unknown) => void
}

/** Work that is done in order, each part when the one before it is done; at once as long as nothing has to be waited for. */
export class SerialExecutor {
  readonly #options: SerialExecutorOptions
  readonly #waiting: (() => void | Promise<void>)[] = []
  #running: Promise<void> | undefined
  #busy = false
  #stopped = false

  constructor(options: SerialExecutorOptions) {
    this.#options = options
  }

  /** Whether nothing is being done, nor waits. */
  get isIdle(): boolean {
    return !this.#busy
  }

  add(job: () => void | Promise<void>): void {
    if (this.#stopped) return
    this.#waiting.push(job)
    if (!this.#busy) this.#run()
  }

  /** What has not begun is not done any more. Resolves when nothing is being done. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#waiting.length = 0
    await this.#running
  }

  #run(): void {
    this.#busy = true
    try {
      for (let job = this.#waiting.shift(); job !== undefined; job = this.#waiting.shift()) {
        const done = job()
        if (done === undefined) continue
        this.#running = done.then(
          () => this.#options.resume(() => this.#run()),
          (error: unknown) => this.#fail(error),
        )
        return
      }
      this.#busy = false
    } catch (error) {
      this.#fail(error)
    }
  }

  #fail(error: unknown): void {
    this.#stopped = true
    this.#waiting.length = 0
    this.#busy = false
    this.#options.failed(error)
  }
}
