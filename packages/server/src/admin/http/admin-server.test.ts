import { OpCode } from '@zabra/protocol'
import { createHash } from 'node:crypto'
import { MemoryDisk, NetworkError, silentLogger } from '@zabra/runtime'
import { ManualPlatform } from '@zabra/testkit'
import { afterEach, describe, expect, it } from 'vitest'
import { createServer } from '../../server.ts'
import { defaults, PROMETHEUS_PROVIDER } from '../../settings/index.ts'
import { TestServer } from '../../testing/test-server.ts'

let server: TestServer

async function start(settings: Parameters<typeof TestServer.start>[0] = {}): Promise<TestServer> {
  server = await TestServer.start(settings)
  return server
}

afterEach(() => server?.stop())

const get = (path: string, options?: Parameters<TestServer['http']['request']>[1]) =>
  server.http.request(path, options)

/** Returns the members of a command's answer. */
const command = async (path: string): Promise<Record<string, unknown>> =>
  JSON.parse((await get(`/commands/${path}`)).text) as Record<string, unknown>

describe('commands of the HTTP port', () => {
  it('answer in the form of Apache ZooKeeper, by any of their names', async () => {
    await start()
    const expected = '{\n  "read_only" : false,\n  "command" : "is_read_only",\n  "error" : null\n}'
    expect(await get('/commands/is_read_only')).toMatchObject({
      status: 200,
      headers: { 'content-type': 'application/json' },
      text: expected,
    })
    expect((await get('/commands/isro')).text).toBe(expected)
  })

  it('name an unknown command in the answer, with status 200', async () => {
    await start()
    expect(await get('/commands/nosuch')).toMatchObject({
      status: 200,
      text: '{\n  "command" : "nosuch",\n  "error" : "Unknown command: nosuch"\n}',
    })
  })

  it('write an error of their own first', async () => {
    await start()
    expect((await get('/commands/leader')).text).toBe(
      '{\n  "error" : "server is not initialized",\n  "command" : "leader"\n}',
    )
    expect((await get('/commands/set_trace_mask?traceMask=x')).status).toBe(401)
    await server.stop()
    await start({ adminRoleOperate: ['ip:127.0.0.1'] })
    const problem = 'setTraceMask requires long traceMask argument'
    for (const [query, error] of [
      ['', problem],
      ['?traceMask=x', `${problem}, got x`],
    ] as const)
      expect(await get(`/commands/set_trace_mask${query}`)).toMatchObject({
        status: 200,
        text: `{\n  "error" : "${error}",\n  "command" : "set_trace_mask"\n}`,
      })
  })

  it('list all commands at the path of the commands', async () => {
    await start()
    const { text } = await get('/commands')
    expect(text.startsWith('<a href="/commands/configuration">configuration</a>\n<br/>\n')).toBe(true)
    expect(text.match(/<br\/>/g)).toHaveLength(29)
  })

  it('show sessions, ephemeral nodes and watches with ids as exact integers', async () => {
    await start()
    const client = await server.connect()
    client.create(1, '/held', 1)
    client.read(2, OpCode.exists, '/held', true)
    await server.untilIdle()
    const id = String(client.session!.sessionId)
    expect((await get('/commands/dump')).text).toContain(`"${id}" : [ "/held" ]`)
    expect((await get('/commands/watches')).text).toContain(`"${id}" : [ "/held" ]`)
    expect((await get('/commands/watches_by_path')).text).toContain(`"/held" : [ ${id} ]`)
    expect((await get('/commands/connections')).text).toContain(`"session_id" : ${id},`)
    expect(await command('watch_summary')).toMatchObject({
      num_connections: 1,
      num_paths: 1,
      num_total_watches: 1,
    })
  })

  it('send a snapshot to callers with the role, once in the interval', async () => {
    await start({ adminRoleBackup: ['ip:127.0.0.0/8'] })
    await server.connect()
    const { status, headers, text } = await get('/commands/snapshot')
    expect(status).toBe(200)
    expect(headers).toMatchObject({ last_zxid: '0x1', 'content-type': 'application/octet-stream' })
    expect(text.startsWith('ZKSN')).toBe(true)
    expect(await get('/commands/snapshot')).toMatchObject({
      status: 429,
      headers: { 'retry-after': '300' },
      text: '{\n  "command" : "snapshot",\n  "error" : null\n}',
    })
    await server.advance(300_000)
    const brief = await get('/commands/snapshot?streaming=false')
    expect(brief).toMatchObject({ status: 200, headers: { last_zxid: '0x2' } })
    expect(brief.text).toContain('"error" : null')
    expect((await get('/commands/snapshot', { from: '10.0.0.1' })).status).toBe(401)
  })

  it('name the newest snapshot and its time, also after a restart', async () => {
    await start()
    await server.connect()
    await server.server.snapshot()
    const takenAt = server.clock.wall()
    const expected = { zxid: '1', timestamp: Math.floor(takenAt / 1000) }
    expect(await command('last_snapshot')).toMatchObject(expected)
    await server.stop()
    await server.restart()
    await server.advance(60_000)
    expect(await command('lsnp')).toMatchObject(expected)
    const age = (server.clock.wall() - takenAt) / 1000
    expect(age).toBeGreaterThanOrEqual(60)
    expect((await get('/metrics')).text).toContain(`\nzabra_snapshot_age_seconds ${age}\n`)
  })

  it('hide the values of settings and variables that hold secrets', async () => {
    await start({ superDigest: 'super:c2VjcmV0' })
    expect((await command('system_properties'))['DigestAuthenticationProvider.superDigest']).toBe(
      '(set, not shown)',
    )
    expect((await get('/commands/initial_configuration')).text).not.toContain('c2VjcmV0')
    await server.stop()
    await start({ adminRoleBackup: ['digest:ada:aGFzaA==', 'sasl:bob'] })
    for (const path of ['/commands/initial_configuration', '/commands/system_properties', '/api/v1/self']) {
      const { text } = await get(path)
      expect(text).toContain('digest:ada:(not shown), sasl:bob')
      expect(text).not.toContain('aGFzaA')
    }
  })
})

