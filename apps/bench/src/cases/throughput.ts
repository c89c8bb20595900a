import { load } from '../load.ts'
import { withPeer, loadArgs, type Case, type BenchOptions, type CaseContext } from './case.ts'

const aims = {
  1: { get: 4, set: 3, create: 3, mixed: 4 },
  3: { get: 3, set: 3, create: 3, mixed: 3 },
} as const
type Work = keyof (typeof aims)[1]
const works = Object.keys(aims[1]) as Work[]

const where = (members: number): string => (members === 1 ? '' : `, ${members} servers`)
const perSecond = (work: Work, members: number): string => `${work} per second${where(members)}`

/** As many requests as there are answers. */
async function throughput(setting: CaseContext, members: 1 | 3): Promise<void> {
  const { options: choices, note } = setting
  await withPeer(setting, members, async (peer) => {
    // Java compiles what it runs often, and is to be measured after that.
    await load(peer.servers, '-m', 'mixed', ...loadArgs({ ...choices, seconds: Math.max(4, choices.seconds) }))
    for (const work of works) {
      const before = peer.cpuSeconds()
      const [figures] = await load(peer.servers, '-m', work, ...loadArgs(choices))
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
      peer.residentBytes() / 1e6,
    )
  })
}

/**
 * Finds the most that Apache ZooKeeper can do, then offers exactly that rate to both, without waiting for answers, and counts
 * each request from when it was due.
 */
async function atPeersPeak(setting: CaseContext, members: 1 | 3): Promise<void> {
  const { options: choices, note, figures, kind } = setting
  const peakOf = (work: string): string => `${work} at the peer's peak: offered${where(members)}`
  const found = (work: string): number | undefined =>
    figures.find(({ name }) => name === peakOf(work))?.values.apache.at(-1)
  const works = (['get', 'set', 'mixed'] as const).filter(
    (work) => kind === 'apache' || found(work) !== undefined,
  )
  if (works.length === 0) return console.log('  without Apache ZooKeeper there is no peak of it')
  await withPeer(setting, members, async (peer) => {
    await load(peer.servers, '-m', 'mixed', ...loadArgs({ ...choices, seconds: Math.max(4, choices.seconds) }))
    for (const work of works) {
      const offered =
        (kind === 'apache' ? undefined : found(work)) ?? (await peakNow(peer.servers, work, choices))
      if (kind === 'apache') note({ name: peakOf(work), unit: 'op/s', better: 'higher' }, offered)
      const [told] = await load(peer.servers, '-m', work, ...loadArgs(choices), '-r', String(offered))
      const answered = `${work} at the peer's peak: answered${where(members)}`
      note({ name: answered, unit: 'op/s', better: 'higher' }, told!.perSecond)
      const name = `${work} p99 at the peer's peak${where(members)}`
      note({ name, unit: 'ms', better: 'lower', aim: 0.2 }, told!.p99 / 1000)
    }
  })
}

async function peakNow(servers: string, work: string, choices: BenchOptions): Promise<number> {
  const [most] = await load(servers, '-m', work, ...loadArgs(choices))
  return Math.floor(most!.perSecond)
}

/** One request at a time. */
async function latency(setting: CaseContext, members: 1 | 3): Promise<void> {
  const { options: choices, note } = setting
  const aim = members === 1 ? { get: 0.6, set: 0.9 } : { get: 0.7, set: 0.7 }
  await withPeer(setting, members, async (peer) => {
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
    about:
      'how long requests take at the rate that is the most Apache ZooKeeper can do, which is found first',
    first: 'apache',
    run: (setting) => atPeersPeak(setting, members),
  },
  {
    name: `latency-${members}`,
    about: 'one client that waits for each answer',
    run: (setting) => latency(setting, members),
  },
])
