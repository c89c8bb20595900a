import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { nodePlatform } from '@zabra/runtime/node'
import { OpCode } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import type { Member } from '../../ensemble/member.ts'
import { Ensemble } from '../../ensemble/testing/ensemble.ts'
import { createServer } from '../../server.ts'
import { defaults } from '../../settings/index.ts'
import { TestServer } from '../../testing/test-server.ts'
import { TEXT_WRITERS } from './metrics-writer.ts'
import { writeMetrics } from './prometheus.ts'

const folder = new URL('../../../../../deploy/', import.meta.url)
const hasPromtool = spawnSync('promtool', ['--version']).status === 0
const missing = hasPromtool ? '' : ' (skipped: promtool is not installed)'

/** Returns the metrics of a standalone server and of each member of an ensemble; collected once. */
const metrics = (): Promise<string> => (collected ??= collectMetrics())
let collected: Promise<string> | undefined

async function collectMetrics(): Promise<string> {
  const server = await TestServer.start()
  const client = await server.connect()
  client.create(1, '/a')
  client.read(2, OpCode.getData, '/none')
  for (const [index, path] of ['', '/zookeeper_limits', '/zookeeper_stats'].entries())
    client.create(3 + index, `/zookeeper/quota/a${path}`, 0, 'count=5,bytes=5')
  await server.untilIdle()
  await server.server.snapshot()
  // The first scrape begins the walk over the tree.
  await server.http.request('/metrics')
  await server.untilIdle()
  const texts = [(await server.http.request('/metrics')).text]
  await server.stop()
  texts.push(await metricsOfProcess())
  const ensemble = await Ensemble.start(3, { backupTargets: ['/shared/backup'] })
  await ensemble.create(await ensemble.client(1), '/a')
  await ensemble.advance(60_000)
  for (const { http } of ensemble.members.values()) texts.push((await http.request('/metrics')).text)
  return texts.join('')
}

/** Returns the metrics of a server on the platform of this process. */
async function metricsOfProcess(): Promise<string> {
  const dataDir = await mkdtemp(join(tmpdir(), 'zabra-metrics-'))
  const certificates = new URL('../../../../runtime/src/testdata/tls/', import.meta.url).pathname
  const settings = defaults({
    dataDir,
    clientPort: 0,
    adminEnabled: false,
    auditEnabled: true,
    secureClientPort: 0,
    sslKeyStoreLocation: `${certificates}server.pem`,
    sslClientAuth: 'none',
  })
  const server = await createServer(settings, nodePlatform())
  try {
    return [
      ...writeMetrics(TEXT_WRITERS['3.9'], server as Member, {
        logLines: { info: 1 },
        logLost: 0,
        disk: {
          spaces: new Map([[dataDir, { free: 1, size: 2 }]]),
          lastSnapshotAt: 0,
          sizes: { snapshots: 1, logs: 2 },
        },
      }),
    ].join('')
  } finally {
    await server.close()
    await rm(dataDir, { recursive: true })
  }
}

/** Returns the names of metrics in queries, without words of the language, labels and variables. */
function namesIn(query: string): string[] {
  const bare = query
    .replaceAll(/"[^"]*"|\[[^\]]*\]|\$\w+/g, '')
    .replaceAll(/\{[^}]*\}/g, '')
    .replaceAll(/\b(?:by|on|without|ignoring) ?\([^)]*\)/g, '')
  return [...bare.matchAll(/\b[a-z][\w:]*\b(?!\s*\()/g)]
    .map(([name]) => name)
    .filter((name) => !/^(?:and|or|unless|by|on|offset|\d+\w)$/.test(name) && !name.includes(':'))
}

interface Panel {
  readonly targets?: readonly { readonly expr: string }[]
  readonly panels?: readonly Panel[]
}

const queriesOf = (panels: readonly Panel[]): string[] =>
  panels.flatMap(({ targets = [], panels: inner = [] }) => [
    ...targets.map(({ expr }) => expr),
    ...queriesOf(inner),
  ])

const promtool = (args: readonly string[], input = '') =>
  spawnSync('promtool', args, { cwd: new URL('prometheus/', folder), input, encoding: 'utf8' })

const page = readFileSync(new URL('../docs/metrics.md', folder), 'utf8')

