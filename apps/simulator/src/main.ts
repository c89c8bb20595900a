import { parseArgs } from 'node:util'
import { campaign, runSeeds, type CampaignOptions } from './campaign/campaign.ts'
import { runForParent } from './campaign/child-process.ts'
import { replay } from './campaign/replay.ts'
import { runInProcesses } from './campaign/run-in-processes.ts'
import { featuresOf, numberOf } from './options.ts'

const { values } = parseArgs({
  args: process.argv.slice(2).filter((argument) => argument !== '--'),
  options: {
    seeds: { type: 'string', default: '20' },
    start: { type: 'string', default: '1' },
    seed: { type: 'string' },
    plan: { type: 'string' },
    servers: { type: 'string' },
    minutes: { type: 'string' },
    shrink: { type: 'boolean', default: false },
    trace: { type: 'string' },
    twice: { type: 'boolean', default: false },
    quiet: { type: 'boolean', default: false },
    processes: { type: 'string', default: '1' },
    with: { type: 'string', default: '' },
    part: { type: 'string' },
  },
})

const options = {
  ...(values.servers === undefined ? {} : { servers: numberOf(values.servers, 'servers') }),
  ...(values.minutes === undefined ? {} : { minutes: numberOf(values.minutes, 'minutes') }),
  ...(values.with === '' ? {} : { features: featuresOf(values.with) }),
}

/** Resolves to the number of seeds with violations. */
function run(): Promise<number> {
  if (values.seed !== undefined || values.plan !== undefined) {
    const { plan, shrink, trace } = values
    return replay({
      seed: values.seed === undefined ? undefined : numberOf(values.seed, 'seed'),
      plan,
      ...options,
      shrink,
      trace,
    })
  }
  const { shrink, twice, quiet } = values
  const processes = numberOf(values.processes, 'processes')
  const range = { seeds: numberOf(values.seeds, 'seeds'), start: numberOf(values.start, 'start') }
  return campaign({ ...range, ...options, shrink, twice, quiet }, async (all) =>
    processes > 1 ? runInProcesses(all, processes) : [await runSeeds(all)],
  )
}

if (values.part === undefined) process.exitCode = (await run()) > 0 ? 1 : 0
else await runForParent(() => runSeeds(JSON.parse(values.part!) as CampaignOptions))
