import { crc32, writeText, textLength } from '@zabra/protocol'
import type { Digest, StoredStat } from '../types.ts'

/** The version of the digest's definition that logs and snapshots carry. */
export const DIGEST_VERSION = 2
export const ZERO_DIGEST: Digest = { hi: 0, lo: 0 }

let pathBytes = new Uint8Array(1024)
const stat = new Uint8Array(60)
const statView = new DataView(stat.buffer)

/** The part of a node's digest that only path and data decide. The root counts as an empty path. */
export function crcPrefix(path: string, data: Uint8Array | null): number {
  let crc = 0
  if (path !== '/') {
    const length = textLength(path)
    if (length > pathBytes.length) pathBytes = new Uint8Array(length * 2)
    crc = crc32(pathBytes, 0, writeText(path, pathBytes, 0))
  }
  return data === null ? crc : crc32(data, 0, data.length, crc)
}

/** What a node adds to the tree's digest (`DigestCalculator`); nodes below /zookeeper add nothing. */
export function nodeDigest(path: string, prefix: number, facts: StoredStat): number {
  return path.startsWith('/zookeeper/')
    ? 0
    : statDigest(
        prefix,
        facts.czxid,
        facts.mzxid,
        facts.pzxid,
        facts.ctime,
        facts.mtime,
        facts.version,
        facts.cversion,
        facts.aversion,
        facts.owner,
      )
}

/** As `nodeDigest`, from the fields one by one, for a path that counts. */
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
  long(0, czxid)
  long(8, mzxid)
  long(16, pzxid)
  long(24, ctime)
  long(32, mtime)
  statView.setInt32(40, version)
  statView.setInt32(44, cversion)
  statView.setInt32(48, aversion)
  if (owner === 0n) {
    statView.setInt32(52, 0)
    statView.setInt32(56, 0)
  } else {
    statView.setBigInt64(52, owner)
  }
  return crc32(stat, 0, 60, prefix)
}

function long(at: number, value: number): void {
  const high = Math.floor(value / 0x1_0000_0000)
  statView.setInt32(at, high)
  statView.setUint32(at + 4, value - high * 0x1_0000_0000)
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