describe('shed_connections', () => {
  const shed = (body: string, headers = {}) =>
    server.http.request('/commands/shed_connections', { method: 'POST', body, headers })

  it('closes the share of the connections that the caller asks for', async () => {
    await start({ adminRoleAdmin: ['ip:127.0.0.1'] })
    const clients = [
      await server.connect(),
      await server.connect(),
      await server.connect(),
      await server.connect(),
    ]
    expect((await shed('{"percentage": 50}')).text).toContain('"connections_shed" : 2,')
    await server.untilIdle()
    expect(clients.filter(({ closed }) => closed)).toHaveLength(2)
    expect(await shed('{"percentage": 101}')).toMatchObject({ status: 400 })
    expect(await get('/commands/shed_connections')).toMatchObject({ status: 405, headers: { allow: 'POST' } })
  })

  it('is refused to callers without the role admin', async () => {
    await start({ adminRoleOperate: ['ip:127.0.0.1'] })
    expect((await shed('{"percentage": 50}')).status).toBe(401)
  })
})

describe('a tokens file', () => {
  const hashOf = (token: string): string => createHash('sha256').update(token).digest('hex')
  const as = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })

  it('gives the roles of its lines to callers with a token, until its date', async () => {
    const disk = new MemoryDisk()
    disk.putFile(
      '/data/tokens',
      new TextEncoder().encode(
        `# deploys\nci:view,operate:${hashOf('s3cret')}\nold:admin:${hashOf('gone')}:1969-12-31\n`,
      ),
    )
    server = await TestServer.start({ adminTokensFile: '/data/tokens', adminAnonymous: ['health'] }, disk)
    expect((await get('/commands/monitor')).status).toBe(401)
    expect((await get('/commands/monitor', as('s3cret'))).status).toBe(200)
    expect((await get('/commands/stat_reset', as('s3cret'))).status).toBe(200)
    expect((await get('/commands/snapshot', as('s3cret'))).status).toBe(403)
    expect((await get('/commands/monitor', as('gone'))).status).toBe(401)
    expect((await get('/commands/monitor', as('wrong'))).status).toBe(401)
    disk.putFile('/data/tokens', new TextEncoder().encode('nonsense'))
    await server.server.reload()
    expect((await get('/commands/monitor', as('s3cret'))).status).toBe(200)
    disk.putFile('/data/tokens', new Uint8Array(0))
    await server.server.reload()
    expect((await get('/commands/monitor', { ...as('s3cret'), from: '127.0.0.3' })).status).toBe(401)
  })

  it.each([
    ['ci:view:abc', 'line 1: expected the SHA-256'],
    [
      `ci:owner:${'a'.repeat(64)}`,
      'line 1: expected roles among metrics, view, operate, backup, admin, got "owner"',
    ],
    [
      'ci:kX93-secret-token:view',
      'line 1: expected roles among metrics, view, operate, backup, admin, got something else',
    ],
    [
      `ci:view:${'a'.repeat(64)}:secret`,
      'line 1: expected a date such as 2027-01-31 or 2027-01-31T12:00:00Z, got something else',
    ],
    [`ci:view:${'a'.repeat(64)}:soon`, 'line 1: expected a date'],
    [
      `ci:view:${'a'.repeat(64)}\nci:view:${'b'.repeat(64)}`,
      'line 2: expected a name and a token of its own',
    ],
  ])('ends the start with the line that is wrong: %s', async (text, message) => {
    const disk = new MemoryDisk()
    disk.putFile('/data/tokens', new TextEncoder().encode(text))
    await expect(TestServer.start({ adminTokensFile: '/data/tokens' }, disk)).rejects.toThrow(message)
  })
})

