import type { Digest } from '../core/types.ts'

/** Formats a mean as Apache ZooKeeper does: with one to four decimals. */
export function decimal(value: number): string {
  const rounded = Math.round(value * 10_000) / 10_000
  return Number.isInteger(rounded) ? `${rounded}.0` : String(rounded)
}

/** Formats a number as Java formats a long in hexadecimal: negative numbers in two's complement. */
export const hexLong = (value: number): string => `0x${BigInt.asUintN(64, BigInt(value)).toString(16)}`

/** Formats a digest as Java formats a long in decimal. */
export const decimalDigest = ({ hi, lo }: Digest): string =>
  String(BigInt.asIntN(64, (BigInt(hi) << 32n) | BigInt(lo)))

/** Formats a wall time as `java.util.Date` does, in UTC: `Fri Nov 20 23:17:53 UTC 2026`. */
export function javaDate(wall: number): string {
  const [day, date, month, year, time] = new Date(wall).toUTCString().replace(',', '').split(' ')
  return `${day} ${month} ${date} ${time} UTC ${year}`
}
