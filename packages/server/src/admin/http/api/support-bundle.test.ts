import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { gunzipSync } from 'node:zlib'
import { OpCode, writeAuthPacket, writeSetACLRequest } from '@zabra/protocol'
import { MemoryDisk, type HttpResponse } from '@zabra/runtime'
import type { TextResponse } from '@zabra/testkit'
import { afterEach, expect, it } from 'vitest'
import { rowOf, settingNames, type ServerSettings } from '../../../settings/index.ts'
import { TestServer } from '../../../testing/test-server.ts'
import type { AdminTarget } from '../../admin-target.ts'
import { problem, type ApiCall } from './api-route.ts'
import { SupportBundles } from './support-bundle.ts'

const ADMIN: Partial<ServerSettings> = { adminRoleAdmin: ['ip:127.0.0.1'], adminRoleView: ['ip:127.0.0.1'] }

let server: TestServer
afterEach(() => server.stop())

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text)

/** Gives the server of the test a logger that keeps its lines. */
function keepLines(): void {
  const lastLines = {
    bytes: 1 << 20,
    *[Symbol.iterator]() {
      for (const { facts, sentence } of server.logLines) yield JSON.stringify({ ...facts, msg: sentence })
    },
  }
  Object.assign(server.logger, { lastLines })
}

/** Asks for a bundle, and lets the time pass in which the busiest keys are counted. */
async function ask(): Promise<TextResponse> {
  let answer: TextResponse | undefined
  const asked = server.http.request('/api/v1/support-bundle').then((it) => (answer = it))
  for (let ticks = 0; ticks < 100 && answer === undefined; ticks++) await server.advance(1000)
  return asked
}

/** Returns the files of an archive by their names, without its folder. */
function unpack(gzip: Uint8Array): ReadonlyMap<string, string> {
  const tar = gunzipSync(gzip)
  const files = new Map<string, string>()
  for (let at = 0; tar[at] !== 0;) {
    const field = (from: number, length: number): string =>
      tar.toString('latin1', at + from, at + from + length).replace(/\0.*$/s, '')
    const size = Number.parseInt(field(124, 12), 8)
    const name = field(0, 100)
    files.set(name.slice(name.indexOf('/') + 1), tar.toString('utf8', at + 512, at + 512 + size))
    at += 512 + Math.ceil(size / 512) * 512
  }
  return files
}

it('a bundle has what describes a server, and a manifest that lists it and what is left out', async () => {
  server = await TestServer.start(ADMIN)
  keepLines()
  const client = await server.connect()
  client.create(1, '/a', 0, 'x')
  const { status, headers, bytes } = await ask()
  expect([status, headers['content-type']]).toEqual([200, 'application/gzip'])
  const files = unpack(bytes)
  const manifest = files.get('MANIFEST.txt')!
  for (const name of files.keys()) if (name !== 'MANIFEST.txt') expect(manifest).toContain(`${name} `)
  const json = (name: string): unknown => JSON.parse(files.get(name)!)
  expect(json('self.json')).toMatchObject({ role: 'standalone', settings: { tickTime: '1 s' } })
  expect(json('settings.json')).toMatchObject({
    settings: expect.arrayContaining([
      expect.objectContaining({ key: 'admin.role.admin', value: 'ip:127.0.0.1', withheld: false }),
    ]) as unknown,
  })
  expect(json('cluster.json')).toMatchObject({ members: [{ state: 'standalone' }] })
  expect(json('commands/monitor.json')).toMatchObject({ server_state: 'standalone' })
  expect(json('findings.json')).toMatchObject({ nodes: 5 })
  expect(json('version.json')).toMatchObject({ role: 'standalone', pid: 7 })
  expect(json('files.json')).toMatchObject({
    folders: [
      {
        folder: '/data',
        files: expect.arrayContaining([expect.objectContaining({ name: 'session.secret' })]) as unknown,
      },
      {},
    ],
  })
  expect(json('top-session.json')).toMatchObject({ windowMs: expect.any(Number) as unknown })
  expect(files.get('metrics.txt')).toMatch(/^znode_count [56]/m)
  expect(files.get('log.jsonl')).toContain('A session is connected')
  expect(files.get('readiness.txt')).toContain('readyz check passed')
  // Roles name users and addresses.
  expect(manifest).toMatch(/^Paths of nodes, addresses [^]* self\.json, settings\.json,/m)
  expect(manifest).toContain('Left out on purpose:\n\n- the data of nodes')
})

