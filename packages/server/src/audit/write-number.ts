const ZERO = 0x30
const MINUS = 0x2d
const HEX_DIGITS = new TextEncoder().encode('0123456789abcdef')

/** The most characters of an integer that `writeInteger` or `writeHex` writes. */
export const MAX_DIGITS = 17

/** Writes an integer, exact up to 2^53, as JSON does. Returns the offset after it. */
export function writeInteger(value: number, into: Uint8Array, at: number): number {
  if (value < 0) {
    into[at++] = MINUS
    value = -value
  }
  if (value < 0x8000_0000) return writeSmall(value | 0, into, at)
  const millions = Math.floor(value / 1e6)
  const end = writeInteger(millions, into, at)
  return writePadded(value - millions * 1e6, into, end + 6)
}

function writeSmall(value: number, into: Uint8Array, at: number): number {
  let end = at + 1
  for (let left = (value / 10) | 0; left > 0; left = (left / 10) | 0) end++
  for (let i = end - 1; i >= at; i--) {
    const left = (value / 10) | 0
    into[i] = ZERO + value - left * 10
    value = left
  }
  return end
}

/** Writes six digits before an offset. */
function writePadded(value: number, into: Uint8Array, end: number): number {
  for (let i = end - 1; i >= end - 6; i--) {
    const left = (value / 10) | 0
    into[i] = ZERO + value - left * 10
    value = left
  }
  return end
}

/** Writes an integer from 0, exact up to 2^53, in hexadecimal. Returns the offset after it. */
export function writeHex(value: number, into: Uint8Array, at: number): number {
  const high = Math.floor(value / 0x1_0000_0000)
  const low = value >>> 0
  let isLeading = true
  for (let shift = high === 0 ? 28 : 60; shift >= 0; shift -= 4) {
    const digit = (shift >= 32 ? high >>> (shift - 32) : low >>> shift) & 15
    if (isLeading && digit === 0 && shift > 0) continue
    isLeading = false
    into[at++] = HEX_DIGITS[digit]!
  }
  return at
}
