import { runInChild } from './child-process.ts'
import type { CampaignOptions, Range } from './campaign.ts'
import type { Outcome } from './outcome.ts'

/** Splits a range of seeds into parts of nearly equal size. */
export function splitSeeds({ seeds, start }: Range, parts: number): Range[] {
  const count = Math.max(1, Math.min(parts, seeds))
  const bounds = Array.from({ length: count + 1 }, (_, index) => Math.round((seeds * index) / count))
  return bounds.slice(1).map((end, index) => ({ start: start + bounds[index]!, seeds: end - bounds[index]! }))
}

/** Runs seeds in several processes at a time. Their output is printed as it comes. */
export function runInProcesses(options: CampaignOptions, processes: number): Promise<Outcome[]> {
  return Promise.all(
    splitSeeds(options, processes).map((range) =>
      runInChild<Outcome>(
        ['--part', JSON.stringify({ ...options, ...range })],
        `seeds ${range.start} to ${range.start + range.seeds - 1}`,
      ),
    ),
  )
}
