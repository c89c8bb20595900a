const POOL_BYTES = 64 * 1024
/** Longer copies get memory of their own. */
const MAX_POOLED_BYTES = 2048

let pool = new Uint8Array(POOL_BYTES)
let used = 0

/** Returns a copy. Short copies share a larger buffer: one of its own costs more than the copy. */
export function copyBytes(bytes: Uint8Array): Uint8Array {
  const { length } = bytes
  if (length > MAX_POOLED_BYTES) return bytes.slice()
  if (used + length > POOL_BYTES) {
    pool = new Uint8Array(POOL_BYTES)
    used = 0
  }
  pool.set(bytes, used)
  const copy = new Uint8Array(pool.buffer, used, length)
  used += length
  return copy
}
