import type { SlicedAnswers } from '../sliced-answers.ts'

const encoder = new TextEncoder()

/** Makes the text of the metrics. Requests that arrive while it is being made share it: twenty scrapes at once cost little more than one. */
export class MetricsText {
  readonly #answers: SlicedAnswers
  readonly #begin: () => Promise<Iterable<string>>
  #making: Promise<Uint8Array> | undefined

  /** `begin` resolves to the pieces of a new text. */
  constructor(answers: SlicedAnswers, begin: () => Promise<Iterable<string>>) {
    this.#answers = answers
    this.#begin = begin
  }

  /** Resolves to a text that has begun now, or not long ago. */
  async next(): Promise<Uint8Array> {
    const making = this.#making
    if (making === undefined) {
      this.#making = this.#make().finally(() => (this.#making = undefined))
      return this.#making
    }
    const text = await making
    // Sending a text takes a fifth of the time of making it, so not all requests are answered in one iteration of the event loop.
    return this.#answers.run(() => text)
  }

  async #make(): Promise<Uint8Array> {
    const chunks: string[] = []
    for await (const chunk of this.#answers.chunksOf(await this.#begin())) chunks.push(chunk)
    return encoder.encode(chunks.join(''))
  }
}
