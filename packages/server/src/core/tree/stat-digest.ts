import { crc32 } from '@zabra/protocol'

/**
 * What a node adds to the tree's digest (`DigestCalculator`): the CRC-32 of its path, its data and the 60 bytes of its stat,
 * which are never written down.
 *
 * FENCED: a CRC-32 is linear but for a constant: that of two texts of one length differs by the exclusive or of what each byte
 * in which they differ makes of it, which a table tells. So a stat is summed up from its numbers in any order, and what a
 * node adds after a change follows from what it added before and from the numbers that changed.
 * Why: it is asked for twice for every write. Oracle: `plainNodeDigest` in `testdata/plain-digest.ts`.
 */

/** The numbers of a node that change while it is there. */
export class StatFields {
  /** The checksum of its path and data. */
  crcPrefix = 0
  mzxid = 0
  pzxid = 0
  mtime = 0
  version = 0
  cversion = 0
  aversion = 0
}

export function copyStatFields(from: StatFields, to: StatFields): void {
  to.crcPrefix = from.crcPrefix
  to.mzxid = from.mzxid
  to.pzxid = from.pzxid
  to.mtime = from.mtime
  to.version = from.version
  to.cversion = from.cversion
  to.aversion = from.aversion
}

export const { updateStatDigest, statDigest } = withTable()

/** A bundler makes variables of a module's constants, which must be looked up each time; it leaves those of a function. */
function withTable() {
  /** Where the numbers lie in the 60 bytes. The prefix goes on into the first four. */
  const CZXID = 0
  const MZXID = 8
  const PZXID = 16
  const CTIME = 24
  const MTIME = 32
  const VERSION = 40
  const CVERSION = 44
  const AVERSION = 48
  const OWNER = 52
  const BYTES = 60
  const table = makeTable(BYTES)
  /** All its numbers are 0, and there is nothing before them. */
  const BLANK = new StatFields()
  const BLANK_COUNTED = crc32(new Uint8Array(BYTES))
  const ownerView = new DataView(new ArrayBuffer(8))

  /** What a node adds after a change, if it added `counted` before. Its path, czxid, ctime and owner are what they were. */
  function updateStatDigest(counted: number, was: StatFields, now: StatFields): number {
    let crc = counted
    if (now.crcPrefix !== was.crcPrefix) crc ^= prefix(now.crcPrefix ^ was.crcPrefix)
    if (now.mzxid !== was.mzxid)
      crc ^= long(MZXID, upper(now.mzxid) ^ upper(was.mzxid), now.mzxid ^ was.mzxid)
    if (now.pzxid !== was.pzxid)
      crc ^= long(PZXID, upper(now.pzxid) ^ upper(was.pzxid), now.pzxid ^ was.pzxid)
    if (now.mtime !== was.mtime)
      crc ^= long(MTIME, upper(now.mtime) ^ upper(was.mtime), now.mtime ^ was.mtime)
    if (now.version !== was.version) crc ^= int(VERSION, now.version ^ was.version)
    if (now.cversion !== was.cversion) crc ^= int(CVERSION, now.cversion ^ was.cversion)
    if (now.aversion !== was.aversion) crc ^= int(AVERSION, now.aversion ^ was.aversion)
    return crc >>> 0
  }

  /** What a node adds, of a path that counts: what a blank one does, changed to it. */
  function statDigest(now: StatFields, czxid: number, ctime: number, owner: bigint): number {
    const changed = updateStatDigest(BLANK_COUNTED, BLANK, now)
    const crc = changed ^ long(CZXID, upper(czxid), czxid | 0) ^ long(CTIME, upper(ctime), ctime | 0)
    if (owner === 0n) return crc >>> 0
    ownerView.setBigInt64(0, owner)
    return (crc ^ long(OWNER, ownerView.getInt32(0), ownerView.getInt32(4))) >>> 0
  }

  /** What four bytes make of the checksum, the most significant one first. */
  function int(at: number, value: number): number {
    return (
      table[(at << 8) | (value >>> 24)]! ^
      table[((at + 1) << 8) | ((value >>> 16) & 0xff)]! ^
      table[((at + 2) << 8) | ((value >>> 8) & 0xff)]! ^
      table[((at + 3) << 8) | (value & 0xff)]!
    )
  }

  /** What the checksum up to here makes of it: as a text of four bytes, the least significant one first. */
  function prefix(crc: number): number {
    return (
      table[crc & 0xff]! ^
      table[0x100 | ((crc >>> 8) & 0xff)]! ^
      table[0x200 | ((crc >>> 16) & 0xff)]! ^
      table[0x300 | (crc >>> 24)]!
    )
  }

  const long = (at: number, high: number, low: number): number => int(at, high) ^ int(at + 4, low)

  /** The upper half of a number. The lower one needs no arithmetic: bitwise operators cut it out themselves. */
  const upper = (value: number): number => Math.floor(value / 0x1_0000_0000) | 0

  return { updateStatDigest, statDigest }
}

/** What each value of each of the bytes makes of the checksum, 256 for each byte. */
function makeTable(bytes: number): Int32Array {
  const made = new Int32Array(bytes * 256)
  const last = (bytes - 1) * 256
  for (let value = 0; value < 256; value++)
    made[last | value] = crc32(Uint8Array.of(value)) ^ crc32(Uint8Array.of(0))
  // A byte with another one behind it: the last row carries on what it makes of the one behind.
  for (let at = last - 256; at >= 0; at -= 256) {
    for (let value = 0; value < 256; value++) {
      const behind = made[(at + 256) | value]!
      made[at | value] = made[last | (behind & 0xff)]! ^ (behind >>> 8)
    }
  }
  return made
}
