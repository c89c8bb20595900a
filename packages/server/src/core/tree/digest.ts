import { crc32, crc32Int, crc32Ints, crc32Text } from '@zabra/protocol'
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
export const isUncounted = (path: string): boolean =>
  path.charCodeAt(1) === 0x7a && path.startsWith('/zookeeper/')

/**
 * What a node adds to the tree's digest (`DigestCalculator`), of a path that counts; `prefix` is its `crcPrefix`.
 *
 * FENCED: the fields go through the checksum one by one and are never written down.
 * Why: it is computed twice for every write. Oracle: `plainNodeDigest` in `testdata/plain-digest.ts`.
 */
export function statDigest(
  prefix: number,
  czxid: number,
  mzxid: number,
  pzxid: number,
  ctime: number,
  mtime: number,
  version: number,
  cversion: number,
  aversion: number,
  owner: bigint,
): number {
  let crc = long(prefix, czxid)
  crc = long(crc, mzxid)
  crc = long(crc, pzxid)
  crc = long(crc, ctime)
  crc = long(crc, mtime)
  crc = crc32Ints(version, cversion, crc)
  if (owner === 0n) return crc32Int(0, crc32Ints(aversion, 0, crc))
  ownerView.setBigInt64(0, owner)
  return crc32Int(ownerView.getInt32(4), crc32Ints(aversion, ownerView.getInt32(0), crc))
}

const ownerView = new DataView(new ArrayBuffer(8))

/** The lower half needs no subtraction: cutting a number to 32 bits is what `|` does first. */
function long(crc: number, value: number): number {
  return crc32Ints(Math.floor(value / 0x1_0000_0000) | 0, value | 0, crc)
}

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
