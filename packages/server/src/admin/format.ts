import type { Digest } from '../core/types.ts'

/** A mean as the reference prints it: at most four decimals, and at least one. */
export function decimal(value: number): string {
  const rounded = Math.round(value * 10_000) / 10_000
  return Number.isInteger(rounded) ? `${rounded}.0` : String(rounded)
}

/** A number as Java shows a long in hexadecimal: negative ones as their two's complement. */
export const hexLong = (value: number): string => `0x${BigInt.asUintN(64, BigInt(value)).toString(16)}`

/** A digest as Java shows a long. */
export const decimalDigest = ({ hi, lo }: Digest): string =>
  String(BigInt.asIntN(64, (BigInt(hi) << 32n) | BigInt(lo)))

/** A moment in the words of `java.util.Date`, in UTC: `Fri Nov 20 23:17:53 UTC 2026`. */
export function javaDate(wall: number): string {
  const [day, date, month, year, time] = new Date(wall).toUTCString().replace(',', '').split(' ')
  return `${day} ${month} ${date} ${time} UTC ${year}`
}
