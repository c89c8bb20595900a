import type { Stat } from '@zabra/client'
import { javaDate } from './time.ts'
import { hex } from './hex.ts'

type Changes = Readonly<Record<'czxid' | 'mzxid' | 'pzxid', bigint | number>> &
  Pick<Stat, 'ctime' | 'mtime' | 'version' | 'cversion' | 'aversion'>

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

/** Returns what a stat and a snapshot say of changes, for JSON output: ids in hexadecimal, times in ISO 8601. */
export const changesJson = (stat: Changes) => ({
  czxid: hex(stat.czxid),
  mzxid: hex(stat.mzxid),
  pzxid: hex(stat.pzxid),
  ctime: new Date(stat.ctime).toISOString(),
  mtime: new Date(stat.mtime).toISOString(),
  version: stat.version,
  cversion: stat.cversion,
  aversion: stat.aversion,
})

/** Returns a stat for JSON output. */
export function statJson(stat: Stat): Record<string, string | number> {
  return {
    ...changesJson(stat),
    ephemeralOwner: hex(stat.ephemeralOwner),
    dataLength: stat.dataLength,
    numChildren: stat.numChildren,
  }
}
