import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { OpCode } from '@zabra/protocol'
import { busyFlags } from '../busy.ts'
import { median } from '../figures.ts'
import { holdSessions, load } from '../load.ts'
import { openSession } from '../open-session.ts'
import { fourLetterWord, freePorts, type Peer } from '../peers.ts'
import { loadArgs, scaled, withNodeFlags, type BenchOptions, type Case, type CaseContext } from './case.ts'
import { create, measureDuring, numbered } from './holds.ts'

interface Way {
  readonly name: string
  readonly settings: (folder: string, adminPort: number) => Readonly<Record<string, string | number>>
  /** Paths of the HTTP port that are read each second meanwhile. */
  readonly probes?: readonly string[]
  /** What it may cost, in percent. */
  readonly limit?: number
}

const withAdminPort = (_: string, adminPort: number): Readonly<Record<string, string | number>> => ({
  'admin.enableServer': 'true',
  'admin.serverPort': adminPort,
})

const NOTHING: Way = { name: 'nothing', settings: () => ({}) }
/** What it seems to cost is the noise of the other figures. */
const NOTHING_AGAIN: Way = { name: 'nothing, again', settings: () => ({}), limit: 2 }
const METRICS: Way = {
  name: 'metrics and health each second',
  settings: withAdminPort,
  probes: ['/metrics', '/readyz'],
  limit: 2,
}
const WAYS: readonly Way[] = [
  NOTHING,
  NOTHING_AGAIN,
  METRICS,
  { name: 'top each second', settings: withAdminPort, probes: ['/api/v1/top'], limit: 2 },
  {
    name: 'an audit log',
    settings: (folder) => ({ 'audit.enable': 'true', 'audit.file': join(folder, 'audit.log') }),
    limit: 8,
  },
]
const WORKS = ['set', 'create', 'mixed'] as const
/** Servers of each way, one after another: two processes with the same settings differ by ten percent, each for its whole life. */
const SERVERS = 8
const PROBE_MS = 1000
/** What the answers may take, in milliseconds. */
const PROBE_LIMITS = [
  ['/metrics', 20],
  ['/readyz', 5],
] as const
/** Nodes that the trees of these cases hold beside those of the load. */
const NODES = 1_000_000
const SESSIONS = 10_000
const WATCHES_EACH = 100

const percentile = (values: readonly number[], share: number): number =>
  values.toSorted((one, other) => one - other)[Math.ceil(values.length * share) - 1] ?? 0

/** Reads a path of the HTTP port to its end. Resolves to the number of bytes. */
async function read(port: number, path: string, method = 'GET'): Promise<number> {
  return (await timedRead(port, path, method)).bytes
}

/** Does the same, and resolves to the milliseconds from the begin of the answer to its end as well. */
async function timedRead(
  port: number,
  path: string,
  method = 'GET',
): Promise<{ readonly bytes: number; readonly ms: number }> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, { method })
  const begun = performance.now()
  let bytes = 0
  for await (const chunk of response.body ?? []) bytes += (chunk as Uint8Array).length
  if (response.status >= 400) throw new Error(`${method} ${path} answered ${response.status}`)
  return { bytes, ms: performance.now() - begun }
}

/** How long reads of a path took, in milliseconds. */
type Times = Map<string, number[]>

/** Runs `body` while paths are read each second, and adds how long that took to `times`. */
async function whileProbing<T>(
  port: number,
  paths: readonly string[],
  times: Times,
  body: () => Promise<T>,
): Promise<T> {
  const stop = new AbortController()
  const timed = async (path: string): Promise<void> => {
    const begun = performance.now()
    await read(port, path)
    times.set(path, [...(times.get(path) ?? []), performance.now() - begun])
  }
  const probing = (async () => {
    while (!stop.signal.aborted) {
      // One after another: a page is not behind the one before.
      for (const path of paths) await timed(path)
      await wait(PROBE_MS, undefined, { signal: stop.signal }).catch(() => {})
    }
  })()
  try {
    return await body()
  } finally {
    stop.abort()
    await probing
  }
}

interface Measured {
  readonly perSecond: number
  readonly p99: number
  /** Processor time for a request, of the main thread and of the whole process, in microseconds. */
  readonly mainThread: number
  readonly cpu: number
}

/** Returns how many requests a server has received. */
async function receivedBy({ ports }: Peer): Promise<number> {
  const [, count] = /zk_packets_received\t(\d+)/.exec(await fourLetterWord(ports[0]!, 'mntr')) ?? []
  if (count === undefined) throw new Error('mntr does not say how many requests were received')
  return Number(count)
}

