import { fork } from 'node:child_process'
import type { CampaignOptions, Outcome, Range } from './campaign.ts'

/** Splits a range of seeds into parts of nearly equal size. */
export function splitSeeds({ seeds, start }: Range, parts: number): Range[] {
  const count = Math.max(1, Math.min(parts, seeds))
  const bounds = Array.from({ length: count + 1 }, (_, index) => Math.round((seeds * index) / count))
  return bounds.slice(1).map((end, index) => ({ start: start + bounds[index]!, seeds: end - bounds[index]! }))
}

/** Runs seeds in several processes at a time. Their output is printed as it comes. */
export function runInProcesses(options: CampaignOptions, processes: number): Promise<Outcome[]> {
  return Promise.all(splitSeeds(options, processes).map((range) => runInChild({ ...options, ...range })))
}

/** Runs a part in a child process, which reports its result in one message. */
function runInChild(options: CampaignOptions): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    let outcome: Outcome | undefined
    const child = fork(process.argv[1]!, ['--part', JSON.stringify(options)], {
      execArgv: ['--enable-source-maps'],
    })
    child.on('message', (message) => (outcome = message as Outcome))
    child.on('error', reject)
    child.on('exit', (code, signal) => {
      if (outcome !== undefined) return resolve(outcome)
      const { start, seeds } = options
      reject(
        new Error(
          `Expected an outcome of seeds ${start} to ${start + seeds - 1}, but their process ended with ${signal ?? code}`,
        ),
      )
    })
  })
}
