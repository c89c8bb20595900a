import { readFileSync } from 'node:fs'
import { OpCode } from '@zabra/protocol'
import { afterEach, describe, expect, it } from 'vitest'
import { Ensemble } from '../../ensemble/testing/ensemble.ts'
import { PROMETHEUS_PROVIDER } from '../../settings/index.ts'
import { TestServer } from '../../testing/test-server.ts'
import { OPEN_METRICS_WRITER, TEXT_WRITERS } from './metrics-writer.ts'
import { writeMetrics } from './prometheus.ts'
import { metricsOf, valueOf } from './testing/metrics.ts'
import { parseOpenMetrics } from './testing/open-metrics.ts'

const OPEN_METRICS = '/metrics?format=openmetrics'
const OPEN_METRICS_TYPE = 'application/openmetrics-text; version=1.0.0; charset=utf-8'

/** The families of Apache ZooKeeper 3.9, and what release 3.10 calls them: its client library appends `_total` to counters. */
const families = readFileSync(new URL('../testdata/apache-3.9-metrics.txt', import.meta.url), 'utf8')
  .trim()
  .split('\n')
  .map((line) => {
    const [name = '', type = ''] = line.split(' ')
    const isCounter = type.startsWith('C')
    return { name, isCounter, newName: isCounter ? `${name}_total` : name, isAdvanced: type === 'S+' }
  })

