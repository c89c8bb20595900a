/** A seeded stream of numbers (mulberry32), so that a failure can be played again. */
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

  /** A whole number in 0 … below-1. */
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

/** ZABRA_SEED when it is set, else a fresh one. */
export function seedFromEnv(): number {
  const given = process.env['ZABRA_SEED']
  return given === undefined ? (Date.now() ^ (process.pid << 12)) >>> 0 : Number(given)
}

/** A positive whole number from the environment. */
export function countFromEnv(name: string, fallback: number): number {
  const value = Number(process.env[name] ?? fallback)
  if (!Number.isInteger(value) || value < 1)
    throw new Error(`${name} is ${process.env[name]}; give a positive whole number`)
  return value
}
