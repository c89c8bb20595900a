import type { Random } from '@zabra/runtime'

export interface SnapshotTriggerOptions {
  /** A snapshot is due after a random number of transactions from half of this up to this. Read anew after each snapshot. */
  readonly snapCount: () => number
  /** The same in bytes of log files; 0 or less disables it. */
  readonly snapSizeLimitBytes: number
  readonly random: Random
}

/**
 * Decides when the next snapshot is due (disk-format 4.6). Limits are random, so that members do not all write snapshots at the
 * same time.
 */
export class SnapshotTrigger {
  readonly #options: SnapshotTriggerOptions
  #txns: number
  #bytes = 0
  #txnLimit = 0
  #byteLimit = 0

  /** `txns` are those after the newest snapshot; they count towards the next one. */
  constructor(options: SnapshotTriggerOptions, txns: number) {
    this.#options = options
    this.#txns = txns
    this.#drawLimits()
  }

  /** Transactions since the last reset. */
  get txns(): number {
    return this.#txns
  }

  get isDue(): boolean {
    return (
      this.#txns > this.#txnLimit || (this.#options.snapSizeLimitBytes > 0 && this.#bytes > this.#byteLimit)
    )
  }

  addTxn(): void {
    this.#txns++
  }

  addBytes(bytes: number): void {
    this.#bytes += bytes
  }

  reset(): void {
    this.#txns = 0
    this.#bytes = 0
    this.#drawLimits()
  }

  #drawLimits(): void {
    const { snapCount, snapSizeLimitBytes, random } = this.#options
    this.#txnLimit = fromHalf(snapCount(), random)
    this.#byteLimit = fromHalf(snapSizeLimitBytes, random)
  }
}

/** Returns a random number from half of `limit` up to it. */
function fromHalf(limit: number, random: Random): number {
  const part = Math.max(1, Math.floor(limit / 2))
  return part + Math.floor((random.below(0x1_0000_0000) / 0x1_0000_0000) * part)
}