/** Measures one load of a server. The processor time includes the warm-up, as do the requests it is divided by. */
async function measure(peer: Peer, work: string, options: BenchOptions): Promise<Measured> {
  const before = [await receivedBy(peer), peer.mainThreadSeconds(), peer.cpuSeconds()] as const
  const [result] = await load(peer.servers, '-m', work, ...loadArgs(options))
  const [mainThread, cpu] = [peer.mainThreadSeconds(), peer.cpuSeconds()]
  const requests = (await receivedBy(peer)) - before[0]
  return {
    perSecond: result!.perSecond,
    p99: result!.p99 / 1000,
    mainThread: ((mainThread - before[1]) * 1e6) / requests,
    cpu: ((cpu - before[2]) * 1e6) / requests,
  }
}

interface MeasuredWay extends Way {
  /** By the work, for each server. */
  readonly measured: Record<string, Measured[]>
}

interface RunningWay extends MeasuredWay {
  readonly adminPort: number
  readonly peer: Peer
}

async function startWay({ start }: CaseContext, way: MeasuredWay): Promise<RunningWay> {
  const [adminPort] = await freePorts(1)
  const folder = mkdtempSync(join(tmpdir(), 'zabra-bench-operate-'))
  const peer = await start({ folder, settings: way.settings(folder, adminPort!) })
  return { ...way, adminPort: adminPort!, peer }
}

/**
 * Measures loads of servers that are operated in these ways, in turns; each way begins as often as any other. One server of each way
 * runs at a time, so that turns are short; those that are not measured are idle.
 */
async function measureInTurns(
  context: CaseContext,
  ways: readonly Way[],
  works: readonly string[],
  times: Times,
): Promise<readonly MeasuredWay[]> {
  const { options } = context
  const measured = ways.map((way): MeasuredWay => ({ ...way, measured: {} }))
  for (let turn = 0; turn < SERVERS; turn++) {
    const running: RunningWay[] = []
    try {
      for (const way of measured) running.push(await startWay(context, way))
      // The first answers wait until their code is compiled, as the first requests do.
      for (const { peer, adminPort, probes = [] } of running)
        await whileProbing(adminPort, probes, new Map(), () =>
          load(peer.servers, '-m', 'mixed', ...loadArgs({ ...options, seconds: 3 })),
        )
      for (const work of works)
        for (let index = 0; index < running.length; index++) {
          const way = running[(turn + index) % running.length]!
          const body = (): Promise<Measured> => measure(way.peer, work, options)
          ;(way.measured[work] ??= []).push(await whileProbing(way.adminPort, way.probes ?? [], times, body))
        }
    } finally {
      for (const { peer } of running) await peer.stop()
    }
  }
  return measured
}

const cost: Case = {
  name: 'operate-cost',
  about:
    'what metrics, probes and `top` each second, and an audit log, cost a server; some 12 minutes with --seconds 2',
  only: 'zabra',
  run: async (context) => {
    const { note } = context
    const times: Times = new Map()
    const ways = await measureInTurns(context, WAYS, WORKS, times)
    for (const work of WORKS) {
      const of = (way: MeasuredWay, figure: keyof Measured): number =>
        median(way.measured[work]!.map((one) => one[figure]))
      for (const way of ways) {
        const { name, limit } = way
        note(
          { name: `${work} per second with ${name}`, unit: 'op/s', better: 'higher' },
          of(way, 'perSecond'),
        )
        note({ name: `${work} p99 with ${name}`, unit: 'ms', better: 'lower' }, of(way, 'p99'))
        const thread = `${work} main thread with ${name}`
        note({ name: thread, unit: 'µs', better: 'lower' }, of(way, 'mainThread'))
        if (limit === undefined) continue
        const more = (figure: keyof Measured): number => 100 * (of(way, figure) / of(ways[0]!, figure) - 1)
        note({ name: `${work} lost by ${name}`, unit: '%', better: 'lower', limit }, -more('perSecond'))
        note({ name: `${work} p99 more by ${name}`, unit: '%', better: 'lower', limit }, more('p99'))
        note(
          { name: `${work} main thread for ${name}`, unit: '%', better: 'lower', limit },
          more('mainThread'),
        )
        note({ name: `${work} processor time for ${name}`, unit: '%', better: 'lower', limit }, more('cpu'))
      }
    }
    for (const [path, limit] of PROBE_LIMITS)
      note(
        { name: `GET ${path} p99 under load`, unit: 'ms', better: 'lower', limit },
        percentile(times.get(path)!, 0.99),
      )
  },
}

