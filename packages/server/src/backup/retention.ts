import { BackupUsageError } from './errors.ts'
import { needsLog, type LogManifest, type SnapshotManifest } from './manifest.ts'

/** For backups up to an age, the time of which one is kept; 0 keeps all. In milliseconds. */
export interface RetentionRule {
  readonly maxAgeMs: number
  readonly everyMs: number
}

const UNITS: Readonly<Record<string, number>> = {
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 7 * 86_400_000,
}

/** Reads rules such as `24h:all,14d:1d,90d:7d`. Throws a `BackupError` that says what was expected. */
export function parseRetention(text: string): readonly RetentionRule[] {
  const rules = text.split(',').map((part) => {
    const [age, every, ...rest] = part.trim().split(':')
    const maxAgeMs = timeOf(age)
    const everyMs = every === 'all' ? 0 : timeOf(every)
    if (maxAgeMs === undefined || everyMs === undefined || rest.length > 0)
      throw new BackupUsageError(
        `Expected rules as AGE:EVERY, such as 24h:all,14d:1d,90d:7d, got ${JSON.stringify(part)}. Units are m, h, d and w.`,
      )
    return { maxAgeMs, everyMs }
  })
  return rules.toSorted((a, b) => a.maxAgeMs - b.maxAgeMs)
}

function timeOf(text: string | undefined): number | undefined {
  const [, number, unit] = /^(\d{1,6})([mhdw])$/.exec(text ?? '') ?? []
  return number === undefined ? undefined : Number(number) * UNITS[unit!]!
}

/** What retention removes. */
export interface Expired {
  readonly snapshots: readonly SnapshotManifest[]
  readonly logs: readonly LogManifest[]
}

/**
 * Returns the backups that no rule keeps. Of the snapshots in one period the oldest is kept, so that the choice does not change as
 * time passes. The newest snapshot always stays, and so does the last one before the time for which all stay, with the log from it on:
 * each moment of that time can be restored. Other log stays where a kept snapshot needs it to be exact.
 */
export function expiredBackups(
  {
    snapshots,
    logs,
  }: { readonly snapshots: readonly SnapshotManifest[]; readonly logs: readonly LogManifest[] },
  rules: readonly RetentionRule[],
  now: number,
): Expired {
  const kept = new Set<SnapshotManifest>()
  const periods = new Set<string>()
  for (const snapshot of snapshots.toSorted((a, b) => a.time - b.time)) {
    const rule = rules.find(({ maxAgeMs }) => now - snapshot.time <= maxAgeMs)
    if (rule === undefined) continue
    const period = `${rule.maxAgeMs} ${Math.floor(snapshot.time / rule.everyMs)}`
    if (rule.everyMs > 0 && periods.has(period)) continue
    periods.add(period)
    kept.add(snapshot)
  }
  const newest = snapshots.at(-1)
  if (newest !== undefined) kept.add(newest)
  // A restore to a moment in the time of all snapshots begins with the last snapshot before that time, and needs the log after it.
  const all = Math.max(0, ...rules.filter(({ everyMs }) => everyMs === 0).map(({ maxAgeMs }) => maxAgeMs))
  // Clocks of members differ, and jump: a time long ago does not make a snapshot older than one with an earlier transaction.
  const begin = snapshots.findIndex(({ time }) => now - time < all)
  const first = begin < 0 ? newest : snapshots[Math.max(0, begin - 1)]
  if (first !== undefined) kept.add(first)
  const isNeeded = (log: LogManifest): boolean =>
    first === undefined ||
    log.upTo >= first.zxid ||
    // The next backup goes on from it.
    log === logs.at(-1) ||
    [...kept].some((snapshot) => needsLog(snapshot, log))
  return {
    snapshots: snapshots.filter((one) => !kept.has(one)),
    logs: logs.filter((one) => !isNeeded(one)),
  }
}
