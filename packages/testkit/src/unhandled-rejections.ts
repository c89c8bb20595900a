/** Collects the rejections that no code handles, each of which would end the process of a user, from `begin` to `end`. */
export class UnhandledRejections {
  #reasons: unknown[] = []
  readonly #note = (reason: unknown): void => void this.#reasons.push(reason)

  readonly begin = (): void => {
    this.#reasons = []
    process.on('unhandledRejection', this.#note)
  }

  readonly end = (): void => {
    process.off('unhandledRejection', this.#note)
  }

  /** Resolves to the reasons of all so far, once Node has reported those of this turn. */
  async reasons(): Promise<readonly unknown[]> {
    await new Promise((resolve) => setImmediate(resolve))
    return this.#reasons
  }
}