describe('access to the HTTP port', () => {
  it('is refused to callers of other machines without credentials, but for health and metrics', async () => {
    await start()
    const from = '10.1.2.3'
    expect(await get('/commands/configuration', { from })).toMatchObject({
      status: 401,
      text: '{\n  "command" : "configuration",\n  "error" : "Auth info is missing for the command"\n}',
    })
    expect((await get('/readyz', { from })).status).toBe(200)
    expect((await get('/metrics', { from })).status).toBe(200)
  })

  it('is granted by the roles of the settings', async () => {
    await start({ adminRoleOperate: ['sasl:ada'], saslUsers: { ada: 'pass', bob: 'word' } })
    const authorization = `Basic ${btoa('ada:pass')}`
    const reset = (value: string) => get('/commands/stat_reset', { headers: { authorization: value } })
    expect((await get('/commands/stat_reset')).status).toBe(401)
    expect((await reset(authorization)).status).toBe(200)
    expect((await reset(`Basic ${btoa('bob:word')}`)).status).toBe(403)
    expect((await reset(`Basic ${btoa('ada:wrong')}`)).status).toBe(401)
    expect(await reset('digest ada:pass more')).toMatchObject({
      status: 401,
      text: '{\n  "command" : "stat_reset",\n  "error" : "Not authenticated"\n}',
    })
  })

  it('is denied to an address for a while after three failed logins, but for requests without one', async () => {
    await start()
    const headersOf = (password: string) => ({ authorization: `Basic ${btoa(`ada:${password}`)}` })
    for (const password of ['a', 'b', 'c'])
      expect((await get('/commands/configuration', { headers: headersOf(password) })).status).toBe(401)
    const headers = headersOf('wrong')
    expect(await get('/commands/configuration', { headers })).toMatchObject({
      status: 429,
      headers: { 'retry-after': '1' },
    })
    expect((await get('/commands/configuration')).status).toBe(200)
    expect((await get('/readyz', { headers })).status).toBe(200)
    expect((await get('/commands/configuration', { headers, from: '127.0.0.2' })).status).toBe(401)
    await server.advance(1000)
    expect((await get('/commands/configuration', { headers })).status).toBe(401)
  })

  it('slows down guesses at a digest, which proves an identity without a role', async () => {
    await start({ superDigest: 'super:c2VjcmV0' })
    const statuses: number[] = []
    for (let i = 0; i < 4; i++) {
      const headers = { authorization: `digest super:${i}` }
      statuses.push((await get('/commands/stat_reset', { headers })).status)
    }
    expect(statuses).toEqual([403, 403, 403, 429])
  })

  it('is slowed down for guesses between logins that succeed, until ten minutes after the last', async () => {
    await start({ adminRoleView: ['sasl:ada'], saslUsers: { ada: 'pass', bob: 'word' } })
    const as = async (login: string): Promise<number> =>
      (await get('/commands/monitor', { headers: { authorization: `Basic ${btoa(login)}` } })).status
    const statuses = []
    for (const login of ['bob:a', 'bob:b', 'ada:pass', 'bob:c', 'ada:pass']) statuses.push(await as(login))
    expect(statuses).toEqual([401, 401, 200, 401, 429])
    await server.advance(601_000)
    for (const login of ['bob:d', 'bob:e', 'ada:pass']) statuses.push(await as(login))
    expect(statuses.slice(5)).toEqual([401, 401, 200])
  })

  it('is slowed down for all addresses of an IPv6 network together', async () => {
    await start()
    const statuses = []
    for (let i = 1; i <= 4; i++) {
      const headers = { authorization: `Basic ${btoa(`ada:${i}`)}` }
      statuses.push((await get('/commands/monitor', { headers, from: `2001:db8::${i}` })).status)
    }
    expect(statuses).toEqual([401, 401, 401, 429])
  })

  it('is refused to pages: by a name that was rebound, and from another origin', async () => {
    await start({ adminHosts: ['zk1.example'] })
    const status = async (headers: Record<string, string>, path = '/commands/configuration') =>
      (await get(path, { headers })).status
    expect(await status({ host: 'evil.example' })).toBe(421)
    for (const authorization of ['ip', 'digest x:y'])
      expect(await status({ host: 'evil.example', authorization })).toBe(421)
    expect(await status({ host: 'zk1.example:8080' })).toBe(200)
    expect(await status({ host: '[::1]:8080' })).toBe(200)
    expect(await status({ origin: 'http://evil.example' })).toBe(403)
    expect(await status({ 'sec-fetch-site': 'cross-site' })).toBe(403)
    expect(await status({ 'sec-fetch-site': 'cross-site' }, '/readyz')).toBe(200)
    expect(await status({ host: 'pod-0.zk' }, '/metrics')).toBe(200)
  })

  it('refuses methods that a route lacks, and runs no command for HEAD', async () => {
    await start({ adminRoleBackup: ['ip:127.0.0.1'] })
    await server.connect()
    expect(await get('/commands/ruok', { method: 'POST' })).toMatchObject({
      status: 405,
      headers: { allow: 'GET', 'content-type': 'application/json' },
      text: '{\n  "command" : "ruok",\n  "error" : "POST is not possible here: use GET"\n}',
    })
    const wrong = await get('/api/v1/drain')
    expect(wrong).toMatchObject({
      status: 405,
      headers: { allow: 'POST, DELETE', 'content-type': 'application/problem+json' },
    })
    expect(JSON.parse(wrong.text)).toMatchObject({ status: 405, detail: 'Use POST or DELETE.' })
    expect(await get('/livez', { method: 'POST' })).toMatchObject({
      status: 405,
      headers: { allow: 'GET, HEAD', 'content-type': 'text/plain; charset=utf-8' },
    })
    expect((await get('/commands/stat_reset', { method: 'HEAD' })).status).toBe(405)
    const head = await get('/commands/snapshot', { method: 'HEAD' })
    expect(head).toMatchObject({ status: 405, headers: { allow: 'GET' } })
    await server.untilIdle()
    expect(await command('last_snapshot')).toMatchObject({ zxid: '0' })
    expect((await get('/commands/snapshot?streaming=false')).status).toBe(200)
    expect(await command('last_snapshot')).toMatchObject({ zxid: '1' })
    expect((await get('/livez', { method: 'HEAD' })).status).toBe(200)
    expect((await get('/elsewhere')).status).toBe(404)
    expect(await get('/api/v1/sessions/none', { method: 'DELETE' })).toMatchObject({
      status: 404,
      headers: { 'content-type': 'application/problem+json' },
    })
  })
})

