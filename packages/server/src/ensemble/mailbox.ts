import { ProtocolError } from '@zabra/protocol'

export interface MailboxOptions<Input, Work> {
  readonly step: (input: Input) => readonly Work[]
  readonly perform: (work: Work) => void
  /** An error came out that is nobody's fault but ours. */
  readonly failed: (error: unknown) => void
  /** Runs what belongs to one turn, once there are clients whose replies leave at its end. */
  readonly runInBatch?: (action: () => void) => void
}

/**
 * Hands inputs to a machine one after the other: all work of one is done before the next one is looked at. What its work
 * brings about at once is an input of its own, behind the ones that wait.
 */
export class Mailbox<Input, Work> {
  readonly #options: MailboxOptions<Input, Work>
  readonly #inputs: Input[] = []
  /** Work that was returned while other work was performed. */
  readonly #pending: (readonly Work[])[] = []
  #busy = false
  #stopped = false

  constructor(options: MailboxOptions<Input, Work>) {
    this.#options = options
  }

  get stopped(): boolean {
    return this.#stopped
  }

  /** Nothing is handed in or done any more. */
  stop(): void {
    this.#stopped = true
    this.#inputs.length = 0
    this.#pending.length = 0
  }

  /** Runs something that belongs to the machine's side in a turn of its own. A `ProtocolError` of a peer passes through. */
  run(action: () => void): void {
    if (this.#stopped) return
    let malformed: ProtocolError | undefined
    const { runInBatch: within, failed } = this.#options
    const guarded = (): void => {
      try {
        action()
      } catch (error) {
        if (!(error instanceof ProtocolError)) throw error
        malformed = error
      }
    }
    try {
      if (within === undefined) guarded()
      else within(guarded)
    } catch (error) {
      this.stop()
      failed(error)
    }
    // The function above may have set it.
    if ((malformed as ProtocolError | undefined) !== undefined) throw malformed as unknown as ProtocolError
  }

  /** Hands in one input, in a turn. */
  post(input: Input): void {
    this.run(() => this.enqueue(input))
  }

  /** The same within a turn. */
  enqueue(input: Input): void {
    if (this.#stopped) return
    this.#inputs.push(input)
    if (!this.#busy) this.#drain()
  }

  /** Performs work that a direct call of the state machine has returned, after all work returned before. */
  perform(works: readonly Work[]): void {
    if (works.length === 0 || this.#stopped) return
    this.#pending.push(works)
    if (!this.#busy) this.#drain()
  }

  #drain(): void {
    this.#busy = true
    try {
      for (let works = this.#next(); works !== undefined; works = this.#next())
        for (const work of works) {
          if (this.#stopped) return
          this.#options.perform(work)
        }
    } finally {
      this.#busy = false
    }
  }

  /** Returns the work to perform next: that returned by direct calls, then that of the next input. */
  #next(): readonly Work[] | undefined {
    const works = this.#pending.shift()
    if (works !== undefined) return works
    const input = this.#inputs.shift()
    return input === undefined ? undefined : this.#options.step(input)
  }
}
