import type { Reader } from '@zabra/protocol'
import type { Ordered, Stat, Zxid } from './types.ts'

/** Decodes a Stat. Times become numbers, which hold them exactly; ids become bigints. */
export function readStat(r: Reader): Stat {
  const czxid = r.long() as Zxid
  const mzxid = r.long() as Zxid
  const ctime = r.longNumber()
  const mtime = r.longNumber()
  const version = r.int()
  const cversion = r.int()
  const aversion = r.int()
  const ephemeralOwner = r.long()
  const dataLength = r.int()
  const numChildren = r.int()
  const pzxid = r.long() as Zxid
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

/**
 * The same with the order number of the reply: a separate function, so that the object is created in its final shape.
 */
export function readOrderedStat(r: Reader, order: number): Stat & Ordered {
  const czxid = r.long() as Zxid
  const mzxid = r.long() as Zxid
  const ctime = r.longNumber()
  const mtime = r.longNumber()
  const version = r.int()
  const cversion = r.int()
  const aversion = r.int()
  const ephemeralOwner = r.long()
  const dataLength = r.int()
  const numChildren = r.int()
  const pzxid = r.long() as Zxid
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
