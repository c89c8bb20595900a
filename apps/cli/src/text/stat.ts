import { formatZxid } from '@zabra/protocol'
import type { Stat } from '@zabra/client'
import { javaDate } from './time.ts'

const hex = (value: bigint | number): string => `0x${formatZxid(value)}`

/** Formats a stat as the eleven lines of ZooKeeper's shell. */
export function statLines(stat: Stat): string[] {
  return [
    `cZxid = ${hex(stat.czxid)}`,
    `ctime = ${javaDate(stat.ctime)}`,
    `mZxid = ${hex(stat.mzxid)}`,
    `mtime = ${javaDate(stat.mtime)}`,
    `pZxid = ${hex(stat.pzxid)}`,
    `cversion = ${stat.cversion}`,
    `dataVersion = ${stat.version}`,
    `aclVersion = ${stat.aversion}`,
    `ephemeralOwner = ${hex(stat.ephemeralOwner)}`,
    `dataLength = ${stat.dataLength}`,
    `numChildren = ${stat.numChildren}`,
  ]
}

/** Returns a stat for JSON output: ids in hexadecimal, times in ISO 8601. */
export function statJson(stat: Stat): Record<string, string | number> {
  return {
    czxid: hex(stat.czxid),
    mzxid: hex(stat.mzxid),
    pzxid: hex(stat.pzxid),
    ctime: new Date(stat.ctime).toISOString(),
    mtime: new Date(stat.mtime).toISOString(),
    version: stat.version,
    cversion: stat.cversion,
    aversion: stat.aversion,
    ephemeralOwner: hex(stat.ephemeralOwner),
    dataLength: stat.dataLength,
    numChildren: stat.numChildren,
  }
}
