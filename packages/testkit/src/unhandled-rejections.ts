/** Collects the unhandled rejections from `begin` to `end`. Each would end the process of a user. */
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

  /** Waits until Node has reported the rejections of this turn. Resolves to all reasons so far. */
  async reasons(): Promise<readonly unknown[]> {
    await new Promise((resolve) => setImmediate(resolve))
    return this.#reasons
  }
}
