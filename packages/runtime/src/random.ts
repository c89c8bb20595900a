/** The only source of chance. A simulated world gives one that is drawn from a seed. */
export interface Random {
  /** A whole number from 0 up to, not including, `limit`; `limit` is from 1 to 2^32. */
  below(limit: number): number
  /** `length` unpredictable bytes. */
  bytes(length: number): Uint8Array
}
