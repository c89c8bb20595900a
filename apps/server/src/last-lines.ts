import type { LastLines } from '@zabra/runtime'

/** Lines that are kept, and the memory that they take in bytes. A character takes two at most. */
const MAX_LINES = 1000
const MAX_BYTES = 1 << 20
const MAX_CHARS = MAX_BYTES / 2
/** Characters of a line that are kept. */
const MAX_LINE = 16_384

/** Keeps the last lines of the log in a ring, for bundles of support. */
export class KeptLines implements LastLines {
  readonly bytes = MAX_BYTES
  readonly #lines: string[] = []
  /** The place of the oldest line. */
  #first = 0
  #count = 0
  #chars = 0

  add(line: string): void {
    const kept = line.length > MAX_LINE ? copyOfStart(line) : line
    if (this.#count === MAX_LINES) this.#dropFirst()
    this.#lines[(this.#first + this.#count) % MAX_LINES] = kept
    this.#count++
    this.#chars += kept.length
    while (this.#chars > MAX_CHARS) this.#dropFirst()
  }

  *[Symbol.iterator](): Generator<string> {
    for (let i = 0; i < this.#count; i++) yield this.#lines[(this.#first + i) % MAX_LINES]!.trimEnd()
  }

  #dropFirst(): void {
    this.#chars -= this.#lines[this.#first]!.length
    this.#lines[this.#first] = ''
    this.#first = (this.#first + 1) % MAX_LINES
    this.#count--
  }
}

/** A slice would keep all of the line. */
const copyOfStart = (line: string): string => Buffer.from(`${line.slice(0, MAX_LINE)}…`).toString()
