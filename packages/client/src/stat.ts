import type { Reader } from '@zabra/protocol'
import type { Ordered, Stat } from './types.ts'

/** A Stat as it lies on the wire. Times are numbers, since they are exact as such; ids are not. */
export function readStat(r: Reader): Stat {
  const czxid = r.long()
  const mzxid = r.long()
  const ctime = r.longNumber()
  const mtime = r.longNumber()
  const version = r.int()
  const cversion = r.int()
  const aversion = r.int()
  const ephemeralOwner = r.long()
  const dataLength = r.int()
  const numChildren = r.int()
  const pzxid = r.long()
  return {
    czxid,
    mzxid,
    pzxid,
    ctime,
    mtime,
    version,
    cversion,
    aversion,
    ephemeralOwner,
    dataLength,
    numChildren,
  }
}

/** The same, with the number of the answer: one object from the start, and no copy of another. */
export function readOrderedStat(r: Reader, order: number): Stat & Ordered {
  const czxid = r.long()
  const mzxid = r.long()
  const ctime = r.longNumber()
  const mtime = r.longNumber()
  const version = r.int()
  const cversion = r.int()
  const aversion = r.int()
  const ephemeralOwner = r.long()
  const dataLength = r.int()
  const numChildren = r.int()
  const pzxid = r.long()
  return {
    czxid,
    mzxid,
    pzxid,
    ctime,
    mtime,
    version,
    cversion,
    aversion,
    ephemeralOwner,
    dataLength,
    numChildren,
    order,
  }
}