/** Returns the types of the families in the tables of a section of docs/metrics.md. */
const documented = (title: string): Map<string, string> => {
  const section = page.split(/^## /m).find((part) => part.startsWith(`${title}\n`))!
  return new Map([...section.matchAll(/^\| `(\w+)` \| (\w+) \|/gm)].map(([, name, type]) => [name!, type!]))
}

describe('docs/metrics.md', () => {
  it('lists each family of running servers with its type, and no other', async () => {
    const printed = new Map(
      [...(await metrics()).matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [name!, type!]),
    )
    const listed = new Map(
      ['Of Zabra', 'Of Apache ZooKeeper', 'Without observations'].flatMap((title) => [...documented(title)]),
    )
    const lines = (families: ReadonlyMap<string, string>) =>
      [...families].map(([name, type]) => `${name} ${type}`).toSorted()
    expect(lines(listed)).toEqual(lines(printed))
  })

  it('lists the families that servers have with the names of 3.10 alone', async () => {
    const [old, latest] = await Promise.all(
      (['3.9', '3.10'] as const).map(async (metricsNames) => {
        const server = await TestServer.start({ metricsNames })
        const { text } = await server.http.request('/metrics')
        await server.stop()
        return [...text.matchAll(/^# TYPE (\S+) /gm)].map(([, name]) => name!.replace(/_total$/, ''))
      }),
    )
    const added = latest!.filter((name) => !old!.includes(name)).map((name) => `${name}_total`)
    const section = page.split(/^## /m).find((part) => part.startsWith('Names of release 3.10\n'))!
    const listed = [...section.matchAll(/`(op_count_\w+)`/g)].map(([, name]) => name!)
    expect(listed.toSorted()).toEqual(added.toSorted())
  })

  it('says which families have no observations', async () => {
    const names = [...documented('Without observations').keys()]
    const samples = (await metrics()).split('\n').filter((line) => !line.startsWith('#'))
    const observed = samples.filter(
      (line) =>
        names.some((name) => line.startsWith(`${name} `) || line.startsWith(`${name}_count `)) &&
        !line.endsWith(' 0.0'),
    )
    expect(names.length).toBeGreaterThan(0)
    expect(observed).toEqual([])
  })
})

describe('the files in deploy/', () => {
  it('query only metrics that servers have', async () => {
    const text = await metrics()
    const rules = readFileSync(new URL('prometheus/rules.yml', folder), 'utf8')
    const { panels } = JSON.parse(readFileSync(new URL('grafana/zabra-service.json', folder), 'utf8')) as {
      panels: Panel[]
    }
    const queries = [...[...rules.matchAll(/expr: (.*)/g)].map(([, query]) => query!), ...queriesOf(panels)]
    expect(queries.length).toBeGreaterThan(40)
    const names = new Set(queries.flatMap(namesIn))
    const isKnown = (name: string): boolean =>
      // Prometheus makes `up`.
      name === 'up' || text.includes(`\n${name} `) || text.includes(`\n${name}{`)
    // Counters of Apache ZooKeeper are asked for under their names of 3.9 and of 3.10.
    const isNewName = (name: string): boolean =>
      name.endsWith('_total') && text.includes(`\n# TYPE ${name.slice(0, -'_total'.length)} counter\n`)
    const unknown = [...names].filter((name) => !isKnown(name) && !isNewName(name))
    expect(unknown).toEqual([])
  })

  it.skipIf(!hasPromtool)(`have alerts that fire, and do not fire, as their tests say${missing}`, () => {
    expect(promtool(['check', 'rules', 'rules.yml'])).toMatchObject({ status: 0 })
    expect(promtool(['test', 'rules', 'rules.test.yml'])).toMatchObject({ status: 0 })
    const tests = readFileSync(new URL('prometheus/rules.test.yml', folder), 'utf8')
    const rules = readFileSync(new URL('prometheus/rules.yml', folder), 'utf8')
    const untested = [...rules.matchAll(/alert: (\w+)/g)].filter(([, name]) => !tests.includes(`: ${name}`))
    expect(untested.map(([, name]) => name)).toEqual([])
  })

  it('find the build by its commit, and certificates by the hash of their subject', async () => {
    const text = await metrics()
    expect(text).toMatch(
      /^zabra_build_info\{version="[^"]+",commit="unknown",compatible="[^"]+",node="[^"]*"\} 1$/m,
    )
    expect(text).toMatch(/^zabra_certificate_expiry_seconds\{use="client",subject="[\da-f]{16}"\} \d+$/m)
  })

  it.skipIf(!hasPromtool)(`match metrics that Prometheus can read${missing}`, async () => {
    for (const text of (await metrics()).split(/^(?=# HELP zabra_build_info)/m)) {
      const { stderr, stdout, status } = promtool(['check', 'metrics'], text)
      // Status 3: the names of Apache ZooKeeper are not those that promtool likes.
      expect([0, 3], stderr).toContain(status)
      expect(`${stdout}${stderr}`).not.toMatch(/^zabra_/m)
    }
  })
})

/** Returns what exporters of `mntr` make of it: each value that they have no rule for is copied, with the prefix that it has. */
function exported(mntr: string): string {
  const samples: string[] = []
  for (const line of mntr.trimEnd().split('\n')) {
    const [key = '', value = ''] = line.split('\t')
    if (key === 'zk_version') samples.push(`zk_version{version="${value}"} 1`)
    else if (key === 'zk_server_state') samples.push(`zk_server_leader ${value === 'leader' ? 1 : 0}`)
    else if (key !== 'zk_peer_state') samples.push(`${key} ${value}`)
  }
  return `${samples.join('\n')}\n`
}

describe('exporters of mntr and of /commands/monitor', () => {
  it.skipIf(!hasPromtool)(`get numbers of servers in each role${missing}`, async () => {
    const server = await TestServer.start()
    const ensemble = await Ensemble.start(4, { observers: [4] })
    const answers = [[await server.command('mntr'), (await server.http.request('/commands/monitor')).text]]
    for (const { id, http } of ensemble.members.values())
      answers.push([await ensemble.command(id, 'mntr'), (await http.request('/commands/monitor')).text])
    const texts = new Set(['version', 'server_state', 'peer_state', 'command', 'error'])
    for (const [mntr = '', monitor = ''] of answers) {
      const samples = exported(mntr)
      expect(samples).toMatch(/^zk_last_zxid \d+$/m)
      const { stderr, status } = promtool(['check', 'metrics'], samples)
      expect([0, 3], stderr).toContain(status)
      const values = Object.entries(JSON.parse(monitor) as Record<string, unknown>)
      expect(values.length).toBeGreaterThan(50)
      const others = values.filter(([key, value]) => !texts.has(key) && typeof value !== 'number')
      expect(others).toEqual([])
    }
    await server.stop()
  })
})
