import type { Clock } from '@zabra/runtime'

/** Numbers the requests to a leader, and passes each answer to the request with its number. */
export class PendingAnswers<Answer extends { readonly number: number }> {
  readonly #clock: Pick<Clock, 'after'>
  readonly #timeoutMs: number
  readonly #name: string
  #nextNumber = 1
  readonly #pending = new Map<number, (answer: Answer | string) => void>()

  /** `timeoutMs`: the time for an answer. `name` is that of its timers. */
  constructor(clock: Pick<Clock, 'after'>, timeoutMs: number, name: string) {
    this.#clock = clock
    this.#timeoutMs = timeoutMs
    this.#name = name
  }

  /** Calls `send` with the number of a request, and `settled` once: with the answer, or with why there is none. */
  request(send: (number: number) => void, settled: (answer: Answer | string) => void): void {
    const number = this.#nextNumber++
    const cancel = this.#clock.after(this.#timeoutMs, this.#name, () =>
      this.#settle(number, `the leader has not answered within ${this.#timeoutMs} ms`),
    )
    this.#pending.set(number, (answer) => {
      cancel()
      settled(answer)
    })
    send(number)
  }

  /** Takes an answer. Ignores one that no request waits for. */
  answered(answer: Answer): void {
    this.#settle(answer.number, answer)
  }

  /** Settles all requests without an answer. */
  fail(reason: string): void {
    for (const number of this.#pending.keys()) this.#settle(number, reason)
  }

  #settle(number: number, answer: Answer | string): void {
    const settled = this.#pending.get(number)
    this.#pending.delete(number)
    settled?.(answer)
  }
}
