const COUNTER = 0x1_0000_0000
/** Highest epoch of a zxid that is exact as a number. */
export const MAX_EPOCH = 0x1f_ffff

/** Returns the zxid of an epoch and a counter. Throws a RangeError when it would not be exact. */
export function makeZxid(epoch: number, counter: number): number {
  if (!Number.isInteger(epoch) || epoch < 0 || epoch > MAX_EPOCH) {
    throw new RangeError(`Expected an epoch of 0 to ${MAX_EPOCH}, got ${epoch}`)
  }
  return epoch * COUNTER + (counter >>> 0)
}

/** Returns the epoch of a zxid. */
export const epochOf = (zxid: number): number => Math.floor(zxid / COUNTER)
/** Returns the counter of a zxid within its epoch, from 0 to 2^32 - 1. */
export const counterOf = (zxid: number): number => zxid - Math.floor(zxid / COUNTER) * COUNTER
/** Returns a zxid in hexadecimal without a prefix, as in file names; negative ones as 64-bit two's complement. */
export const formatZxid = (zxid: number | bigint): string =>
  zxid >= 0 ? zxid.toString(16) : BigInt.asUintN(64, BigInt(zxid)).toString(16)
