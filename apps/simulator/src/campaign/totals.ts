import type { Failure, Outcome } from './outcome.ts'

/** Seeds from `from` to `to`, both included. */
export type SeedRange = readonly [from: number, to: number]

/** What was played of the plans of one commit. */
export interface CommitTotals {
  readonly commit: string
  /** The options of the plans, as on the command line; empty without any. */
  readonly options: string
  /** Seeds played, ascending and disjoint. */
  readonly played: readonly SeedRange[]
  readonly eventCount: number
  readonly virtualMs: number
  readonly writes: number
  /** Processor time of the workers, in milliseconds. */
  readonly processorMs: number
  readonly failures: readonly Failure[]
}

/** The contents of the file of a campaign. */
export interface CampaignTotals {
  readonly commits: readonly CommitTotals[]
}

/** A batch that a worker has played. */
export interface PlayedBatch {
  readonly range: SeedRange
  readonly outcome: Pick<Outcome, 'eventCount' | 'virtualMs' | 'counts' | 'failures'>
  readonly processorMs: number
}

const isOf =
  (commit: string, options: string) =>
  (one: CommitTotals): boolean =>
    one.commit === commit && one.options === options

/** Returns what was played of the plans of a commit with these options. */
export function totalsOf(totals: CampaignTotals, commit: string, options: string): CommitTotals {
  const found = totals.commits.find(isOf(commit, options))
  return (
    found ?? {
      commit,
      options,
      played: [],
      eventCount: 0,
      virtualMs: 0,
      writes: 0,
      processorMs: 0,
      failures: [],
    }
  )
}

/** Returns the totals with one more batch. */
export function withBatch(
  totals: CampaignTotals,
  commit: string,
  options: string,
  { range, outcome, processorMs }: PlayedBatch,
): CampaignTotals {
  const before = totalsOf(totals, commit, options)
  const after: CommitTotals = {
    commit,
    options,
    played: joined([...before.played, range]),
    eventCount: before.eventCount + outcome.eventCount,
    virtualMs: before.virtualMs + outcome.virtualMs,
    writes: before.writes + (outcome.counts['writes'] ?? 0),
    processorMs: before.processorMs + processorMs,
    failures: [...before.failures, ...outcome.failures],
  }
  return { commits: [...totals.commits.filter((one) => !isOf(commit, options)(one)), after] }
}

/** Yields batches of the seeds of a range that were not played. */
export function* batchesOf(
  [from, to]: SeedRange,
  played: readonly SeedRange[],
  size: number,
): Generator<SeedRange> {
  let next = from
  for (const [first, last] of [...joined(played), [to + 1, to + 1] as const]) {
    if (last < next) continue
    const end = Math.min(first - 1, to)
    for (; next <= end; next += size) yield [next, Math.min(next + size - 1, end)]
    next = last + 1
    if (next > to) return
  }
}

/** Returns the first seed above all that were played at any commit; `from` when there are none. */
export function nextSeed({ commits }: CampaignTotals, from: number): number {
  return Math.max(from, ...commits.flatMap(({ played }) => played.map(([, to]) => to + 1)))
}

export const seedsIn = (played: readonly SeedRange[]): number =>
  played.reduce((sum, [from, to]) => sum + to - from + 1, 0)

/** Sorts ranges and joins those that touch. */
function joined(ranges: readonly SeedRange[]): SeedRange[] {
  const result: [number, number][] = []
  for (const [from, to] of ranges.toSorted(([a], [b]) => a - b)) {
    const last = result.at(-1)
    if (last !== undefined && from <= last[1] + 1) last[1] = Math.max(last[1], to)
    else result.push([from, to])
  }
  return result
}

/** Returns the totals as a page of the lab. */
export function formatTotals({ commits }: CampaignTotals): string {
  const number = (value: number): string => Math.round(value).toLocaleString('en-US')
  const rows = commits.map((one) => {
    const seeds = one.played.map(([from, to]) => `${from} to ${to}`).join(', ')
    const rate = one.processorMs === 0 ? 0 : (one.eventCount * 1000) / one.processorMs
    return `| ${one.commit} | ${one.options} | ${seeds} | ${number(seedsIn(one.played))} | ${number(one.eventCount)} | ${number(rate)} | ${number(one.writes)} | ${(one.virtualMs / 3_600_000).toFixed(1)} | ${one.failures.length} |`
  })
  const sum = (of: (one: CommitTotals) => number): string =>
    number(commits.reduce((all, one) => all + of(one), 0))
  const failures = commits.flatMap(({ commit, failures: all }) =>
    all.map(
      ({ checker, message, replay }) =>
        `- ${commit}, ${checker}: ${message.replaceAll(/\s+/g, ' ').slice(0, 300)}\n  \`${replay}\``,
    ),
  )
  return [
    '# Seeds played by commit',
    '',
    'Written by `pnpm sim campaign`. A commit with `+` had changes that were not committed. Events are counted per second of processor time.',
    '',
    '| commit | options | seeds | number | events | events a second | writes | hours of the world | violations |',
    '| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |',
    ...rows,
    `| all | | | ${sum(({ played }) => seedsIn(played))} | ${sum(({ eventCount }) => eventCount)} | | ${sum(({ writes }) => writes)} | ${(commits.reduce((all, one) => all + one.virtualMs, 0) / 3_600_000).toFixed(1)} | ${sum((one) => one.failures.length)} |`,
    '',
    ...(failures.length === 0 ? [] : ['## Violations', '', ...failures, '']),
  ].join('\n')
}
