/** Number of values per bucket, serializable for messages between processes. */
export type Counts = Readonly<Record<string, number>>

const EXACT_BITS = 5
const EXACT = 1 << EXACT_BITS

/** A histogram of durations with buckets of 3 % width: constant memory for millions of values, and any percentile. */
export class Histogram {
  readonly #counts: number[] = []
  count = 0
  #sum = 0
  #max = 0

  /** Adds a value, such as a time in microseconds; drops fractions. */
  add(value: number, times = 1): void {
    const bucket = bucketOf(Math.max(0, Math.floor(value)))
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + times
    this.count += times
    this.#sum += value * times
    if (value > this.#max) this.#max = value
  }

  get mean(): number {
    return this.count === 0 ? 0 : this.#sum / this.count
  }

  get max(): number {
    return this.#max
  }

  /** Returns the value that a share (0 to 1) of all values does not exceed, within 3 %; 0 without values. */
  percentile(share: number): number {
    let left = Math.max(1, Math.ceil(this.count * share))
    for (const [bucket, count] of this.#counts.entries()) {
      left -= count ?? 0
      if (left <= 0) return Math.min(topOf(bucket), this.#max)
    }
    return this.#max
  }

  /** Returns the nonempty buckets, each with its largest value. */
  buckets(): { readonly upTo: number; readonly count: number }[] {
    return [...this.#counts.entries()]
      .filter(([, count]) => count > 0)
      .map(([bucket, count]) => ({ upTo: topOf(bucket), count }))
  }

  export(): { counts: Counts; sum: number; max: number } {
    const counts = Object.fromEntries([...this.#counts.entries()].filter(([, count]) => count > 0))
    return { counts, sum: this.#sum, max: this.#max }
  }

  merge({ counts, sum, max }: { counts: Counts; sum: number; max: number }): void {
    for (const [bucket, count] of Object.entries(counts)) {
      this.#counts[Number(bucket)] = (this.#counts[Number(bucket)] ?? 0) + count
      this.count += count
    }
    this.#sum += sum
    this.#max = Math.max(this.#max, max)
  }
}

/** Returns the bucket of a value: one bucket per value below 32, then 32 buckets per power of two. */
function bucketOf(value: number): number {
  if (value < EXACT) return value
  const doubling = Math.floor(Math.log2(value)) - EXACT_BITS
  return EXACT * (doubling + 1) + Math.floor(value / 2 ** doubling) - EXACT
}

function topOf(bucket: number): number {
  if (bucket < EXACT) return bucket
  const doubling = Math.floor(bucket / EXACT) - 1
  return (EXACT + (bucket % EXACT) + 1) * 2 ** doubling - 1
}
