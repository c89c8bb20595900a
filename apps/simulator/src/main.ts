import { parseArgs } from 'node:util'
import { FEATURES, type Feature } from './simulation/plan.ts'
import { campaign, runSeeds, type CampaignOptions } from './campaign/campaign.ts'
import { runForParent } from './campaign/child-process.ts'
import { replay } from './campaign/replay.ts'
import { runInProcesses } from './campaign/run-in-processes.ts'

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

const number = (text: string | undefined, name: string): number | undefined => {
  if (text === undefined) return undefined
  const value = Number(text)
  if (Number.isFinite(value) && value >= 0) return value
  throw new RangeError(`Expected --${name} to be a number from 0 up, got ${text}`)
}

const featureOf = (name: string): Feature => {
  const feature = FEATURES.find((one) => one === name)
  if (feature !== undefined) return feature
  throw new RangeError(`Expected --with to name some of ${FEATURES.join(', ')}, got ${name}`)
}

const options = {
  ...(values.servers === undefined ? {} : { servers: number(values.servers, 'servers')! }),
  ...(values.minutes === undefined ? {} : { minutes: number(values.minutes, 'minutes')! }),
  ...(values.with === '' ? {} : { features: values.with.split(',').map(featureOf) }),
}

/** Resolves to the number of seeds with violations. */
function run(): Promise<number> {
  if (values.seed !== undefined || values.plan !== undefined) {
    const { plan, shrink, trace } = values
    return replay({ seed: number(values.seed, 'seed'), plan, ...options, shrink, trace })
  }
  const { shrink, twice, quiet } = values
  const processes = number(values.processes, 'processes')!
  const range = { seeds: number(values.seeds, 'seeds')!, start: number(values.start, 'start')! }
  return campaign({ ...range, ...options, shrink, twice, quiet }, async (all) =>
    processes > 1 ? runInProcesses(all, processes) : [await runSeeds(all)],
  )
}

if (values.part === undefined) process.exitCode = (await run()) > 0 ? 1 : 0
else await runForParent(() => runSeeds(JSON.parse(values.part!) as CampaignOptions))
