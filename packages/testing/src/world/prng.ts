import { Sfc32, type Random } from '@zabra/runtime'

/**
 * A tree of generators that one seed determines (sfc32). Each concern draws from a branch of its own, so that leaving one
 * event out does not change what the others draw: that is what makes a failing run shrink.
 */
export class Prng implements Random {
  readonly #seed: number
  readonly #source: Sfc32

  constructor(seed: number, stream = 0) {
    this.#seed = seed >>> 0
    this.#source = new Sfc32(seed, stream, 15)
  }

  /** A generator of its own for a name. Drawing from it changes nothing here. */
  fork(name: string): Prng {
    let hash = 0x811c9dc5 ^ this.#seed
    for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193)
    return new Prng(hash >>> 0, this.#seed)
  }

  below(limit: number): number {
    if (!Number.isInteger(limit) || limit < 1 || limit > 2 ** 32) {
      throw new RangeError(`Expected a limit from 1 to 2^32, got ${limit}`)
    }
    // The bias of this is below 2^-20 for every limit that a simulation draws.
    return limit <= 4096
      ? (this.#source.next() >>> 4) % limit
      : Math.floor((this.#source.next() / 2 ** 32) * limit)
  }

  bytes(length: number): Uint8Array {
    const bytes = new Uint8Array(length)
    for (let i = 0; i < length; i++) bytes[i] = this.#source.next() & 255
    return bytes
  }

  /** From 0 up to, not including, 1. */
  float(): number {
    return this.#source.next() / 2 ** 32
  }

  between(low: number, high: number): number {
    return low + this.float() * (high - low)
  }

  /** A whole number from `low` to `high`, both included. */
  integer(low: number, high: number): number {
    return low + this.below(high - low + 1)
  }

  /** True with this probability. Draws always, so that a probability of 0 does not shift what follows. */
  chance(probability: number): boolean {
    return this.float() < probability
  }

  /** A waiting time whose mean is `mean`. */
  exponential(mean: number): number {
    return -mean * Math.log(1 - this.float())
  }

  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)]!
  }

  /** Picks a name by its weight. */
  pickWeighted<K extends string>(weights: Readonly<Partial<Record<K, number>>>): K {
    const entries = Object.entries(weights) as [K, number][]
    let left = this.float() * entries.reduce((sum, [, weight]) => sum + weight, 0)
    for (const [name, weight] of entries) {
      left -= weight
      if (left < 0) return name
    }
    return entries.at(-1)![0]
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
