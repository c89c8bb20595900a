import { describe, expect, it } from 'vitest'
import type { LogManifest, SnapshotManifest } from './manifest.ts'
import { expiredBackups, parseRetention } from './retention.ts'

const HOUR = 3_600_000
const NOW = 1_800_000_000_000
const RULES = parseRetention('24h:all,14d:1d')

const COMMON = { format: 1, lineage: '0'.repeat(32), server: 'one', key: null } as const
const pieceOf = (name: string) => ({ name, bytes: 1, sha256: '0'.repeat(64) })

const snapshotAt = (zxid: number, time: number): SnapshotManifest => ({
  ...COMMON,
  kind: 'snapshot',
  time,
  piece: pieceOf(`snapshot/${zxid}`),
  file: `snapshot.${zxid}`,
  zxid,
  exactAt: zxid,
  nodes: 1,
  digest: null,
})

const logAfter = (after: number): LogManifest => ({
  ...COMMON,
  kind: 'log',
  time: NOW,
  piece: pieceOf(`log/${after}`),
  after,
  first: after + 1,
  beforeLast: after + 9,
  upTo: after + 10,
  lastChecksum: 0,
  firstTime: NOW,
  lastTime: NOW,
  transactions: 10,
})

const logs = [0, 10, 20, 30, 40].map(logAfter)

describe('the log of the time for which all snapshots are kept', () => {
  it('stays with the last snapshot before that time', () => {
    const snapshots = [30, 26, 5, 1].map((hours, index) => snapshotAt(10 + 10 * index, NOW - hours * HOUR))
    const { logs: gone } = expiredBackups({ snapshots, logs }, RULES, NOW)
    expect(gone).toEqual(logs.slice(0, 1))
  })

  it('stays where the newest snapshot is of a member whose clock was far behind', () => {
    const snapshots = [snapshotAt(10, NOW - 30 * HOUR), snapshotAt(20, NOW - 5 * HOUR), snapshotAt(40, 0)]
    expect(expiredBackups({ snapshots, logs }, RULES, NOW)).toEqual({ snapshots: [], logs: logs.slice(0, 0) })
  })

  it('stays where a snapshot between others is of such a member', () => {
    const snapshots = [snapshotAt(10, NOW - 5 * HOUR), snapshotAt(30, 0), snapshotAt(40, NOW - HOUR)]
    expect(expiredBackups({ snapshots, logs }, RULES, NOW).logs).toEqual([])
  })
})
