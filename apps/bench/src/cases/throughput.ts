import { load } from '../load.ts'
import { withPeer, loadArgs, type Case, type BenchOptions, type CaseContext } from './case.ts'
import type { Peer } from '../peers.ts'

const aims = {
  1: { get: 4, set: 3, create: 3, mixed: 4 },
  3: { get: 3, set: 3, create: 3, mixed: 3 },
} as const
type Work = keyof (typeof aims)[1]
const works = Object.keys(aims[1]) as Work[]

const where = (members: number): string => (members === 1 ? '' : `, ${members} servers`)
const perSecond = (work: Work, members: number): string => `${work} per second${where(members)}`

/** Runs a load that is not measured, for Java's just-in-time compiler. */
const warmUp = (peer: Peer, options: BenchOptions): Promise<unknown> =>
  load(peer.servers, '-m', 'mixed', ...loadArgs({ ...options, seconds: Math.max(4, options.seconds) }))

/** Measures closed-loop throughput: a new request for each reply. */
async function throughput(context: CaseContext, members: 1 | 3): Promise<void> {
  const { options, note } = context
  await withPeer(context, members, async (peer) => {
    await warmUp(peer, options)
    for (const work of works) {
      const before = peer.cpuSeconds()
      const [figures] = await load(peer.servers, '-m', work, ...loadArgs(options))
      const cpu = peer.cpuSeconds() - before
      const aim = aims[members][work]
      note({ name: perSecond(work, members), unit: 'op/s', better: 'higher', aim }, figures!.perSecond)
      note({ name: `${work} p99${where(members)}`, unit: 'ms', better: 'lower' }, figures!.p99 / 1000)
      // The processor time includes the warm-up, which is a quarter of the counted operations.
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
 * Finds the peak throughput of Apache ZooKeeper, then offers exactly that rate to both peers in an open loop and measures latency
 * from when each request was due.
 */
async function atPeersPeak(context: CaseContext, members: 1 | 3): Promise<void> {
  const { options, note, figures, kind } = context
  const peakOf = (work: string): string => `${work} at the peer's peak: offered${where(members)}`
  const found = (work: string): number | undefined =>
    figures.find(({ name }) => name === peakOf(work))?.values.apache.at(-1)
  const works = (['get', 'set', 'mixed'] as const).filter(
    (work) => kind === 'apache' || found(work) !== undefined,
  )
  if (works.length === 0)
    return console.log('  skipped: the peak is that of Apache ZooKeeper, which is not measured')
  await withPeer(context, members, async (peer) => {
    await warmUp(peer, options)
    for (const work of works) {
      const offered =
        (kind === 'apache' ? undefined : found(work)) ?? (await peakNow(peer.servers, work, options))
      if (kind === 'apache') note({ name: peakOf(work), unit: 'op/s', better: 'higher' }, offered)
      const [result] = await load(peer.servers, '-m', work, ...loadArgs(options), '-r', String(offered))
      const answered = `${work} at the peer's peak: answered${where(members)}`
      note({ name: answered, unit: 'op/s', better: 'higher' }, result!.perSecond)
      const name = `${work} p99 at the peer's peak${where(members)}`
      note({ name, unit: 'ms', better: 'lower', aim: 0.2 }, result!.p99 / 1000)
    }
  })
}

async function peakNow(servers: string, work: string, options: BenchOptions): Promise<number> {
  const [most] = await load(servers, '-m', work, ...loadArgs(options))
  return Math.floor(most!.perSecond)
}

/** Measures the latency of one client with one request in flight. */
async function latency(context: CaseContext, members: 1 | 3): Promise<void> {
  const { options, note } = context
  const aim = members === 1 ? { get: 0.6, set: 0.9 } : { get: 0.7, set: 0.7 }
  await withPeer(context, members, async (peer) => {
    for (const work of ['get', 'set'] as const) {
      const [result] = await load(
        peer.servers,
        '-m',
        work,
        '-c',
        '1',
        '-d',
        '1',
        '-s',
        String(options.seconds),
      )
      const name = `one client ${work} p50${where(members)}`
      note({ name, unit: 'µs', better: 'lower', aim: aim[work] }, result!.p50)
    }
  })
}

const both = [1, 3] as const

export const throughputCases: readonly Case[] = both.flatMap((members): Case[] => [
  {
    name: `throughput-${members}`,
    about: `gets, sets, creations and nine reads to one write on ${members === 1 ? 'one server' : 'three servers'}, in a closed loop`,
    run: (context) => throughput(context, members),
  },
  {
    name: `peak-${members}`,
    about: 'latency at the peak throughput of Apache ZooKeeper, which is found first',
    first: 'apache',
    run: (context) => atPeersPeak(context, members),
  },
  {
    name: `latency-${members}`,
    about: 'latency of one client with one request in flight',
    run: (context) => latency(context, members),
  },
])
