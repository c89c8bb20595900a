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
    if (this.#busy) return
    this.#busy = true
    try {
      for (let next = this.#inputs.shift(); next !== undefined; next = this.#inputs.shift())
        this.perform(this.#options.step(next))
    } finally {
      this.#busy = false
    }
  }

  /** Does work that a direct call of the machine has returned. */
  perform(works: readonly Work[]): void {
    for (const work of works) {
      if (this.#stopped) return
      this.#options.perform(work)
    }
  }
}
