import { Sfc32, type Random } from '@zabra/runtime'

/**
 * A tree of pseudo-random generators derived from one seed (sfc32). Each concern draws from a fork of its own, so that
 * dropping one event does not change what other concerns draw: this is what lets a failing run shrink.
 */
export class Prng implements Random {
  readonly #seed: number
  readonly #source: Sfc32

  constructor(seed: number, stream = 0) {
    this.#seed = seed >>> 0
    this.#source = new Sfc32(seed, stream, 15)
  }

  /** Returns an independent generator for a name. It draws nothing from this one. */
  fork(name: string): Prng {
    let hash = 0x811c9dc5 ^ this.#seed
    for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193)
    return new Prng(hash >>> 0, this.#seed)
  }

  below(limit: number): number {
    if (!Number.isInteger(limit) || limit < 1 || limit > 2 ** 32)
      throw new RangeError(`Expected a limit from 1 to 2^32, got ${limit}`)
    // The modulo bias is below 2^-20 for every limit that a simulation draws.
    return limit <= 4096
      ? (this.#source.next() >>> 4) % limit
      : Math.floor((this.#source.next() / 2 ** 32) * limit)
  }

  bytes(length: number): Uint8Array {
    const bytes = new Uint8Array(length)
    for (let i = 0; i < length; i++) bytes[i] = this.#source.next() & 255
    return bytes
  }

  /** Returns a number from 0 up to, but not including, 1. */
  float(): number {
    return this.#source.next() / 2 ** 32
  }

  between(low: number, high: number): number {
    return low + this.float() * (high - low)
  }

  /** Returns an integer from `low` to `high`, both included. */
  integer(low: number, high: number): number {
    return low + this.below(high - low + 1)
  }

  /** Returns true with this probability. Always draws, so that a probability of 0 does not shift later draws. */
  chance(probability: number): boolean {
    return this.float() < probability
  }

  /** Returns an exponentially distributed delay with this mean. */
  exponential(mean: number): number {
    return -mean * Math.log(1 - this.float())
  }

  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)]!
  }

  /** Picks a key in proportion to its weight. */
  pickWeighted<K extends string>(weights: Readonly<Partial<Record<K, number>>>): K {
    let sum = 0
    for (const name in weights) sum += weights[name]!
    let left = this.float() * sum
    let last: K | undefined
    for (const name in weights) {
      left -= weights[name]!
      if (left < 0) return name
      last = name
    }
    return last!
  }

  shuffled<T>(items: readonly T[]): T[] {
    const result = [...items]
    for (let i = result.length - 1; i > 0; i--) {
      const j = this.below(i + 1)
      ;[result[i], result[j]] = [result[j]!, result[i]!]
    }
    return result
  }
}
