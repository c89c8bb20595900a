import type { Bytes, OwnBytes } from './types.ts'

/** Returns a copy as a plain Uint8Array, whatever class the argument has (`slice` of a Buffer copies nothing). */
export function copyBytes(view: Uint8Array): OwnBytes {
  const copy = new Uint8Array(view.length)
  copy.set(view)
  return copy
}

/**
 * Returns bytes as a string with one character per byte. Kept for long, a Uint8Array would take five times the
 * memory.
 */
export function toBinaryString(bytes: Uint8Array): string {
  // At the usual length this makes one flat string; appending character by character would leave a rope.
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
