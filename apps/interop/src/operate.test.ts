import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect } from '@zabra/client'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Ensemble, until } from './ensemble/ensemble.ts'
import { fourLetterWord } from './harness/client.ts'
import { freePort } from './harness/ports.ts'
import { describeWith } from './harness/requirements.ts'
import { scratch, spawnOwned } from './harness/servers.ts'

const ids = [1, 2, 3]
const root = new URL('../../../', import.meta.url)
const readText = (path: string): string => readFileSync(new URL(path, root), 'utf8')

/** Settings of a server of Apache ZooKeeper that is watched, beside those of every ensemble of these tests: 36 lines. */
const watched = (id: number) => ({
  dataLogDir: logFolders[id - 1]!,
  minSessionTimeout: 800,
  maxSessionTimeout: 60_000,
  snapCount: 100_000,
  'autopurge.snapRetainCount': 3,
  'autopurge.purgeInterval': 1,
  globalOutstandingLimit: 1000,
  preAllocSize: 65_536,
  electionAlg: 3,
  leaderServes: 'yes',
  peerType: 'participant',
  quorumListenOnAllIPs: 'false',
  standaloneEnabled: 'false',
  reconfigEnabled: 'true',
  extendedTypesEnabled: 'true',
  'admin.enableServer': 'true',
  'admin.serverAddress': '127.0.0.1',
  'admin.serverPort': adminPorts[id - 1]!,
  'admin.commandURL': '/commands',
  'admin.idleTimeout': 30_000,
  'metricsProvider.className': 'org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider',
  'metricsProvider.httpHost': '127.0.0.1',
  'metricsProvider.httpPort': metricsPorts[id - 1]!,
  'audit.enable': 'true',
})

let adminPorts: number[]
let metricsPorts: number[]
let logFolders: string[]
let ensemble: Ensemble
let stop: (() => Promise<void>) | undefined

beforeAll(async () => {
  adminPorts = await Promise.all(ids.map(freePort))
  metricsPorts = await Promise.all(ids.map(freePort))
  logFolders = ids.map(() => scratch('log'))
  ensemble = await Ensemble.start(
    { kinds: ['zabra', 'zabra', 'zabra'], configOf: watched },
    (remove) => void (stop = remove),
  )
})
afterAll(() => stop?.())

const http = async (port: number, path: string) => {
  const response = await fetch(`http://127.0.0.1:${port}${path}`)
  return { status: response.status, text: await response.text() }
}

describe('a zoo.cfg of 36 lines with metrics, admin server and audit', () => {
  it.each(ids)('makes member %s serve all of them, and ignores no setting', async (id) => {
    const member = ensemble.member(id)
    expect(readFileSync(member.configFile, 'utf8').trim().split('\n')).toHaveLength(36)
    const client = await connect({ servers: member.address })
    await client.create(`/audited-${id}`)
    await client.close()
    const [admin, metrics] = [adminPorts[id - 1]!, metricsPorts[id - 1]!]
    for (const path of ['/livez', '/readyz', '/startupz', '/ready', '/metrics', '/commands/ruok'])
      expect([path, (await http(admin, path)).status]).toEqual([path, 200])
    const monitored = JSON.parse((await http(admin, '/commands/monitor')).text) as Record<string, unknown>
    expect(monitored).toMatchObject({ command: 'monitor', error: null, quorum_size: 3 })
    expect(await fourLetterWord(member.port, 'mntr')).toMatch(/^zk_quorum_size\t3$/m)
    expect((await http(metrics, '/metrics')).text).toMatch(/^quorum_size 3\.0$/m)
    await until('the audit line', async () =>
      member.output.includes(`operation=create\\tznode=/audited-${id}\\t`),
    )
    expect(member.output.split('\n').filter((line) => line.includes('zoo.cfg:'))).toEqual([])
  })
})

interface Panel {
  readonly targets?: readonly { readonly expr: string }[]
  readonly panels?: readonly Panel[]
}

const queriesOf = (panels: readonly Panel[]): string[] =>
  panels.flatMap(({ targets = [], panels: inner = [] }) => [
    ...targets.map(({ expr }) => expr),
    ...queriesOf(inner),
  ])

/**
 * A Prometheus with the configuration of docs/monitor.md and the rules of this repository, but for hosts and intervals. `scrapesTwice`: with
 * the second job of that page, which gets OpenMetrics.
 */
async function startPrometheus({ scrapesTwice = false } = {}) {
  const folder = scratch('prometheus')
  const [, section] = readText('docs/monitor.md').split('## Watch it with Prometheus')
  const [example] = /scrape_configs:\n[^]*?(?=\n```)/.exec(section!)!
  const [secondJob] = / {2}- job_name: zookeeper-3\.10\n[^]*?(?=\n```)/.exec(section!)!
  const targets = metricsPorts.map((port) => `127.0.0.1:${port}`).join(', ')
  const adapted = example
    .replace('rule_files:', scrapesTwice ? `${secondJob}\nrule_files:` : 'rule_files:')
    .replaceAll(/targets: \[.*\]/g, `targets: [${targets}]`)
  expect(adapted.split(targets)).toHaveLength(scrapesTwice ? 3 : 2)
  const intervals =
    'global:\n  scrape_interval: 500ms\n  scrape_timeout: 500ms\n  evaluation_interval: 500ms\n'
  writeFileSync(join(folder, 'prometheus.yml'), `${intervals}${adapted}\n`)
  const rules = readText('deploy/prometheus/rules.yml').replaceAll('interval: 15s', 'interval: 500ms')
  writeFileSync(join(folder, 'rules.yml'), rules)
  const port = await freePort()
  const child = spawnOwned('prometheus', [
    `--config.file=${join(folder, 'prometheus.yml')}`,
    `--storage.tsdb.path=${join(folder, 'data')}`,
    `--web.listen-address=127.0.0.1:${port}`,
  ])
  let output = ''
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()))
  child.once('error', (error) => (output += error.message))
  const ask = async (path: string, parameters: Record<string, string> = {}): Promise<Answer> => {
    const body = new URLSearchParams(parameters)
    const response = await fetch(
      `http://127.0.0.1:${port}/api/v1/${path}`,
      body.size === 0 ? {} : { method: 'POST', body },
    )
    return (await response.json()) as Answer
  }
  const samples = async (query: string): Promise<Sample[]> => {
    const { status, error, data } = await ask('query', { query })
    expect({ query, status, error }).toEqual({ query, status: 'success', error: undefined })
    return data.result ?? []
  }
  return { ask, samples, output: () => output }
}

