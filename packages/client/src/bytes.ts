import type { Bytes } from './types.ts'

/** A copy that is a plain array of bytes, whatever the view is that it comes from (a Buffer's `slice` copies nothing). */
export function copyBytes(view: Uint8Array): Bytes {
  const copy = new Uint8Array(view.length)
  copy.set(view)
  return copy
}

/** Bytes as text with one character for each: held for long, an array would take five times the room. */
export function toBinaryString(bytes: Uint8Array): string {
  // Of a usual length it is one flat string; adding character after character would leave a tree of them.
  if (bytes.length <= 64) return String.fromCharCode.apply(undefined, bytes as unknown as number[])
  let text = ''
  for (const byte of bytes) text += String.fromCharCode(byte)
  return text
}

export function fromBinaryString(text: string): Bytes {
  const bytes = new Uint8Array(text.length)
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i)
  return bytes
}