describe('health', () => {
  it('is ready on a standalone server that serves, with its checks on request', async () => {
    await start()
    expect(await get('/readyz')).toMatchObject({ status: 200, text: 'ok\n' })
    expect((await get('/readyz?verbose')).text).toBe(
      '[+]draining ok\n[+]role standalone\n[+]log ok\nreadyz check passed\n',
    )
    expect((await get('/readyz/log')).status).toBe(200)
    expect((await get('/readyz/nothing')).status).toBe(404)
    expect(JSON.parse((await get('/ready')).text)).toMatchObject({
      status: 'ok',
      details: { role: 'standalone', hasLeader: true },
      zxid: '0x0',
      zxidLag: 0,
      since: new Date(server.clock.wall()).toISOString(),
    })
  })

  it('is asked without a line in the log', async () => {
    await start()
    await get('/readyz')
    const before = server.logLines.length
    for (let round = 0; round < 20; round++)
      for (const path of ['/livez', '/readyz', '/readyz?for=reads', '/ready', '/startupz']) {
        expect((await get(path)).status).toBe(200)
        expect((await get(path, { method: 'HEAD' })).status).toBe(200)
        // Few answers begin in one turn.
        await server.untilIdle()
      }
    expect(server.logLines.slice(before)).toEqual([])
  })

  it('is not ready for writes but for reads while the disk is full', async () => {
    await start()
    server.disk.injectFault = (call) => (call === 'write' ? { code: 'ENOSPC' } : undefined)
    await server.client()
    expect(await get('/readyz')).toMatchObject({ status: 503, text: 'log\n' })
    expect((await get('/readyz?for=reads')).status).toBe(200)
    expect((await get('/livez')).status).toBe(200)
    server.disk.injectFault = undefined
    await server.advance(10_000)
    expect((await get('/readyz')).status).toBe(200)
  })

  it('is alive and neither started nor ready while the data are read', async () => {
    const platform = new ManualPlatform()
    let release = (): void => {}
    const blocked = new Promise<void>((resolve) => (release = resolve))
    platform.disk.beforeWrite = () => blocked
    const starting = createServer(defaults({ dataDir: '/data', clientPort: 0 }), platform.platform())
    await platform.untilIdle()
    expect((await platform.http.request('/livez')).status).toBe(200)
    expect((await platform.http.request('/startupz')).status).toBe(503)
    expect(await platform.http.request('/readyz')).toMatchObject({ status: 503, text: 'recovery\n' })
    release()
    await (await starting).close()
  })
})

