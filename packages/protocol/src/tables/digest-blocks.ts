/**
 * Computes a digest of the MD4 family: pads the message, passes its blocks of 64 bytes to `round`, which changes `state`, and
 * returns the state as bytes. MD5 is little-endian, SHA-1 is not.
 */
export function digestBlocks(
  message: Uint8Array,
  state: Int32Array,
  littleEndian: boolean,
  round: (state: Int32Array, word: (index: number) => number) => void,
): Uint8Array {
  const padded = new Uint8Array(((message.length + 8) >> 6) * 64 + 64)
  padded.set(message)
  padded[message.length] = 0x80
  const view = new DataView(padded.buffer)
  view.setBigUint64(padded.length - 8, BigInt(message.length) * 8n, littleEndian)
  for (let at = 0; at < padded.length; at += 64)
    round(state, (index) => view.getInt32(at + index * 4, littleEndian))
  const digest = new DataView(new ArrayBuffer(state.length * 4))
  for (const [i, part] of state.entries()) digest.setInt32(i * 4, part, littleEndian)
  return new Uint8Array(digest.buffer)
}
