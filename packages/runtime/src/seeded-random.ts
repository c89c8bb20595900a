import type { Random } from './random.ts'

/** The generator sfc32: 32 bits at a time, seeded with two numbers. Not for secrets. */
export class Sfc32 {
  #a: number
  #b: number
  #c = 0x243f6a88
  #counter = 1

  /** Skips the first `skipped` numbers, which still resemble the seed. */
  constructor(a: number, b: number, skipped: number) {
    this.#a = a >>> 0
    this.#b = b >>> 0
    for (let i = 0; i < skipped; i++) this.next()
  }

  /** Returns an integer from 0 to 2^32 - 1. */
  next(): number {
    const sum = (this.#a + this.#b + this.#counter++) | 0
    this.#a = this.#b ^ (this.#b >>> 9)
    this.#b = (this.#c + (this.#c << 3)) | 0
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0
    return sum >>> 0
  }
}

/** Random numbers determined by a seed, for runs that must be reproducible. Not for secrets. */
export class SeededRandom implements Random {
  readonly #source: Sfc32

  constructor(seed: number) {
    this.#source = new Sfc32(seed, 0x9e3779b9, 16)
  }

  below(limit: number): number {
    if (!Number.isInteger(limit) || limit < 1 || limit > 2 ** 32) {
      throw new RangeError(`Expected a limit from 1 to 2^32, got ${limit}`)
    }
    // Numbers above the last multiple of the limit would bias the result.
    const end = 2 ** 32 - (2 ** 32 % limit)
    let value = this.#source.next()
    while (value >= end) value = this.#source.next()
    return value % limit
  }

  bytes(length: number): Uint8Array {
    return Uint8Array.from({ length }, () => this.#source.next() & 255)
  }
}
