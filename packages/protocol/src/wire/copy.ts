/** From this length on, two views and a call of `set` are cheaper than the loop. */
const LONG = 256

/**
 * Copies the bytes between two offsets to `at`.
 *
 * Optimised: copies eight bytes at a time through views; `set` would need a view of the part first.
 * Why: each read of a znode and each znode of a snapshot is such a copy. For 100 bytes it takes a quarter of the time of a loop over
 * bytes, and a little more than half of that of `subarray` and `set`. Tested against `set`, in `wire.test.ts`.
 */
export function copyRange(from: DataView, start: number, end: number, into: DataView, at: number): void {
  if (end - start > LONG) {
    bytesOf(into).set(bytesOf(from).subarray(start, end), at)
    return
  }
  let i = start
  let to = at
  for (; i + 8 <= end; i += 8, to += 8) {
    into.setInt32(to, from.getInt32(i, true), true)
    into.setInt32(to + 4, from.getInt32(i + 4, true), true)
  }
  for (; i < end; i++, to++) into.setInt8(to, from.getInt8(i))
}

const bytesOf = ({ buffer, byteOffset, byteLength }: DataView): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength)