it('a bundle lists a thousand files of a folder, and counts the others', async () => {
  const disk = new MemoryDisk()
  for (let i = 0; i < 1100; i++) disk.putFile(`/data/log.${i.toString(16).padStart(4, '0')}`, utf8('x'))
  server = await TestServer.start(ADMIN, disk)
  const { folders } = JSON.parse(unpack((await ask()).bytes).get('files.json')!) as {
    folders: { folder: string; files: object[]; omitted: number }[]
  }
  expect(folders[0]).toMatchObject({ folder: '/data', omitted: expect.any(Number) as unknown })
  expect(folders[0]!.files).toHaveLength(1000)
  expect(folders[0]!.omitted).toBeGreaterThanOrEqual(100)
})

it('a bundle is an archive that tar lists', async () => {
  server = await TestServer.start(ADMIN)
  const { bytes } = await ask()
  const { status, stdout } = spawnSync('tar', ['-tvzf', '-'], { input: bytes, encoding: 'utf8' })
  expect(status).toBe(0)
  expect(stdout).toMatch(/^-rw------- .* \d+ .*zabra-1-\w+\/version\.json$/m)
  expect(stdout).toMatch(/\/MANIFEST\.txt\n$/)
})

it('a bundle has no data, password, token, digest or secret setting', async () => {
  const secret = (name: string): string => `marker-of-${name}`.padEnd(32, '-')
  const hidden = settingNames.filter((name) => rowOf(name).isSecret === true)
  const planted = hidden.map((name) => [
    name,
    /users$/i.test(name) ? { ada: secret(name) } : secret(name),
  ]) as readonly (readonly [string, unknown])[]
  const superDigest = Buffer.from('marker-of-super-dig').toString('base64')
  const digest = Buffer.from('marker-of-a-digest.').toString('base64')
  const token = 'marker-of-a-token'
  const hash = createHash('sha256').update(token).digest('hex')
  const disk = new MemoryDisk()
  disk.putFile('/data/tokens', utf8(`deploy:view:${hash}\n`))
  server = await TestServer.start(
    {
      ...Object.fromEntries(planted),
      ...ADMIN,
      superDigest: `super:${superDigest}`,
      adminTokensFile: '/data/tokens',
      auditEnabled: true,
      auditFormat: 'json',
      slowRequestMs: 1,
      slowRequestReadMs: 1,
    },
    disk,
  )
  keepLines()
  await server.http.request('/api/v1/top')
  const client = await server.connect()
  const authenticate = (auth: string): void =>
    client.ask(-4, OpCode.auth, (w) => writeAuthPacket(w, { type: 0, scheme: 'digest', auth: utf8(auth) }))
  authenticate('bob:marker-of-a-password')
  client.create(1, '/password', 0, 'marker-of-data')
  client.ask(2, OpCode.setACL, (w) =>
    writeSetACLRequest(w, {
      path: '/password',
      acl: [{ perms: 31, id: { scheme: 'digest', id: `eve:${digest}` } }],
      version: -1,
    }),
  )
  await server.untilIdle()
  const unblock = server.blockDisk()
  client.create(3, '/b', 0, 'marker-of-data')
  await server.advance(500)
  unblock()
  for (const authorization of [`Bearer ${token}`, `Basic ${btoa(`ada:${secret('saslUsers')}`)}`])
    await server.http.request('/api/v1/drain', { method: 'DELETE', headers: { authorization } })
  const files = unpack((await ask()).bytes)
  expect(JSON.parse(files.get('slow.json')!)).toMatchObject({ requests: [{ users: ['127.0.0.1', 'bob'] }] })
  expect(files.get('self.json')).toContain('(set, not shown)')
  const secrets = await disk.readFile('/data/session.secret')
  const digits = new TextDecoder().decode(secrets).match(/[\da-f]{32,}/g)!
  const markers = [
    ...hidden.map(secret),
    'marker-of',
    superDigest.replace(/=+$/, ''),
    digest.replace(/=+$/, ''),
    hash,
    ...digits,
    Buffer.from(client.session!.passwd!).toString('hex'),
  ]
  for (const [name, contents] of files)
    for (const marker of markers) expect([name, contents.includes(marker)]).toEqual([name, false])
})

it('a second bundle is refused while the first is made', async () => {
  server = await TestServer.start(ADMIN)
  const first = server.http.request('/api/v1/support-bundle')
  await server.untilIdle()
  const refused = await server.http.request('/api/v1/support-bundle')
  expect(refused).toMatchObject({ status: 429, headers: { 'retry-after': '10' } })
  for (let ticks = 0; ticks < 10; ticks++) await server.advance(1000)
  expect((await first).status).toBe(200)
  expect((await ask()).status).toBe(200)
})

