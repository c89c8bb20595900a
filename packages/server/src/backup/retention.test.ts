import { describe, expect, it } from 'vitest'
import { expiredBackups, parseRetention } from './retention.ts'
import { logBetween, snapshotAt } from './testing/manifests.ts'

const HOUR = 3_600_000
const NOW = 1_800_000_000_000
const RULES = parseRetention('24h:all,14d:1d')

const logs = [0, 10, 20, 30, 40].map((after) => logBetween(after, after + 10))

describe('the log of the time for which all snapshots are kept', () => {
  it('stays with the last snapshot before that time', () => {
    const snapshots = [30, 26, 5, 1].map((hours, index) =>
      snapshotAt(10 + 10 * index, { time: NOW - hours * HOUR }),
    )
    const { logs: gone } = expiredBackups({ snapshots, logs }, RULES, NOW)
    expect(gone).toEqual(logs.slice(0, 1))
  })

  it('stays where the newest snapshot is of a member whose clock was far behind', () => {
    const snapshots = [
      snapshotAt(10, { time: NOW - 30 * HOUR }),
      snapshotAt(20, { time: NOW - 5 * HOUR }),
      snapshotAt(40),
    ]
    expect(expiredBackups({ snapshots, logs }, RULES, NOW)).toEqual({ snapshots: [], logs: logs.slice(0, 0) })
  })

  it('stays where a snapshot between others is of such a member', () => {
    const snapshots = [
      snapshotAt(10, { time: NOW - 5 * HOUR }),
      snapshotAt(30),
      snapshotAt(40, { time: NOW - HOUR }),
    ]
    expect(expiredBackups({ snapshots, logs }, RULES, NOW).logs).toEqual([])
  })
})

describe('rules of retention', () => {
  it('are read in any order, with times in minutes, hours, days and weeks', () => {
    expect(parseRetention('2w:1d, 30m:all,12h:90m')).toEqual([
      { maxAgeMs: 0.5 * HOUR, everyMs: 0 },
      { maxAgeMs: 12 * HOUR, everyMs: 1.5 * HOUR },
      { maxAgeMs: 14 * 24 * HOUR, everyMs: 24 * HOUR },
    ])
  })

  it.each([
    '',
    '1d',
    '1d:',
    ':1d',
    '1d:all:1d',
    'd:all',
    '1d:none',
    '1y:all',
    'x1d:all',
    '1dx:all',
    '1234567d:all',
  ])('are refused where a part is none: %j', (text) => {
    expect(() => parseRetention(`1h:all,${text}`)).toThrow(
      `Expected rules as AGE:EVERY, such as 24h:all,14d:1d,90d:7d, got ${JSON.stringify(text)}.`,
    )
  })
})

describe('snapshots', () => {
  /** Returns the ages in hours of the snapshots that are removed. The day has begun 8 hours ago. */
  const goneOf = (rules: string, ages: readonly number[]): number[] => {
    const snapshots = ages.map((hours, index) => snapshotAt(index + 1, { time: NOW - hours * HOUR }))
    const { snapshots: gone } = expiredBackups({ snapshots, logs: [] }, parseRetention(rules), NOW)
    return gone.map(({ time }) => (NOW - time) / HOUR)
  }

  it('stay where they are the oldest of a period, up to the age of the rule, and the newest in any case', () => {
    expect(goneOf('3d:1d', [30, 20, 9, 8, 7, 1])).toEqual([20, 9, 7])
    expect(goneOf('3d:1d', [72.5, 72, 1])).toEqual([72.5])
    // The clock of a member was ahead.
    expect(goneOf('3d:1d', [9, 20, 15, 1])).toEqual([9, 15])
    expect(goneOf('3d:1d', [100, 90])).toEqual([100])
    expect(goneOf('3d:1d', [])).toEqual([])
  })

  it('are judged by the rule with the lowest age that covers theirs, each with periods of its own', () => {
    // The last one before the day of all snapshots stays: 24 hours ago to the second.
    expect(goneOf('1d:all,3d:1d', [28, 26, 25, 24, 24, 2, 1])).toEqual([26, 25])
    // Of one day, the oldest of each rule stays.
    expect(goneOf('12h:1d,3d:1d', [20, 15, 12, 11, 9, 1])).toEqual([15, 11, 9])
    expect(goneOf('2h:all,6h:all,3d:1d', [20, 15, 9, 5, 3, 1])).toEqual([15])
  })

  it('stay where there is nothing to keep but the last one before the time of all', () => {
    expect(goneOf('4h:all', [50, 40, 30, 3])).toEqual([50, 40])
    expect(goneOf('4h:all', [5, 4])).toEqual([5])
  })
})

describe('the log', () => {
  it('stays without any snapshot', () => {
    expect(expiredBackups({ snapshots: [], logs }, RULES, NOW).logs).toEqual([])
  })

  it('stays where a kept snapshot needs it, and its last part in any case', () => {
    const snapshots = [
      snapshotAt(15, { time: NOW - 240 * HOUR, exactAt: 25 }),
      snapshotAt(100, { time: NOW }),
    ]
    const { logs: gone } = expiredBackups({ snapshots, logs }, parseRetention('14d:1d'), NOW)
    expect(gone).toEqual([logs[0], logs[3]])
  })
})