describe('the HTTP port', () => {
  it('is left out with a warning when the default port is used by another program', async () => {
    const platform = new ManualPlatform()
    platform.http.usedPorts.add(8080)
    const lines: string[] = []
    const logger = { ...silentLogger, warn: (_: object, sentence: string) => void lines.push(sentence) }
    const settings = defaults({ dataDir: '/data', clientPort: 0 })
    const running = await createServer(settings, { ...platform.platform(), logger })
    await expect(platform.http.request('/livez')).rejects.toThrow(NetworkError)
    expect(lines).toContain(
      'The HTTP port for health, metrics and commands is not open; set admin.serverPort or admin.enableServer=false',
    )
    await running.close()
  })

  it('fails the start when its port is set and used by another program', async () => {
    const platform = new ManualPlatform()
    platform.http.usedPorts.add(8081)
    const settings = defaults({ dataDir: '/data', clientPort: 0, adminPort: 8081 })
    const error = await createServer(settings, platform.platform()).catch((reason: unknown) => reason)
    expect(error).toMatchObject({ name: 'HttpPortError', cause: { name: 'NetworkError' } })
    expect((error as Error).message).toMatch(/^admin\.serverPort: /)
  })

  it('is closed with the server', async () => {
    await start()
    await server.stop()
    await expect(get('/livez')).rejects.toThrow('closed')
  })
})

