import type { Bytes } from './types.ts'

/** A copy that is a plain array of bytes, whatever the view is that it comes from (a Buffer's `slice` copies nothing). */
export function copyOf(view: Uint8Array): Bytes {
  const copy = new Uint8Array(view.length)
  copy.set(view)
  return copy
}
