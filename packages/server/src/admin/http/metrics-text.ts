import type { SlicedAnswers } from '../sliced-answers.ts'

const encoder = new TextEncoder()

/**
 * Makes the text of the metrics in several forms. Requests that arrive while a text of their form is being made share it: twenty scrapes at
 * once cost little more than one.
 */
export class MetricsText<Form> {
  readonly #answers: SlicedAnswers
  readonly #begin: (form: Form) => Promise<Iterable<string>>
  readonly #making = new Map<Form, Promise<Uint8Array>>()

  /** `begin` resolves to the pieces of a new text. */
  constructor(answers: SlicedAnswers, begin: (form: Form) => Promise<Iterable<string>>) {
    this.#answers = answers
    this.#begin = begin
  }

  /** Resolves to a text that has begun now, or not long ago. */
  async next(form: Form): Promise<Uint8Array> {
    const shared = this.#making.get(form)
    if (shared === undefined) {
      const making = this.#make(form).finally(() => this.#making.delete(form))
      this.#making.set(form, making)
      return making
    }
    const text = await shared
    // Sending a text takes a fifth of the time of making it, so not all requests are answered in one iteration of the event loop.
    return this.#answers.run(() => text)
  }

  async #make(form: Form): Promise<Uint8Array> {
    const chunks: string[] = []
    for await (const chunk of this.#answers.chunksOf(await this.#begin(form))) chunks.push(chunk)
    return encoder.encode(chunks.join(''))
  }
}
