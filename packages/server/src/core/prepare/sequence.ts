/** Formats the suffix of a sequential node: ten characters, padded with zeros, sign included (client-protocol 3.3). */
export function sequenceNumber(counter: number): string {
  return counter >= 0 ? String(counter).padStart(10, '0') : `-${String(-counter).padStart(9, '0')}`
}
