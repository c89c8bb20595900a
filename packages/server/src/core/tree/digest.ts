import { crc32, crc32Text } from '@zabra/protocol'
import type { Digest } from '../types.ts'

/**
 * Returns the CRC-32 of a path, computed from that of its parent over the name alone. The root counts as an empty path, so the
 * CRC of its children starts at 0.
 */
export function pathCrc(path: string, parentPath: string, parent: number): number {
  return parentPath === '/' ? crc32Text(path) : crc32Text(path, parentPath.length, parent)
}

/** Returns the CRC-32 of path and data, the first part of a node's digest. `path` is the result of `pathCrc`. */
export function crcPrefix(path: number, data: Uint8Array | null): number {
  return data === null ? path : crc32(data, 0, data.length, path)
}

/** Returns whether a node is excluded from the digest. */
export const isExcludedFromDigest = (path: string): boolean =>
  path.charCodeAt(1) === 0x7a && path.startsWith('/zookeeper/')

/** A mutable sum modulo 2^64. */
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

  /** Returns a copy of the current value. */
  value(): Digest {
    return { hi: this.hi, lo: this.lo }
  }
}

export const sameDigest = (a: Digest, b: Digest): boolean => a.hi === b.hi && a.lo === b.lo
