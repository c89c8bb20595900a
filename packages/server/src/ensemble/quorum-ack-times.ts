import type { Histogram } from '../core/histogram.ts'
import type { Zxid } from '../core/types.ts'

/** Proposals in flight whose times are kept; a power of two. Later ones overwrite the oldest, which then are not measured. */
const SLOTS = 4096

/** Measures the time from a proposal to its acknowledgement by a quorum, in milliseconds. Allocates nothing for a proposal. */
export class QuorumAckTimes {
  readonly #latency: Histogram
  readonly #zxids = new Float64Array(SLOTS)
  readonly #times = new Float64Array(SLOTS)

  constructor(latency: Histogram) {
    this.#latency = latency
  }

  /** `now` is on the monotonic clock, as in `committed`. */
  proposed(zxid: Zxid, now: number): void {
    const slot = zxid & (SLOTS - 1)
    this.#zxids[slot] = zxid
    this.#times[slot] = now
  }

  committed(first: Zxid, count: number, now: number): void {
    for (let zxid = first; zxid < first + count; zxid++) {
      const slot = zxid & (SLOTS - 1)
      if (this.#zxids[slot] === zxid) this.#latency.add(Math.max(0, now - this.#times[slot]!))
    }
  }
}
