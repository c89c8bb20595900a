import type { SlicedAnswers } from '../sliced-answers.ts'

const encoder = new TextEncoder()

/** Makes the text of the metrics. Those who ask for it while it is being made share it: twenty scrapers at once cost little more than one. */
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
  next(): Promise<Uint8Array> {
    this.#making ??= this.#make().finally(() => (this.#making = undefined))
    return this.#making
  }

  async #make(): Promise<Uint8Array> {
    const chunks: string[] = []
    for await (const chunk of this.#answers.chunksOf(await this.#begin())) chunks.push(chunk)
    return encoder.encode(chunks.join(''))
  }
}
