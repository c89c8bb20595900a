/** A seeded pseudo-random number generator (mulberry32), so that a failure can be replayed. */
export class Prng {
  readonly seed: number
  #state: number

  constructor(seed: number) {
    this.seed = seed
    this.#state = seed
  }

  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  /** Returns an integer from 0 to below - 1. */
  int(below: number): number {
    return Math.floor(this.next() * below)
  }

  pick<T>(values: readonly T[]): T {
    const value = values[this.int(values.length)]
    if (value === undefined) throw new Error('Nothing to pick from')
    return value
  }

  bytes(length: number): Buffer {
    return Buffer.from(Array.from({ length }, () => this.int(256)))
  }
}

/** Returns ZABRA_SEED, or a fresh seed when it is not set. */
export function seedFromEnv(): number {
  const given = process.env['ZABRA_SEED']
  return given === undefined ? (Date.now() ^ (process.pid << 12)) >>> 0 : Number(given)
}

/** Returns a positive integer from an environment variable. Throws for any other value. */
export function countFromEnv(name: string, fallback: number): number {
  const value = Number(process.env[name] ?? fallback)
  if (!Number.isInteger(value) || value < 1)
    throw new Error(`${name} is ${process.env[name]}; give a positive whole number`)
  return value
}
