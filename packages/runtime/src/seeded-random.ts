import type { Random } from './random.ts'

/** Chance that a seed determines (the generator sfc32), for worlds that must be played again. Not for secrets. */
export class SeededRandom implements Random {
  #a: number
  #b = 0x9e3779b9
  #c = 0x243f6a88
  #counter = 1

  constructor(seed: number) {
    this.#a = seed >>> 0
    for (let i = 0; i < 16; i++) this.#next()
  }

  below(limit: number): number {
    if (!Number.isInteger(limit) || limit < 1 || limit > 2 ** 32) {
      throw new RangeError(`Expected a limit from 1 to 2^32, got ${limit}`)
    }
    // Numbers above the last whole multiple would make small results likelier.
    const end = 2 ** 32 - (2 ** 32 % limit)
    let value = this.#next()
    while (value >= end) value = this.#next()
    return value % limit
  }

  bytes(length: number): Uint8Array {
    return Uint8Array.from({ length }, () => this.#next() & 255)
  }

  #next(): number {
    const sum = (this.#a + this.#b + this.#counter++) | 0
    this.#a = this.#b ^ (this.#b >>> 9)
    this.#b = (this.#c + (this.#c << 3)) | 0
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0
    return sum >>> 0
  }
}
