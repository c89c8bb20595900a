import { ProtocolError } from '@zabra/protocol'

/** A state machine that uses neither clock, network nor disk. */
export interface StateMachine<Input, Work> {
  /** Processes an input. */
  step(input: Input): void
  /** Removes and returns the next work for the host, or returns undefined. */
  nextWork(): Work | undefined
}

export interface MailboxOptions<Input, Work> {
  readonly machine: StateMachine<Input, Work>
  readonly perform: (work: Work) => void
  /** Called with an error that no peer has caused: a bug, or a state that cannot be trusted. The mailbox has stopped. */
  readonly failed: (error: unknown) => void
  /** Runs the actions of one turn, so that what they write to clients is flushed at its end. */
  readonly runInBatch?: (action: () => void) => void
}

/**
 * Queues the inputs of a state machine: passes one input at a time, and performs all work that follows from it before the next one.
 * Inputs that arrive while work is performed are queued.
 */
export class Mailbox<Input, Work> {
  readonly #options: MailboxOptions<Input, Work>
  readonly #inputs: Input[] = []
  #isBusy = false
  #isStopped = false

  constructor(options: MailboxOptions<Input, Work>) {
    this.#options = options
  }

  get isStopped(): boolean {
    return this.#isStopped
  }

  /** Drops queued inputs and ignores later ones. */
  stop(): void {
    this.#isStopped = true
    this.#inputs.length = 0
  }

  /**
   * Runs an action in a turn of its own, then performs the work of the state machine that it has called directly. Rethrows a
   * `ProtocolError`, which a peer has caused; any other error fails the mailbox.
   */
  run(action: () => void): void {
    if (this.#isStopped) return
    let malformed: ProtocolError | undefined
    const { runInBatch, failed } = this.#options
    const guarded = (): void => {
      try {
        action()
      } catch (error) {
        if (!(error instanceof ProtocolError)) throw error
        malformed = error
      }
      this.drain()
    }
    try {
      if (runInBatch === undefined) guarded()
      else runInBatch(guarded)
    } catch (error) {
      this.stop()
      failed(error)
    }
    // The function above may have set it.
    if ((malformed as ProtocolError | undefined) !== undefined) throw malformed as unknown as ProtocolError
  }

  /** Passes one input to the state machine, in a turn of its own. */
  post(input: Input): void {
    this.run(() => this.enqueue(input))
  }

  /** Passes one input to the state machine within the current turn. */
  enqueue(input: Input): void {
    if (this.#isStopped) return
    this.#inputs.push(input)
    this.drain()
  }

  /**
   * Performs all work of the state machine, then passes queued inputs to it. Called after a direct call of the state machine; does
   * nothing while work is performed, since that continues with the new work.
   */
  drain(): void {
    if (this.#isBusy || this.#isStopped) return
    const { machine, perform } = this.#options
    this.#isBusy = true
    try {
      do
        for (let work = machine.nextWork(); work !== undefined; work = machine.nextWork()) {
          perform(work)
          if (this.#isStopped) return
        }
      while (this.#stepNext())
    } finally {
      this.#isBusy = false
    }
  }

  /** Passes the next queued input to the state machine. Returns whether there was one. */
  #stepNext(): boolean {
    if (this.#inputs.length === 0) return false
    this.#options.machine.step(this.#inputs.shift()!)
    return true
  }
}

export interface SerialExecutorOptions {
  /** Runs the next jobs in a turn of their own, after a job that was asynchronous. */
  readonly resume: (action: () => void) => void
  /** Called when a job has failed. The jobs behind it do not run. */
  readonly failed: (error: unknown) => void
}

/** Runs jobs in order, each when the one before it is done; synchronously as long as no job returns a promise. */
export class SerialExecutor {
  readonly #options: SerialExecutorOptions
  readonly #jobs: (() => void | Promise<void>)[] = []
  #running: Promise<void> | undefined
  #isBusy = false
  #isStopped = false

  constructor(options: SerialExecutorOptions) {
    this.#options = options
  }

  /** Whether no job is running or queued. */
  get isIdle(): boolean {
    return !this.#isBusy
  }

  add(job: () => void | Promise<void>): void {
    if (this.#isStopped) return
    this.#jobs.push(job)
    if (!this.#isBusy) this.#run()
  }

  /** Drops queued jobs. Resolves when the running job has ended. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#jobs.length = 0
    await this.#running
  }

  #run(): void {
    this.#isBusy = true
    try {
      for (let job = this.#jobs.shift(); job !== undefined; job = this.#jobs.shift()) {
        const done = job()
        if (done === undefined) continue
        this.#running = done.then(
          () => this.#options.resume(() => this.#run()),
          (error: unknown) => this.#fail(error),
        )
        return
      }
      this.#isBusy = false
    } catch (error) {
      this.#fail(error)
    }
  }

  #fail(error: unknown): void {
    this.#isStopped = true
    this.#jobs.length = 0
    this.#isBusy = false
    this.#options.failed(error)
  }
}