const namesIn = (text: string): string[] => [...text.matchAll(/^# TYPE (\S+) /gm)].map(([, name]) => name!)

let server: TestServer

async function start(settings: Parameters<typeof TestServer.start>[0] = {}): Promise<TestServer> {
  server = await TestServer.start(settings)
  return server
}

afterEach(() => server?.stop())

describe('the names of metrics', () => {
  it('are those of Apache ZooKeeper 3.9 by default, whatever a scraper accepts', async () => {
    const ensemble = await Ensemble.start(3)
    const { http } = ensemble.member(ensemble.leader!)
    const accept = `${OPEN_METRICS_TYPE},text/plain;q=0.5`
    const { text, headers } = await http.request('/metrics', { headers: { accept } })
    expect(headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8')
    const names = new Set(namesIn(text))
    expect(families.filter(({ name }) => !names.has(name))).toEqual([])
    const added = [...names].filter((name) => name.endsWith('_total'))
    expect(added.filter((name) => !/^(?:zabra|process)_/.test(name))).toEqual([])
    expect(text).toContain('\nreadlatency{quantile="0.9",} ')
    expect(text).not.toContain('\nop_count')
  })

  it('are those of Apache ZooKeeper 3.10 with metrics.names=3.10, each once', async () => {
    const ensemble = await Ensemble.start(3, { metricsNames: '3.10' })
    const text = await metricsOf(ensemble.member(ensemble.leader!))
    const names = namesIn(text)
    expect(new Set(names).size).toBe(names.length)
    expect(families.filter(({ newName }) => !names.includes(newName))).toEqual([])
    const counters = families.filter(({ isCounter }) => isCounter)
    expect(counters).toHaveLength(52)
    expect(counters.filter(({ name }) => new RegExp(`^${name}[ {]`, 'm').test(text))).toEqual([])
    expect(text).toContain('\n# TYPE commit_count_total counter\ncommit_count_total 0.0\n')
    expect(text).toContain('\n# TYPE zabra_requests_total counter\n')
    expect(text).not.toContain('_total_total')
  })

  it('of 3.10 have its quantiles: 0.5, and with more detail 0.95 and 0.99', async () => {
    await start({ metricsNames: '3.10' })
    const text = await metricsOf(server)
    const quantilesOf = (name: string) =>
      [...text.matchAll(new RegExp(`^${name}\\{quantile="(.*)"\\} NaN$`, 'gm'))].map(
        ([, quantile]) => quantile,
      )
    const advanced = families.filter(({ isAdvanced }) => isAdvanced)
    expect(advanced).toHaveLength(23)
    for (const { name } of advanced)
      expect([name, quantilesOf(name)]).toEqual([name, ['0.5', '0.95', '0.99']])
    expect(quantilesOf('fsynctime')).toEqual(['0.5'])
    expect(text).not.toContain('quantile="0.9"')
  })

  it('of 3.10 are those of counters by key, too', async () => {
    const ensemble = await Ensemble.start(3, { enforceQuota: true, metricsNames: '3.10' })
    const leader = ensemble.leader!
    const client = await ensemble.client(leader)
    const quota = '/zookeeper/quota/app'
    for (const [index, path] of ['/app', quota, `${quota}/zookeeper_stats`].entries())
      client.create(index, path)
    client.create(10, `${quota}/zookeeper_limits`, 0, 'count=-1,bytes=-1,byteHardLimit=3')
    await ensemble.receive(client, 4)
    client.set(11, '/app', 'long')
    await ensemble.receive(client, 1)
    const text = await metricsOf(ensemble.member(leader))
    expect(valueOf(text, 'quota_exceeded_error_per_namespace_total{key="app"}')).toBe(1)
  })

  it('of 3.10 include its counts of operations, and their sum', async () => {
    await start({ metricsNames: '3.10' })
    const client = await server.connect()
    client.create(1, '/a')
    client.read(2, OpCode.getChildren, '/')
    client.read(3, OpCode.getChildren2, '/')
    client.read(4, OpCode.getData, '/none')
    client.ask(-2, OpCode.ping)
    await server.untilIdle()
    const text = await metricsOf(server)
    const expected = { create: 1, get_children: 2, get_data: 1, ping: 1, create_session: 1, who_am_i: 0 }
    for (const [operation, count] of Object.entries(expected))
      expect([operation, valueOf(text, `op_count_${operation}_total`)]).toEqual([operation, count])
    expect(valueOf(text, 'op_count_total')).toBe(6)
    expect(namesIn(text).filter((name) => name.startsWith('op_count_'))).toHaveLength(24)
  })
})

describe('?format=openmetrics', () => {
  it('gets valid OpenMetrics of servers in all roles, with the names of 3.10', async () => {
    const ensemble = await Ensemble.start(3, { backupTargets: ['/shared/backup'], observers: [3] })
    await ensemble.create(await ensemble.client(1), '/a"\\b\u2028# HELP znode_count x')
    await ensemble.advance(60_000)
    for (const { http } of ensemble.members.values()) {
      const { text, headers } = await http.request(OPEN_METRICS)
      expect(headers['content-type']).toBe(OPEN_METRICS_TYPE)
      const parsed = parseOpenMetrics(text)
      expect(parsed.size).toBeGreaterThan(190)
      expect(parsed.get('zabra_requests')!.type).toBe('counter')
      expect(parsed.get('zabra_build')!.type).toBe('info')
      expect(text).toContain('\n# UNIT response_bytes bytes\nresponse_bytes_total ')
      expect(text).toContain('\nzabra_request_seconds_bucket{kind="write",le="5.05e-05"} ')
      const names = [...parsed.get('zabra_tree_bytes')!.samples].map(({ labels }) => labels.get('namespace'))
      expect(names).toContain('/a"\\b\u2028# HELP znode_count x')
    }
    const leading = parseOpenMetrics(
      (await ensemble.member(ensemble.leader!).http.request(OPEN_METRICS)).text,
    )
    const missing = families.filter(
      ({ name, isCounter }) => (leading.get(name)?.type === 'counter') !== isCounter,
    )
    expect(missing).toEqual([])
  })

  it('gets valid OpenMetrics of a server that serves nothing yet', () => {
    const text = [
      ...writeMetrics(OPEN_METRICS_WRITER, undefined, { logLines: { info: 1 }, logLost: 0 }),
    ].join('')
    expect([...parseOpenMetrics(text).keys()]).toEqual([
      'zabra_build',
      'zabra_ready',
      'zabra_log_lines',
      'zabra_log_lost',
    ])
  })

  it('has the samples of the text format with names of 3.10', async () => {
    await start()
    const open = parseOpenMetrics((await server.http.request(OPEN_METRICS)).text)
    const names = [...open.values()].flatMap(({ samples }) => samples.map(({ name }) => name))
    await server.stop()
    await start({ metricsNames: '3.10' })
    const plain = [...(await metricsOf(server)).matchAll(/^[a-z]\w*/gm)].map(([name]) => name)
    expect(names).toEqual(plain)
  })

  it('is served on the port of the Prometheus provider, and to HEAD', async () => {
    await start({ metricsProvider: PROMETHEUS_PROVIDER })
    const at = { port: 7000, from: '10.1.2.3' }
    expect(parseOpenMetrics((await server.http.request(OPEN_METRICS, at)).text).has('znode_count')).toBe(true)
    for (const port of [7000, 8080])
      expect(await server.http.request(OPEN_METRICS, { port, method: 'HEAD' })).toMatchObject({
        status: 200,
        headers: { 'content-type': OPEN_METRICS_TYPE },
      })
  })

  it('is not mixed up with the text format where scrapes come together', async () => {
    await start()
    const targets = ['/metrics', OPEN_METRICS, '/metrics', OPEN_METRICS]
    const answers = await Promise.all(targets.map((target) => server.http.request(target)))
    const [plain, open] = answers as [(typeof answers)[0], (typeof answers)[0]]
    expect(plain.headers['content-type']).toMatch(/^text\/plain;/)
    expect(plain.text).not.toContain('# EOF')
    expect(open.headers['content-type']).toBe(OPEN_METRICS_TYPE)
    expect(parseOpenMetrics(open.text).has('zabra_transactions')).toBe(true)
    expect(answers.slice(2).map(({ text }) => text)).toEqual([plain.text, open.text])
  })

  it('is the only format that can be asked for: others get 400, and what is possible', async () => {
    await start({ metricsProvider: PROMETHEUS_PROVIDER })
    for (const port of [7000, 8080])
      expect(await server.http.request('/metrics?format=json', { port })).toMatchObject({
        status: 400,
        text: 'Expected format=openmetrics, but got "json". Leave format out for the text format of Prometheus.\n',
      })
    for (const format of ['', 'OpenMetrics', `${'x'.repeat(5000)}`]) {
      const { status, text } = await server.http.request(`/metrics?format=${format}`)
      expect([status, text.length < 200]).toEqual([400, true])
    }
  })
})

describe('?name[]=', () => {
  const ask = async (query: string) => (await server.http.request(`/metrics?${query}`)).text

  it('gets the families that have one of the names, or samples with one', async () => {
    await start()
    expect(namesIn(await ask('name[]=znode_count&name[]=readlatency_count&name[]=none'))).toEqual([
      'readlatency',
      'znode_count',
    ])
    expect(await ask('name[]=znode_count')).toMatch(/^# HELP .*\n# TYPE .*\nznode_count \d+\.0\n$/)
    expect(await ask('name[]=commit_count_total')).toBe('')
  })

  it('goes by the names that are served', async () => {
    await start({ metricsNames: '3.10' })
    expect(namesIn(await ask('name[]=response_bytes_total'))).toEqual(['response_bytes_total'])
    expect(await ask('name[]=response_bytes')).toBe('')
    const open = await ask('format=openmetrics&name[]=response_bytes_total&name[]=zabra_fsync_seconds_bucket')
    expect([...parseOpenMetrics(open).keys()]).toEqual(['response_bytes', 'zabra_fsync_seconds'])
    expect(parseOpenMetrics(await ask('format=openmetrics&name[]=none')).size).toBe(0)
  })

  it('keeps the samples of a family together whatever their labels say', async () => {
    const { fixture, client } = await TestServer.withClient()
    server = fixture
    client.create(1, '/a\u2028# HELP znode_count x')
    await server.untilIdle()
    const text = await ask('name[]=zabra_tree_nodes')
    expect(valueOf(text, 'zabra_tree_nodes{namespace="/a\u2028# HELP znode_count x"}')).toBe(1)
    expect(valueOf(text, 'zabra_tree_nodes{namespace="other"}')).toBe(0)
  })

  it('is refused with more parameters than are read, also on the port of the Prometheus provider', async () => {
    await start({ metricsProvider: PROMETHEUS_PROVIDER })
    for (const port of [7000, 8080]) {
      const { status, text } = await server.http.request('/metrics?name[]=a', { port, isQueryCut: true })
      expect([status, text]).toEqual([400, expect.stringMatching(/^Too many parameters\. /)])
    }
  })
})

it('a server that serves nothing yet has the same text with the names of both releases', () => {
  const figures = { logLines: { info: 1 } }
  const [old, latest] = [TEXT_WRITERS['3.9'], TEXT_WRITERS['3.10']].map((writer) =>
    [...writeMetrics(writer, undefined, figures)].join(''),
  )
  expect(old).toBe(latest)
})
