/** Searches earlier lines for the text that the user types, newest first. */
export class HistorySearch {
  readonly #lines: readonly string[]
  /** How many matches the user has passed over. */
  #skipped = 0

  /** `lines` are the earlier lines, newest first. */
  constructor(lines: readonly string[]) {
    this.#lines = [...lines]
  }

  /** Returns the line found for a text; undefined when no line contains it. */
  match(text: string): string | undefined {
    return this.#matches(text)[this.#skipped]
  }

  /** Goes on to the next older match, if there is one. */
  older(text: string): void {
    if (this.#skipped + 1 < this.#matches(text).length) this.#skipped++
  }

  /** Begins at the newest match again, for another text. */
  restart(): void {
    this.#skipped = 0
  }

  prompt(text: string): string {
    return `history (${this.match(text) ?? 'no match'}): `
  }

  #matches(text: string): readonly string[] {
    return [...new Set(this.#lines.filter((line) => line.includes(text)))]
  }
}
