/** The source of random numbers. A simulation uses one that is seeded. */
export interface Random {
  /** Returns an integer from 0 to `limit` - 1; `limit` is from 1 to 2^32. */
  below(limit: number): number
  /** Returns `length` unpredictable bytes. */
  bytes(length: number): Uint8Array
}