it('a bundle ends for others when its reader leaves before it has begun, or takes longer than two minutes', async () => {
  server = await TestServer.start(ADMIN)
  const bundles = new SupportBundles(server.platform())
  const begin = () => bundles.begin({ target: { settings: server.settings } } as ApiCall)
  const first = begin()
  expect(begin().status).toBe(429)
  await (first.body as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]().return!()
  expect([begin().status, begin().status]).toEqual([200, 429])
  server.clock.advance(120_000)
  expect(begin().status).toBe(200)
})

/** Returns the files of a bundle for which requests are answered by `ask`. */
async function bundleOf(ask: (path: string) => Promise<HttpResponse>): Promise<ReadonlyMap<string, string>> {
  const { clock, disk, system } = server.platform()
  const target = {
    settings: server.settings,
    role: 'standalone',
    features: {},
    platform: { clock, disk, system },
    startedAt: 0,
    directories: { snapshots: '/data', logs: '/data' },
  } as unknown as AdminTarget
  const { body } = new SupportBundles(server.platform()).begin({ target, ask } as ApiCall)
  const chunks: Uint8Array[] = []
  let isOver = false
  const read = async (): Promise<void> => {
    for await (const chunk of body as AsyncIterable<Uint8Array>) chunks.push(chunk)
    isOver = true
  }
  const reading = read()
  for (let ticks = 0; ticks < 200 && !isOver; ticks++) await server.advance(1000)
  await reading
  return unpack(Buffer.concat(chunks))
}

it('a bundle leaves out what is refused, what fails and what has no answer in time, and says so; the rest is there', async () => {
  server = await TestServer.start(ADMIN)
  const files = await bundleOf(async (path) => {
    if (path === '/api/v1/cluster') return problem(503, 'There is no leader', 'Wait.')
    if (path === '/api/v1/slow') throw new Error('It has failed')
    // As on a disk that does not answer.
    if (path === '/commands/dirs') return new Promise<never>(() => {})
    return { status: 200, body: path }
  })
  const manifest = files.get('MANIFEST.txt')!
  expect(manifest).toMatch(/^cluster\.json +\/api\/v1\/cluster has answered 503: There is no leader$/m)
  expect(manifest).toMatch(/^slow\.json +It has failed$/m)
  expect(manifest).toMatch(/^log\.jsonl +the program of this server keeps no lines/m)
  expect(manifest).toMatch(/^commands\/dirs\.json +there was no answer within 20 s$/m)
  for (const name of ['cluster.json', 'slow.json', 'log.jsonl', 'commands/dirs.json'])
    expect(files.has(name)).toBe(false)
  for (const name of ['metrics.txt', 'commands/zabstate.json', 'top-identity.json'])
    expect(files.has(name)).toBe(true)
})

it('a bundle ends after two minutes, without what there was no time for', async () => {
  server = await TestServer.start(ADMIN)
  const files = await bundleOf(async (path) =>
    path.startsWith('/commands/') ? new Promise<never>(() => {}) : { status: 200, body: path },
  )
  expect(files.has('metrics.txt')).toBe(true)
  const manifest = files.get('MANIFEST.txt')!
  expect(manifest).toMatch(/^commands\/configuration\.json +there was no answer within 20 s$/m)
  expect(manifest).toMatch(/^commands\/zabstate\.json +there was no time left/m)
})

it('a bundle cuts an answer at 8 MiB, and all of them at 64 MiB', async () => {
  server = await TestServer.start(ADMIN)
  let bytes = 0
  const chunk = new Uint8Array(1 << 16)
  async function* endless(): AsyncGenerator<Uint8Array> {
    for (;;) {
      bytes += chunk.length
      yield chunk
    }
  }
  const files = await bundleOf(async () => ({ status: 200, body: endless() }))
  const sizes = [...files.values()].map((text) => Buffer.byteLength(text))
  expect(Math.max(...sizes)).toBe(8 << 20)
  expect(sizes.reduce((sum, size) => sum + size)).toBeLessThan((64 << 20) + 10_000)
  expect(bytes).toBeLessThan((64 << 20) + 40 * (1 << 17))
  expect(files.get('MANIFEST.txt')).toMatch(/^self\.json +8388608 .*cut here: it is longer/m)
})

it('a bundle needs the role admin, and is recorded in the audit log', async () => {
  server = await TestServer.start({ ...ADMIN, adminRoleAdmin: [], auditEnabled: true, auditFormat: 'json' })
  expect((await server.http.request('/api/v1/support-bundle')).status).toBe(401)
  await server.untilIdle()
  expect(JSON.stringify(server.logLines)).toContain('GET /api/v1/support-bundle')
})