/** Waits until nothing is missing: no series has a value while the last scrape of its member took too long. */
async function untilEmpty(what: string, find: () => Promise<readonly string[]>): Promise<void> {
  let missing: readonly string[] = []
  await until(what, async () => (missing = await find()).length === 0).catch((error: unknown) => {
    throw new Error(`Missing: ${missing.join('; ')}`, { cause: error })
  })
}

interface Sample {
  readonly metric: Readonly<Record<string, string>>
  readonly value: readonly [time: number, value: string]
}

interface Answer {
  readonly status: string
  readonly error?: string
  readonly data: { readonly result?: Sample[]; readonly groups?: { readonly rules: readonly Rule[] }[] }
}

interface Rule {
  readonly name: string
  readonly health: string
  readonly state?: string
  readonly lastError?: string
}

describeWith(['prometheus'], 'a Prometheus that scrapes an ensemble as docs/monitor.md says', () => {
  let prometheus: Awaited<ReturnType<typeof startPrometheus>>
  beforeAll(async () => {
    const client = await connect({ servers: ensemble.member(await ensemble.leader()).address })
    await client.create('/loaded')
    for (const path of ['/zookeeper/quota/loaded', '/zookeeper/quota/loaded/zookeeper_stats'])
      await client.create(path)
    await client.create('/zookeeper/quota/loaded/zookeeper_limits', { data: 'count=-1,bytes=1000' })
    for (let i = 0; i < 50; i++) await client.setData('/loaded', `${i}`)
    await client.getData('/loaded')
    await client.close()
    prometheus = await startPrometheus()
    const scrapes = 'min(count_over_time(up[1m])) >= 3 and sum(up) == 3'
    await until('three scrapes of each member', async () => {
      const found = await prometheus.ask('query', { query: scrapes }).catch(() => undefined)
      return found?.data.result?.length === 1
    })
  })

  it('has a series for each family that dashboard 10465 shows', async () => {
    const names = readText('apps/interop/fixtures/grafana-10465.txt').trim().split('\n')
    expect(names).toHaveLength(115)
    await untilEmpty('series of all families', async () => {
      const found = await prometheus.samples('count by (__name__) ({__name__!=""})')
      const present = new Set(found.map(({ metric }) => metric['__name__']!))
      return names.filter((name) => !present.has(name) && !present.has(`${name}_count`))
    })
  })

  it('answers each query of our dashboard with a series', async () => {
    const { panels } = JSON.parse(readText('deploy/grafana/zabra-service.json')) as { panels: Panel[] }
    await untilEmpty('a series for each query', async () => {
      const empty: string[] = []
      for (const query of queriesOf(panels)) {
        const filled = query.replaceAll('$job', 'zabra').replaceAll('$instance', '.*')
        if ((await prometheus.samples(filled)).length === 0) empty.push(query)
      }
      return empty
    })
  })

  it('evaluates our rules, and alerts of nothing', async () => {
    let rules: readonly Rule[] = []
    await until('the evaluation of all rules', async () => {
      rules = (await prometheus.ask('rules')).data.groups!.flatMap((group) => group.rules)
      return rules.every(({ health }) => health !== 'unknown')
    })
    await until('that one failure is left', async () => {
      const [left] = await prometheus.samples('zabra:failures_left')
      return left?.value[1] === '1'
    })
    const problems = rules.filter(({ health, state }) => health !== 'ok' || state === 'firing')
    expect(problems).toEqual([])
    expect(rules.length).toBeGreaterThan(20)
  })
  it('gets the names of release 3.10 beside those of 3.9, from OpenMetrics', async () => {
    const both = await startPrometheus({ scrapesTwice: true })
    await until('a scrape of each member by each job', async () => {
      const found = await both.ask('query', { query: 'sum(up) == 6' }).catch(() => undefined)
      return found?.data.result?.length === 1
    })
    const namesOf = async (job: string): Promise<string[]> =>
      (await both.samples(`count by (__name__) ({job="${job}"})`)).map(({ metric }) => metric['__name__']!)
    const [old, later] = [await namesOf('zabra'), await namesOf('zookeeper-3.10')]
    expect(old).toContain('response_bytes')
    expect(old).not.toContain('response_bytes_total')
    expect(later).toContain('response_bytes_total')
    expect(later).not.toContain('response_bytes')
    expect(later.filter((name) => name.startsWith('zabra_'))).toEqual([])
    expect(later.length).toBeGreaterThan(200)
    expect(both.output()).not.toMatch(/level=(warn|error)/)
  })
})
