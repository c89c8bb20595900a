/** Ten digits, padded with zeros, the sign included in the width. */
export function sequenceNumber(counter: number): string {
  return counter >= 0 ? String(counter).padStart(10, '0') : `-${String(-counter).padStart(9, '0')}`
}
