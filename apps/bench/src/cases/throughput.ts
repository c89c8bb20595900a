import { load } from '../load.ts'
import { median } from '../figures.ts'
import { on, shape, type Case, type Setting } from './case.ts'

const aims = {
  1: { get: 4, set: 3, create: 3, mixed: 4 },
  3: { get: 3, set: 3, create: 3, mixed: 3 },
} as const
type Work = keyof (typeof aims)[1]
const works = Object.keys(aims[1]) as Work[]

const where = (members: number): string => (members === 1 ? '' : `, ${members} servers`)
const perSecond = (work: Work, members: number): string => `${work} per second${where(members)}`

/** As many requests as there are answers. */
async function throughput(setting: Setting, members: 1 | 3): Promise<void> {
  const { choices, note } = setting
  await on(setting, members, async (peer) => {
    // Java compiles what it runs often, and is to be measured after that.
    await load(peer.servers, '-m', 'mixed', ...shape({ ...choices, seconds: Math.max(4, choices.seconds) }))
    for (const work of works) {
      const before = peer.cpuSeconds()
      const [figures] = await load(peer.servers, '-m', work, ...shape(choices))
      const cpu = peer.cpuSeconds() - before
      const aim = aims[members][work]
      note({ name: perSecond(work, members), unit: 'op/s', better: 'higher', aim }, figures!.perSecond)
      note({ name: `${work} p99${where(members)}`, unit: 'ms', better: 'lower' }, figures!.p99 / 1000)
      // The warm-up is in the processor time too, so it is charged to 1.25 times what was counted.
      const each = (cpu * 1e6) / (figures!.operations * 1.25)
      note({ name: `${work} server CPU${where(members)}`, unit: 'µs/op', better: 'lower' }, each)
    }
    note(
      { name: `resident memory after it${where(members)}`, unit: 'MB', better: 'lower' },
      peer.resident() / 1e6,
    )
  })
}

/** How long we take when we are given what the peer can just do. */
async function atPeersPeak(setting: Setting, members: 1 | 3): Promise<void> {
  const { choices, note, figures } = setting
  const peak = (name: string): number => median(figures.find((one) => one.name === name)?.values.apache ?? [])
  await on(setting, members, async (peer) => {
    await load(peer.servers, '-m', 'mixed', ...shape({ ...choices, seconds: 1 }))
    for (const work of ['get', 'set', 'mixed'] as const) {
      const rate = peak(perSecond(work, members))
      if (Number.isNaN(rate)) continue
      const [told] = await load(peer.servers, '-m', work, ...shape(choices), '-r', String(Math.floor(rate)))
      const name = `${work} p99 at the peer's peak${where(members)}`
      const figure = { name, unit: 'ms', better: 'lower', aim: 0.2 } as const
      note(figure, told!.p99 / 1000)
      setting.noteApache(figure, peak(`${work} p99${where(members)}`))
    }
  })
}

/** One request at a time. */
async function latency(setting: Setting, members: 1 | 3): Promise<void> {
  const { choices, note } = setting
  const aim = members === 1 ? { get: 0.6, set: 0.9 } : { get: 0.7, set: 0.7 }
  await on(setting, members, async (peer) => {
    for (const work of ['get', 'set'] as const) {
      const [told] = await load(peer.servers, '-m', work, '-c', '1', '-d', '1', '-s', String(choices.seconds))
      const name = `one client ${work} p50${where(members)}`
      note({ name, unit: 'µs', better: 'lower', aim: aim[work] }, told!.p50)
    }
  })
}

const both = [1, 3] as const

export const throughputCases: readonly Case[] = both.flatMap((members): Case[] => [
  {
    name: `throughput-${members}`,
    about: `gets, sets, creations and nine reads to one write on ${members === 1 ? 'one server' : 'three servers'}, as many as are answered`,
    run: (setting) => throughput(setting, members),
  },
  {
    name: `peak-${members}`,
    about: 'how long requests take at the rate that is the most the peer can do; after throughput',
    only: 'zabra',
    run: (setting) => atPeersPeak(setting, members),
  },
  {
    name: `latency-${members}`,
    about: 'one client that waits for each answer',
    run: (setting) => latency(setting, members),
  },
])
