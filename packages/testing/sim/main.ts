import { parseArgs } from 'node:util'
import { campaign } from './campaign.ts'
import { replay } from './replay.ts'

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
  },
})

const number = (text: string | undefined, name: string): number | undefined => {
  if (text === undefined) return undefined
  const value = Number(text)
  if (Number.isFinite(value) && value >= 0) return value
  throw new RangeError(`Expected --${name} to be a number from 0 up, got ${text}`)
}

const options = {
  ...(values.servers === undefined ? {} : { servers: number(values.servers, 'servers')! }),
  ...(values.minutes === undefined ? {} : { minutes: number(values.minutes, 'minutes')! }),
}
const failed =
  values.seed !== undefined || values.plan !== undefined
    ? await replay({
        seed: number(values.seed, 'seed'),
        plan: values.plan,
        ...options,
        shrink: values.shrink,
        trace: values.trace,
      })
    : await campaign({
        seeds: number(values.seeds, 'seeds')!,
        start: number(values.start, 'start')!,
        ...options,
        shrink: values.shrink,
        twice: values.twice,
        quiet: values.quiet,
      })
process.exitCode = failed > 0 ? 1 : 0
