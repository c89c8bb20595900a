/** The newest zxid of any server, kept as two halves so that a reply costs no bigint. */
export class LastZxid {
  #high = 0
  #low = 0

  get value(): bigint {
    if (this.#high === 0 && this.#low === 0) return 0n
    return (BigInt(this.#high) << 32n) | BigInt(this.#low >>> 0)
  }

  /** Takes the zxid of a reply header if it is newer. The lower half is compared as an unsigned number. */
  raise(high: number, low: number): void {
    if (high < 0 || (high === 0 && low === 0)) return
    if (high < this.#high || (high === this.#high && low >>> 0 <= this.#low >>> 0)) return
    this.#high = high
    this.#low = low
  }

  reset(): void {
    this.#high = this.#low = 0
  }
}
