import { constants, getPriority, setPriority } from 'node:os'
import { parseArgs } from 'node:util'
import { featuresOf, numberOf } from '../options.ts'
import { runSeeds } from './campaign.ts'
import { longCampaign, type BatchRequest } from './long-campaign.ts'

const { values } = parseArgs({
  args: process.argv.slice(2),
  options: {
    seeds: { type: 'string' },
    start: { type: 'string' },
    servers: { type: 'string' },
    minutes: { type: 'string' },
    with: { type: 'string' },
    processes: { type: 'string', default: '1' },
    commit: { type: 'string', default: 'unknown' },
    file: { type: 'string', default: 'campaigns.json' },
    worker: { type: 'boolean', default: false },
  },
})

/** Plays the batches that the parent sends, one after another, until it disconnects. */
function work(): void {
  // The parent may have a lower priority already.
  setPriority(Math.max(getPriority(), constants.priority.PRIORITY_BELOW_NORMAL))
  // A seed is not finished for a parent that is gone.
  process.once('disconnect', () => process.exit())
  process.on('message', ({ range, plans }: BatchRequest) => {
    const [from, to] = range
    const before = process.cpuUsage()
    const options = { ...plans, start: from, seeds: to - from + 1, shrink: false, twice: false, quiet: true }
    void runSeeds(options).then((outcome) => {
      const { user, system } = process.cpuUsage(before)
      // Where the parent is gone, `disconnect` ends this process.
      process.send!({ range, outcome, processorMs: (user + system) / 1000 }, () => {})
    })
  })
}

if (values.worker) work()
else
  process.exitCode =
    (await longCampaign({
      plans: {
        ...(values.servers === undefined ? {} : { servers: numberOf(values.servers, 'servers') }),
        ...(values.minutes === undefined ? {} : { minutes: numberOf(values.minutes, 'minutes') }),
        ...(values.with === undefined ? {} : { features: featuresOf(values.with) }),
      },
      seeds: values.seeds === undefined ? undefined : numberOf(values.seeds, 'seeds'),
      start: values.start === undefined ? undefined : numberOf(values.start, 'start'),
      processes: Math.max(1, numberOf(values.processes, 'processes')),
      commit: values.commit,
      file: values.file,
    })) > 0
      ? 1
      : 0