describe('metrics', () => {
  it('are valid Prometheus text with each family once and its samples behind it', async () => {
    await start()
    await server.connect()
    const { text, headers } = await get('/metrics')
    expect(headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8')
    const names = [...text.matchAll(/^# TYPE (\S+) (?:counter|gauge|summary|histogram)$/gm)].map(
      ([, name]) => name,
    )
    expect(new Set(names).size).toBe(names.length)
    let family = ''
    for (const line of text.trimEnd().split('\n')) {
      if (line.startsWith('# TYPE ')) family = line.split(' ')[2]!
      else if (!line.startsWith('#'))
        expect(line).toMatch(
          new RegExp(`^${family}(?:_count|_sum|_bucket)?(?:\\{.*\\})? -?(?:[\\d.e-]+|NaN)$`),
        )
    }
    expect(text).toContain('\nnum_alive_connections 1.0\n')
    expect(text).toContain('\nzabra_ready{for="writes"} 1\n')
  })

  it('count requests by operation and result, and their times in histograms', async () => {
    await start()
    const client = await server.connect()
    client.create(1, '/a')
    client.create(2, '/a')
    client.read(3, OpCode.getData, '/b')
    client.read(4, OpCode.getData, '/a')
    await server.untilIdle()
    const { text } = await get('/metrics')
    for (const line of [
      'zabra_requests_total{op="create",result="ok"} 1',
      'zabra_requests_total{op="create",result="nodeexists"} 1',
      'zabra_requests_total{op="getData",result="ok"} 1',
      'zabra_requests_total{op="getData",result="nonode"} 1',
      'zabra_requests_total{op="setData",result="ok"} 0',
      'zabra_request_seconds_bucket{kind="write",le="+Inf"} 2',
      'zabra_request_seconds_count{kind="read"} 2',
      'zabra_transactions_total 3',
      'zabra_watches{kind="data"} 0',
      'zabra_sessions{kind="global"} 1',
      'zabra_ready_check{check="log"} 1',
    ])
      expect(text).toContain(`\n${line}\n`)
    expect(text).toMatch(/\nzabra_disk_free_bytes\{dir="\/data\/version-2"\} \d+\n/)
  })

  it('keep the counts of requests after srst', async () => {
    await start()
    const client = await server.connect()
    client.create(1, '/a')
    await server.untilIdle()
    await server.command('srst')
    expect((await get('/metrics')).text).toContain('\nzabra_requests_total{op="create",result="ok"} 1\n')
  })

  it('are served on a port of their own with the Prometheus provider', async () => {
    await start({ metricsProvider: PROMETHEUS_PROVIDER })
    const at = { port: 7000, from: '10.1.2.3' }
    expect((await get('/metrics', at)).text).toContain('\nznode_count ')
    expect((await get('/commands', at)).status).toBe(404)
    expect((await get('/metrics', { ...at, method: 'POST' })).status).toBe(405)
    await server.stop()
    await expect(get('/metrics', at)).rejects.toThrow('closed')
  })

  it('end the start when the port of the Prometheus provider is used by another program', async () => {
    const platform = new ManualPlatform()
    platform.http.usedPorts.add(7000)
    const settings = defaults({ dataDir: '/data', clientPort: 0, metricsProvider: PROMETHEUS_PROVIDER })
    const error = await createServer(settings, platform.platform()).catch((reason: unknown) => reason)
    expect(error).toMatchObject({ name: 'HttpPortError', cause: { name: 'NetworkError' } })
    expect((error as Error).message).toMatch(/^metricsProvider\.httpPort: /)
    await expect(platform.http.request('/livez')).rejects.toThrow('closed')
  })

  it('leave out those of the process with metricsProvider.exportJvmInfo=false', async () => {
    await start({ metricsExportRuntime: false })
    expect((await get('/metrics')).text).not.toMatch(/^process_/m)
  })
})
