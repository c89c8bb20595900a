/** Parts of the window of `recentPercentile`; `rotate` begins a new one. */
const WINDOW_PARTS = 5

/** Upper bounds of the buckets grow by this factor, from 0.01 on. */
const GROWTH = 1.1
const BUCKETS = 256
const PER_LOG = 1 / Math.log(GROWTH)

/** Count, sum, minimum, maximum and mean of measured values; all are 0 while there are none. */
export interface Summary {
  readonly count: number
  readonly sum: number
  readonly min: number
  readonly max: number
  readonly mean: number
}

/**
 * Computes count, sum, minimum and maximum of measured values, and percentiles with an error of at most 5 %: since the last `reset`, but
 * for the totals, the buckets of `cumulative` and `recentPercentile`.
 */
export class Histogram implements Summary {
  /** Number and sum of all values; `reset` keeps them. */
  totalCount = 0
  totalSum = 0
  max = 0
  #min = Infinity
  /** What the last `reset` found; undefined before the first. */
  #atReset:
    | { readonly count: number; readonly sum: number; readonly max: number; readonly buckets: Float64Array }
    | undefined
  readonly #buckets = new Float64Array(BUCKETS)
  /** The previous value and its bucket: requests that are answered together often have the same latency. */
  #last = 0
  #bucket = 0
  /** The buckets at the begins of the parts of the window, the oldest first. */
  #partStarts: Float64Array[] = []

  add(value: number): void {
    this.totalCount++
    this.totalSum += value
    if (value < this.#min) this.#min = value
    if (value > this.max) this.max = value
    if (value !== this.#last) {
      this.#last = value
      this.#bucket = value <= 0.01 ? 0 : Math.min(BUCKETS - 1, Math.ceil(Math.log(value * 100) * PER_LOG))
    }
    this.#buckets[this.#bucket]!++
  }

  get count(): number {
    return this.totalCount - (this.#atReset?.count ?? 0)
  }

  get sum(): number {
    return this.totalSum - (this.#atReset?.sum ?? 0)
  }

  get min(): number {
    return this.#min === Infinity ? 0 : this.#min
  }

  get mean(): number {
    return this.count === 0 ? 0 : this.sum / this.count
  }

  /** Returns the value that a share of all values (0 to 1) does not exceed; 0 while there are none. */
  percentile(share: number): number {
    const { count, max } = this
    return count === 0 ? 0 : percentileOf(this.#bucketsSince(this.#atReset?.buckets), { count, max }, share)
  }

  /** Returns the percentile of the values since the last five calls of `rotate`, or of all before five; NaN while there are none. */
  recentPercentile(share: number): number {
    if (this.totalCount === 0) return NaN
    const recent = this.#bucketsSince(
      this.#partStarts.length < WINDOW_PARTS ? undefined : this.#partStarts[0],
    )
    const count = recent.reduce((sum, value) => sum + value, 0)
    const max = Math.max(this.max, this.#atReset?.max ?? 0)
    return count === 0 ? NaN : percentileOf(recent, { count, max }, share)
  }

  /** Begins a new part of the window of `recentPercentile`, and forgets the oldest one. */
  rotate(): void {
    this.#partStarts.push(this.#buckets.slice())
    if (this.#partStarts.length > WINDOW_PARTS) this.#partStarts.shift()
  }

  #bucketsSince(start: Float64Array | undefined): Float64Array {
    return start === undefined ? this.#buckets : this.#buckets.map((count, i) => count - start[i]!)
  }

  /** Yields the upper bound of every `step`th bucket from `first` on, with the number of values up to it. */
  *cumulative(first: number, step: number, end: number): Generator<readonly [bound: number, count: number]> {
    let count = 0
    for (let bucket = 0, next = first; bucket < Math.min(end, BUCKETS); bucket++) {
      count += this.#buckets[bucket]!
      if (bucket !== next) continue
      yield [GROWTH ** bucket / 100, count]
      next += step
    }
  }

  reset(): void {
    this.#atReset = {
      count: this.totalCount,
      sum: this.totalSum,
      max: Math.max(this.max, this.#atReset?.max ?? 0),
      buckets: this.#buckets.slice(),
    }
    this.#min = Infinity
    this.max = 0
  }
}

function percentileOf(
  buckets: Float64Array,
  { count, max }: Pick<Summary, 'count' | 'max'>,
  share: number,
): number {
  if (share >= 1) return max
  let left = count * share
  for (const [bucket, inBucket] of buckets.entries()) {
    left -= inBucket
    // The middle of the bucket, on the scale of the bounds.
    if (left <= 0) return Math.min(max, bucket === 0 ? 0 : GROWTH ** (bucket - 0.5) / 100)
  }
  return max
}

/** Returns the summary of the values of both. */
export function summaryOfBoth(one: Summary, other: Summary): Summary {
  const count = one.count + other.count
  const sum = one.sum + other.sum
  const min = one.count === 0 ? other.min : other.count === 0 ? one.min : Math.min(one.min, other.min)
  return { count, sum, min, max: Math.max(one.max, other.max), mean: count === 0 ? 0 : sum / count }
}
