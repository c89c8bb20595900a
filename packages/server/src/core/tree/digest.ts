import { crc32, crc32Text } from '@zabra/protocol'
import type { Digest } from '../types.ts'

/** The version of the digest's definition that logs and snapshots carry. */
export const DIGEST_VERSION = 2
export const ZERO_DIGEST: Digest = { hi: 0, lo: 0 }

/**
 * The path's part of a node's digest, from that of its parent: only the name is gone through. The root counts as an empty
 * path, so a child of it begins anew.
 */
export function pathCrc(path: string, parentPath: string, parent: number): number {
  return parentPath === '/' ? crc32Text(path) : crc32Text(path, parentPath.length, parent)
}

/** The part of a node's digest that only path and data decide; `path` is what `pathCrc` made of the path. */
export function crcPrefix(path: number, data: Uint8Array | null): number {
  return data === null ? path : crc32(data, 0, data.length, path)
}

/** Whether a node lies where nodes add nothing to the digest. */
export const isExcludedFromDigest = (path: string): boolean =>
  path.charCodeAt(1) === 0x7a && path.startsWith('/zookeeper/')

/** A sum modulo 2^64 that is changed in place. */
export class DigestSum implements Digest {
  hi = 0
  lo = 0

  set(value: Digest): void {
    this.hi = value.hi
    this.lo = value.lo
  }

  /** Adds an unsigned 32-bit number. */
  add(value: number): void {
    const lo = this.lo + value
    if (lo >= 0x1_0000_0000) {
      this.lo = lo - 0x1_0000_0000
      this.hi = (this.hi + 1) >>> 0
    } else {
      this.lo = lo
    }
  }

  subtract(value: number): void {
    const lo = this.lo - value
    if (lo < 0) {
      this.lo = lo + 0x1_0000_0000
      this.hi = (this.hi - 1) >>> 0
    } else {
      this.lo = lo
    }
  }

  /** A copy that no longer changes. */
  value(): Digest {
    return { hi: this.hi, lo: this.lo }
  }
}

export const sameDigest = (a: Digest, b: Digest): boolean => a.hi === b.hi && a.lo === b.lo
export const digestToBigint = ({ hi, lo }: Digest): bigint =>
  BigInt.asIntN(64, (BigInt(hi) << 32n) | BigInt(lo))
export const digestFromBigint = (value: bigint): Digest => ({
  hi: Number(BigInt.asUintN(64, value) >> 32n),
  lo: Number(value & 0xffffffffn),
})
