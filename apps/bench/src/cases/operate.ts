import { once } from 'node:events'
import { mkdtempSync } from 'node:fs'
import { Agent, get } from 'node:http'
import { constants, getPriority, setPriority, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { OpCode } from '@zabra/protocol'
import { freePorts } from '@zabra/testkit'
import { busyFlags } from '../busy.ts'
import { median } from '../figures.ts'
import { holdSessions, load } from '../load.ts'
import { openSession } from '../open-session.ts'
import { fourLetterWord, type Peer } from '../peers.ts'
import { loadArgs, scaled, withNodeFlags, type BenchOptions, type Case, type CaseContext } from './case.ts'
import { create, measureDuring, numbered } from './holds.ts'

/** A way to operate a server. */
interface Way {
  readonly name: string
  /** Paths of the HTTP port that are read each second meanwhile. */
  readonly probes?: readonly string[]
  /** What is audited meanwhile, as `audit.events`. */
  readonly audits?: string
  /** What it may cost, in percent. */
  readonly limit?: number
}

const withAdminPort = (adminPort: number): Readonly<Record<string, string | number>> => ({
  'admin.enableServer': 'true',
  'admin.serverPort': adminPort,
  'admin.role.admin': 'ip:127.0.0.1',
})

const NOTHING: Way = { name: 'nothing' }
/** What it seems to cost is the noise of the other figures. */
const NOTHING_AGAIN: Way = { name: 'nothing, again', limit: 2 }
const METRICS: Way = { name: 'metrics and health each second', probes: ['/metrics', '/readyz'], limit: 2 }
const AUDIT: Way = { name: 'an audit log', audits: 'writes,auth,admin,config', limit: 8 }
/** Measured last: requests are counted until a minute after the last answer. */
const TOP: Way = { name: 'top each second', probes: ['/api/v1/top'], limit: 2 }
/** Events of an audit log that no request of a load is. */
const AUDITS_NOTHING = 'admin,config'
const WORKS = ['set', 'create', 'mixed'] as const
/** Servers, one after another, and loads of each kind and way on each of them. */
const SERVERS = 3
const TURNS = 8
const PROBE_MS = 1000
/** Pairs of servers of which one has an audit log from its start. */
const AUDIT_PAIRS = 24
/** Paths that are read each so many milliseconds for a minute, and what the answers may take, in milliseconds. */
const PROBES = [
  { path: '/metrics', everyMs: 1000, limit: 20 },
  { path: '/readyz', everyMs: 50, limit: 5 },
] as const
const PROBES_SECONDS = 60
/** Reads of each path of which the processor time is taken, after as many more. */
const PROBES_COUNTED = 200
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

/** Runs `body` while paths are read each second. */
async function whileProbing<T>(port: number, paths: readonly string[], body: () => Promise<T>): Promise<T> {
  const stop = new AbortController()
  const probing = (async () => {
    while (!stop.signal.aborted) {
      // One after another: a page is not behind the one before.
      for (const path of paths) await read(port, path)
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

/** What was measured of each way, by its name, in the order of the turns. */
type Results = ReadonlyMap<string, readonly Measured[]>

/**
 * Measures loads of a server that is operated in these ways, in turns, each way as often the first as any other. All of them are played on
 * one server, whose `audit.events` change meanwhile: two processes with the same settings differ by ten percent, each for its whole
 * life.
 */
async function measureWays(
  server: OperatedServer,
  work: string,
  ways: readonly Way[],
  { options }: CaseContext,
): Promise<Results> {
  const results = new Map<string, Measured[]>(ways.map(({ name }) => [name, []]))
  const { peer, adminPort } = server
  for (let turn = 0; turn < TURNS; turn++)
    for (let index = 0; index < ways.length; index++) {
      const { name, probes = [], audits = AUDITS_NOTHING } = ways[(turn + index) % ways.length]!
      await changeSettings(adminPort, { 'audit.events': audits })
      const measured = await whileProbing(adminPort, probes, () => measure(peer, work, options))
      results.get(name)!.push(measured)
    }
  return results
}

interface OperatedServer {
  readonly peer: Peer
  readonly adminPort: number
}

/** Runs `body` with each of some servers that can be operated in all ways. */
async function withServers(
  { start, options }: CaseContext,
  body: (server: OperatedServer) => Promise<void>,
): Promise<void> {
  for (let index = 0; index < SERVERS; index++) {
    const [adminPort] = await freePorts(1)
    const folder = mkdtempSync(join(tmpdir(), 'zabra-bench-operate-'))
    const audit = { 'audit.enable': 'true', 'audit.file': join(folder, 'audit.log') }
    const peer = await start({ folder, settings: { ...withAdminPort(adminPort!), ...audit } })
    try {
      // The first answers wait until their code is compiled, as the first requests do.
      await whileProbing(adminPort!, METRICS.probes!, () =>
        load(peer.servers, '-m', 'mixed', ...loadArgs({ ...options, seconds: 5 })),
      )
      await body({ peer, adminPort: adminPort! })
    } finally {
      await peer.stop()
    }
  }
}

/** Changes settings of a server while it runs. */
async function changeSettings(port: number, settings: Readonly<Record<string, string>>): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${port}/api/v1/settings`, {
    method: 'PATCH',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(settings),
  })
  if (!response.ok)
    throw new Error(`PATCH /api/v1/settings answered ${response.status}: ${await response.text()}`)
}

/** Returns what a way costs in percent, by pairs with the load of the same turn without it. */
function costOf(results: Results, { name }: Way, figure: keyof Measured): number {
  const without = results.get(NOTHING.name)!
  const ratios = results.get(name)!.map((one, turn) => one[figure] / without[turn]![figure])
  return 100 * (median(ratios) - 1)
}

const cost: Case = {
  name: 'operate-cost',
  about:
    'what metrics, probes and `top` each second, and an audit log, cost a server; some 26 minutes with --seconds 2',
  only: 'zabra',
  run: async (context) => {
    const all = new Map<string, Map<string, Measured[]>>(WORKS.map((work) => [work, new Map()]))
    await withServers(context, async (server) => {
      const keep = (work: string, results: Results): void => {
        const kept = all.get(work)!
        for (const [name, measured] of results) kept.set(name, [...(kept.get(name) ?? []), ...measured])
      }
      for (const work of WORKS)
        keep(work, await measureWays(server, work, [NOTHING, NOTHING_AGAIN, METRICS, AUDIT], context))
      for (const work of WORKS) keep(work, await measureWays(server, work, [TOP], context))
    })
    for (const work of WORKS) noteCosts(context, work, all.get(work)!)
  },
}

function noteCosts({ note }: CaseContext, work: string, results: Results): void {
  for (const way of [NOTHING, NOTHING_AGAIN, METRICS, AUDIT, TOP]) {
    const { name, limit } = way
    const of = (figure: keyof Measured): number => median(results.get(name)!.map((one) => one[figure]))
    note({ name: `${work} per second with ${name}`, unit: 'op/s', better: 'higher' }, of('perSecond'))
    note({ name: `${work} p99 with ${name}`, unit: 'ms', better: 'lower' }, of('p99'))
    note({ name: `${work} main thread with ${name}`, unit: 'µs', better: 'lower' }, of('mainThread'))
    if (limit === undefined) continue
    const costs = { unit: '%', better: 'lower', limit } as const
    note({ ...costs, name: `${work} lost by ${name}` }, -costOf(results, way, 'perSecond'))
    note({ ...costs, name: `${work} p99 more by ${name}` }, costOf(results, way, 'p99'))
    note({ ...costs, name: `${work} main thread for ${name}` }, costOf(results, way, 'mainThread'))
    note({ ...costs, name: `${work} processor time for ${name}` }, costOf(results, way, 'cpu'))
  }
}

/** Measures sets on a new server, once it has compiled what they need. */
async function measureSets(
  { start, options }: CaseContext,
  settings: Readonly<Record<string, string>>,
): Promise<Measured> {
  const folder = mkdtempSync(join(tmpdir(), 'zabra-bench-audit-'))
  const audit = { 'audit.file': join(folder, 'audit.log'), 'audit.events': AUDIT.audits!, ...settings }
  const peer = await start({ folder, settings: audit })
  try {
    await load(peer.servers, '-m', 'set', ...loadArgs({ ...options, seconds: 2 }))
    return await measure(peer, 'set', options)
  } finally {
    await peer.stop()
  }
}

/** Returns the mean of some shares and its standard error, both in percent. */
function meanOf(shares: readonly number[]): { readonly mean: number; readonly error: number } {
  const mean = shares.reduce((sum, share) => sum + share, 0) / shares.length
  const squares = shares.reduce((sum, share) => sum + (share - mean) ** 2, 0)
  return { mean: 100 * mean, error: 100 * Math.sqrt(squares / (shares.length - 1) / shares.length) }
}

const auditCost: Case = {
  name: 'audit-cost',
  about:
    'what an audit log costs sets on servers that have it from their start, by 24 pairs of servers; some eight minutes with --seconds 3',
  only: 'zabra',
  isLong: true,
  run: async (context) => {
    const pairs: { without: Measured; audited: Measured }[] = []
    const measureWith = (isAudited: boolean): Promise<Measured> =>
      measureSets(context, { 'audit.enable': String(isAudited) })
    for (let pair = 0; pair < AUDIT_PAIRS; pair++) {
      // Each is the first in half of the pairs.
      const isAuditedFirst = pair % 2 === 1
      const first = await measureWith(isAuditedFirst)
      const second = await measureWith(!isAuditedFirst)
      pairs.push(isAuditedFirst ? { without: second, audited: first } : { without: first, audited: second })
    }
    for (const [name, costOfPair] of [
      ['throughput lost by', ({ without, audited }) => 1 - audited.perSecond / without.perSecond],
      ['main thread for', ({ without, audited }) => audited.mainThread / without.mainThread - 1],
      ['processor time for', ({ without, audited }) => audited.cpu / without.cpu - 1],
    ] satisfies [string, (pair: (typeof pairs)[number]) => number][]) {
      const { mean, error } = meanOf(pairs.map(costOfPair))
      const figure = { unit: '%', better: 'lower' } as const
      context.note({ ...figure, name: `set ${name} an audit log`, limit: AUDIT.limit! }, mean)
      context.note({ ...figure, name: `set ${name} an audit log, standard error` }, error)
    }
  },
}

/**
 * Reads a path each so many milliseconds, over one connection, until it is stopped. Resolves to how long each read took, in milliseconds;
 * one that was due during the read before counts from then.
 */
async function timeProbes(port: number, path: string, everyMs: number, stop: AbortSignal): Promise<number[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const times: number[] = []
  for (let due = performance.now(); !stop.aborted; due += everyMs) {
    const isLate = performance.now() > due
    if (!isLate) await wait(due - performance.now(), undefined, { signal: stop }).catch(() => {})
    const begun = isLate ? due : performance.now()
    const [response] = await once(get({ agent, host: '127.0.0.1', port, path }), 'response')
    await once(response.resume(), 'end')
    if (response.statusCode !== 200) throw new Error(`GET ${path} answered ${response.statusCode}`)
    times.push(performance.now() - begun)
  }
  agent.destroy()
  return times
}

/** Changes the priority of this process where that is allowed; raising it takes root. */
function usePriority(priority: number): void {
  try {
    setPriority(priority)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_SYSTEM_ERROR') throw error
  }
}

/** Returns the percentage of a second that the main thread spends on one read of each path, once their code is compiled. */
async function shareOfProbes(peer: Peer, adminPort: number, paths: readonly string[]): Promise<number> {
  let before = 0
  for (let round = 0; round < 2 * PROBES_COUNTED; round++) {
    if (round === PROBES_COUNTED) before = peer.mainThreadSeconds()
    for (const path of paths) await read(adminPort, path)
  }
  return (100 * (peer.mainThreadSeconds() - before)) / PROBES_COUNTED
}

const probes: Case = {
  name: 'operate-probes',
  about:
    'how long /readyz takes 20 times a second, and /metrics each second, during a minute of a mixed load, and the processor time of both',
  only: 'zabra',
  run: async ({ start, note }) => {
    const [adminPort] = await freePorts(1)
    const folder = mkdtempSync(join(tmpdir(), 'zabra-bench-operate-'))
    const peer = await start({ folder, settings: withAdminPort(adminPort!) })
    const priority = getPriority()
    try {
      await whileProbing(adminPort!, METRICS.probes!, () => load(peer.servers, '-m', 'mixed', '-s', '5'))
      const stop = new AbortController()
      const loading = load(peer.servers, '-m', 'mixed', '-s', String(PROBES_SECONDS)).finally(() =>
        stop.abort(),
      )
      // What probes a server runs on another machine as a rule: here it would wait for a processor, and measure that.
      usePriority(constants.priority.PRIORITY_HIGH)
      const probing = PROBES.map(({ path, everyMs }) => timeProbes(adminPort!, path, everyMs, stop.signal))
      const [all] = await Promise.all([Promise.all(probing), loading])
      const share = await shareOfProbes(peer, adminPort!, METRICS.probes!)
      note(
        { name: 'main thread for metrics and health each second', unit: '%', better: 'lower', limit: 2 },
        share,
      )
      for (const [index, { path, limit }] of PROBES.entries())
        for (const share of [0.5, 0.99])
          note(
            {
              name: `GET ${path} p${share * 100}`,
              unit: 'ms',
              better: 'lower',
              ...(share === 0.99 && { limit }),
            },
            percentile(all[index]!, share),
          )
    } finally {
      usePriority(priority)
      await peer.stop()
    }
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
          ['a page of watches', '/api/v1/watches?limit=1000'],
          ['a page of the watches of a path', '/api/v1/watches?path=/p&limit=1000'],
          ['a page of the largest subtrees', '/api/v1/tree?path=/&depth=2'],
          ['a bundle for support', '/api/v1/support-bundle'],
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
  ...withAdminPort(adminPort),
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

export const operateCases: readonly Case[] = [cost, auditCost, probes, holds]