const metricsCost: Case = {
  name: 'metrics-cost',
  about: 'what a scrape each second costs a server under writes, and how long it takes: two figures',
  only: 'zabra',
  run: async (context) => {
    const times: Times = new Map()
    const [without, scraped] = await measureInTurns(context, [NOTHING, METRICS], ['set'], times)
    const costs = scraped!.measured['set']!.map(
      ({ cpu }, turn) => 100 * (cpu / without!.measured['set']![turn]!.cpu - 1),
    )
    context.note(
      { name: 'processor time of a set for metrics each second', unit: '%', better: 'lower', limit: 1 },
      median(costs),
    )
    const [path, limit] = PROBE_LIMITS[0]
    context.note(
      { name: `GET ${path} p99 under load`, unit: 'ms', better: 'lower', limit },
      percentile(times.get(path)!, 0.99),
    )
  },
}

const holds: Case = {
  name: 'operate-holds',
  about:
    'the longest event loop hold while a server with a million znodes, 10,000 sessions and a million watches is scraped, listed and backed up',
  only: 'zabra',
  run: async (context) => {
    const nodes = scaled(context, NODES)
    const sessions = scaled(context, SESSIONS)
    const [adminPort] = await freePorts(1)
    const folder = mkdtempSync(join(tmpdir(), 'zabra-bench-operate-'))
    const peer = await withNodeFlags(context, busyFlags()).start({
      folder,
      settings: backupsOnRequest(adminPort!, join(folder, 'backups')),
    })
    try {
      const client = await openSession(peer.ports[0]!)
      await client.request(OpCode.create, (w) => create(() => '/p')(w, 0))
      await client.requestMany(nodes, OpCode.create, create(numbered('/p')))
      await client.close()
      const operate = async (): Promise<void> => {
        const test = (what: string, disturbance: () => Promise<unknown>): Promise<void> =>
          measureDuring(context, peer, what, disturbance)
        for (const [what, path] of [
          ['a scrape of /metrics', '/metrics'],
          ['/readyz', '/readyz?verbose'],
          ['the command monitor', '/commands/monitor'],
          ['the command connections', '/commands/connections'],
          ['the command dump', '/commands/dump'],
          ['the command watches_by_path', '/commands/watches_by_path'],
          ['the command watches', '/commands/watches'],
          ['the command watch_summary', '/commands/watch_summary'],
          ['a page of sessions', '/api/v1/sessions?limit=1000'],
          ['/api/v1/self, as zabra doctor asks', '/api/v1/self'],
          ['/api/v1/findings, as zabra doctor asks', '/api/v1/findings'],
          ['/api/v1/cluster', '/api/v1/cluster'],
          ['/api/v1/top', '/api/v1/top'],
        ] as const)
          await test(what, () => read(adminPort!, path))
        await test('the command snapshot under a mixed load', async () => {
          const mixed = load(peer.servers, '-m', 'mixed', '-c', '50', '-d', '8', '-r', '5000', '-s', '4')
          await wait(1500)
          const { bytes, ms } = await timedRead(adminPort!, '/commands/snapshot')
          await mixed
          const streamed = { unit: 'ms', better: 'lower', limit: 1000 } as const
          context.note({ name: '100 MB of the command snapshot', ...streamed }, (ms * 1e8) / bytes)
        })
        await test('a backup', () => backUp(adminPort!))
      }
      await holdSessions(
        peer.servers,
        { sessions, watches: WATCHES_EACH },
        { sessionsOpen() {}, watchesSet: operate },
      )
    } finally {
      await peer.stop()
    }
  },
}

/** Returns the settings of a server that anyone on this machine operates over HTTP, and that makes backups on request only. */
export const backupsOnRequest = (adminPort: number, target: string): Record<string, string | number> => ({
  ...withAdminPort('', adminPort),
  'admin.role.admin': 'ip:127.0.0.1',
  'admin.rateLimiterIntervalInMS': 0,
  'backup.target': target,
  'backup.schedule': 0,
  'backup.logInterval': 0,
})

/** Makes a backup and waits until it is there. */
export async function backUp(port: number): Promise<void> {
  const ask = async () => {
    const response = await fetch(`http://127.0.0.1:${port}/api/v1/backups`)
    return (
      (await response.json()) as {
        targets: { onDuty: boolean; running: boolean; lastBackup: string | null; problem: string | null }[]
      }
    ).targets[0]!
  }
  while (!(await ask()).onDuty) await wait(200)
  const before = (await ask()).lastBackup
  await read(port, '/api/v1/backups', 'POST')
  for (;;) {
    const { lastBackup, running, problem } = await ask()
    if (problem !== null) throw new Error(problem)
    if (!running && lastBackup !== before) return
    await wait(50)
  }
}

export const operateCases: readonly Case[] = [cost, metricsCost, holds]
