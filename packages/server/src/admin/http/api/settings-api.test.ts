import { OpCode } from '@zabra/protocol'
import { MemoryDisk } from '@zabra/runtime'
import { afterEach, describe, expect, it } from 'vitest'
import { Ensemble } from '../../../ensemble/testing/ensemble.ts'
import { rowOf } from '../../../settings/index.ts'
import { changeableNames, type SettingReport } from '../../../settings/live-settings.ts'
import { TestServer } from '../../../testing/test-server.ts'

let server: TestServer

async function start(
  settings: Parameters<typeof TestServer.start>[0] = {},
  disk?: MemoryDisk,
): Promise<void> {
  server = await TestServer.start({ adminRoleAdmin: ['ip:127.0.0.1'], ...settings }, disk)
}

afterEach(() => server?.stop())

type Setting = Omit<SettingReport, 'isChangeable' | 'isWithheld'> & { changeable: boolean; withheld: boolean }

async function settings(): Promise<Readonly<Record<string, Setting>>> {
  const { status, text } = await server.http.request('/api/v1/settings')
  expect(status).toBe(200)
  return Object.fromEntries(
    (JSON.parse(text) as { settings: Setting[] }).settings.map((setting) => [setting.key, setting]),
  )
}

async function patch(
  body: object | string,
): Promise<{ status: number; changed?: object[]; detail?: string; title?: string }> {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const answer = await server.http.request('/api/v1/settings', { method: 'PATCH', body: text })
  return { status: answer.status, ...(JSON.parse(answer.text) as object) }
}

const lines = (sentence: string): object[] =>
  server.logLines.filter((line) => line.sentence === sentence).map(({ facts }) => facts)

describe('GET /api/v1/settings', () => {
  it('lists values as a file has them, with their origins, and no secret', async () => {
    await start({ superDigest: 'super:c2VjcmV0', purgeIntervalMs: 5_400_000, slowRequestMs: 100 })
    const all = await settings()
    expect(all['slow.request.ms']).toEqual({
      key: 'slow.request.ms',
      value: '100',
      unit: 'milliseconds',
      default: '200',
      origin: 'program',
      changeable: true,
      withheld: false,
      atStart: null,
    })
    expect(all['slow.request.readMs']).toMatchObject({ value: '100', default: null, origin: 'default' })
    expect(all['autopurge.purgeInterval']).toMatchObject({ value: '5400000ms', default: '1', unit: 'hours' })
    expect(all['DigestAuthenticationProvider.superDigest']).toMatchObject({ value: null, withheld: true })
    expect(all['dataDir']).toMatchObject({ value: '/data', origin: 'program', changeable: false })
    expect(JSON.stringify(all)).not.toContain('c2VjcmV0')
  })

  it('has values that a file takes, for all that may change', async () => {
    await start()
    const all = await settings()
    for (const name of changeableNames) {
      const { key, type } = rowOf(name)
      expect([key, type.read(all[key]!.value!)]).toEqual([key, server.settings[name]])
    }
  })
})

describe('PATCH /api/v1/settings', () => {
  it('changes settings until null brings those of the start back, with the defaults that follow from them', async () => {
    await start({ slowRequestMs: 100 })
    expect(await patch({ 'slow.request.ms': '1s', maxClientCnxns: 10 })).toEqual({
      status: 200,
      changed: [
        { key: 'maxClientCnxns', from: '60', to: '10' },
        { key: 'slow.request.ms', from: '100', to: '1000' },
        { key: 'slow.request.readMs', from: '100', to: '1000' },
      ],
      lasts: expect.stringContaining('next start'),
    })
    expect((await settings())['slow.request.ms']).toMatchObject({
      value: '1000',
      origin: 'api',
      atStart: '100',
    })
    expect(lines('Settings were changed, until the next start')).toEqual([
      { changed: 'maxClientCnxns: 60 → 10, slow.request.ms: 100 → 1000, slow.request.readMs: 100 → 1000' },
    ])
    expect((await patch({ 'slow.request.ms': null })).changed).toEqual([
      { key: 'slow.request.ms', from: '1000', to: '100' },
      { key: 'slow.request.readMs', from: '1000', to: '100' },
    ])
    const all = await settings()
    expect(all['slow.request.ms']).toMatchObject({ value: '100', origin: 'program', atStart: null })
    expect(all['maxClientCnxns']).toMatchObject({ value: '10', origin: 'api' })
    expect((await patch({ maxClientCnxns: '10' })).changed).toEqual([])
    expect(lines('Settings were changed, until the next start').length).toBe(2)
  })

  it.each([
    ['no object', '[]', 400, 'Expected {"KEY": value, …}'],
    ['nothing', '{}', 400, 'Expected {"KEY": value, …}'],
    ['an unknown key', { 'slow.request.ms': 1, 'slow.request.sm': 1 }, 400, 'did you mean slow.request.ms?'],
    ['a key of an object', '{"__proto__": 1}', 400, '"__proto__": unknown'],
    ['one that needs a restart', { 'slow.request.ms': 1, dataDir: '/b' }, 409, 'dataDir cannot change'],
    ['a secret', { 'DigestAuthenticationProvider.superDigest': 'super:x' }, 409, 'cannot change'],
    ['a value that is too small', { maxClientCnxns: -1, 'slow.request.ms': 1 }, 400, 'from 0 up'],
    ['a list', { maxClientCnxns: [1] }, 400, 'or null for the value of the start, got [1]'],
    ['an object', { maxClientCnxns: {} }, 400, 'got {}'],
    ['fewer snapshots than are kept at least', { 'autopurge.snapRetainCount': 2 }, 400, 'from 3 up'],
    ['what is audited where nothing is', { 'audit.events': 'admin' }, 409, 'set audit.enable=true'],
    ['when backups are made where none is', { 'backup.schedule': '1h' }, 409, 'set backup.target'],
    ['a cron that never comes', { 'backup.schedule': '0 0 30 2 *' }, 400, 'five fields of cron'],
  ])('changes nothing for %s, and says what was expected', async (_, body, status, detail) => {
    await start()
    const answer = await patch(body)
    expect(answer).toMatchObject({ status, detail: expect.stringContaining(detail) })
    expect((await settings())['slow.request.ms']).toMatchObject({ value: '200', origin: 'default' })
    expect(lines('Settings were changed, until the next start')).toEqual([])
  })

  it('is recorded, also where it is refused', async () => {
    const disk = new MemoryDisk()
    await start({ auditEnabled: true, auditFile: '/data/audit.log', adminRoleAdmin: ['ip:127.0.0.1'] }, disk)
    await patch({ 'slow.request.ms': 7 })
    await patch({ 'slow.request.ms': -7 })
    await server.http.request('/api/v1/settings', { method: 'PATCH', body: '{}', from: '10.0.0.1' })
    await server.stop()
    const audit = new TextDecoder().decode(await disk.readFile('/data/audit.log'))
    expect(audit).toMatch(/operation=settings\t.*slow\.request\.ms: 200 → 7/)
    expect(
      [...audit.matchAll(/operation=PATCH \/api\/v1\/settings.*result=(\w+)/g)].map(([, result]) => result),
    ).toEqual(['success', 'failure', 'failure'])
    await server.restart()
    expect((await settings())['slow.request.ms']).toMatchObject({ value: '200', origin: 'default' })
  })

  it('records more or less from now on, but always who changes what over HTTP: audit.events', async () => {
    const disk = new MemoryDisk()
    await start({ auditEnabled: true, auditFile: '/data/audit.log' }, disk)
    const client = await server.connect()
    const answer = await patch({ 'audit.events': 'writes,config' })
    expect(answer).toMatchObject({ status: 409, detail: expect.stringContaining('admin cannot leave') })
    expect((await patch({ 'audit.events': 'admin,config,reads:/secret' })).status).toBe(200)
    client.create(1, '/secret')
    client.read(2, OpCode.getChildren, '/secret')
    await server.untilIdle()
    expect((await patch({ 'audit.events': null })).status).toBe(200)
    client.create(3, '/seen')
    client.read(4, OpCode.getChildren, '/secret')
    await server.untilIdle()
    await server.stop()
    const audit = new TextDecoder().decode(await disk.readFile('/data/audit.log'))
    expect(
      [...audit.matchAll(/operation=(create|getChildren)\tznode=(\S+)/g)].map(([, ...what]) => what),
    ).toEqual([
      ['getChildren', '/secret'],
      ['create', '/seen'],
    ])
    expect(audit.match(/operation=PATCH/g)).toHaveLength(3)
  })

  it('goes on to record who changes what also where the file would not: audit.events', async () => {
    await start(
      { auditEnabled: true, auditFile: '/data/audit.log', auditEvents: ['writes'] },
      new MemoryDisk(),
    )
    expect((await patch({ 'audit.events': 'writes,admin' })).status).toBe(200)
    expect(await patch({ 'audit.events': null })).toMatchObject({
      status: 409,
      detail: expect.stringContaining('admin cannot leave'),
    })
    expect((await settings())['audit.events']).toMatchObject({ value: 'writes, admin', atStart: 'writes' })
  })

  it('needs the role admin', async () => {
    await start({ adminRoleAdmin: [], adminRoleOperate: ['ip:127.0.0.1'] })
    expect(await patch({ 'slow.request.ms': 7 })).toMatchObject({ status: 401 })
  })
})

describe('a setting that was changed', () => {
  it('counts for the next connections: maxClientCnxns, maxCnxns', async () => {
    await start({ maxClientCnxns: 1 })
    await server.connect()
    expect((await server.client()).closed).toBe(true)
    await patch({ maxClientCnxns: 0, maxCnxns: 2 })
    expect((await server.client()).closed).toBe(false)
    expect((await server.client()).closed).toBe(true)
  })

  it('counts for the next sessions: maxSessions, connection_throttle_tokens', async () => {
    await start()
    await patch({ maxSessions: 1 })
    await server.connect()
    expect((await server.client()).closed).toBe(true)
    await patch({ maxSessions: 0, connection_throttle_tokens: 1, connection_throttle_fill_time: '1h' })
    expect((await server.client()).closed).toBe(false)
    expect((await server.client()).closed).toBe(true)
  })

  it('counts for the next writes: slow.request.ms, fsync.warningthresholdms', async () => {
    await start()
    const client = await server.connect()
    const write = async (xid: number): Promise<void> => {
      const unblock = server.blockDisk()
      client.set(xid, '/', '')
      await server.advance(100)
      unblock()
      await server.untilIdle()
    }
    const warnings = (): unknown[] =>
      server.logLines.filter(({ level }) => level === 'warn').map(({ stamp }) => stamp.id)
    await write(1)
    expect(warnings()).toEqual([])
    await patch({ 'slow.request.ms': 50, 'fsync.warningthresholdms': 50 })
    await write(2)
    expect(new Set(warnings())).toEqual(new Set(['log.slow-sync', 'request.slow']))
  })

  it('counts for the purge of old files at once: autopurge.purgeInterval', async () => {
    await start({ purgeIntervalMs: 0 })
    const timers = (): number[] =>
      server.clock
        .pendingTimers()
        .filter(({ name }) => name === 'autopurge')
        .map(({ at }) => at - server.clock.monotonic())
    expect(timers()).toEqual([])
    await patch({ 'autopurge.purgeInterval': 2 })
    await patch({ 'slow.request.ms': 1 })
    expect(timers()).toEqual([7_200_000])
    await patch({ 'autopurge.purgeInterval': '90m' })
    expect(timers()).toEqual([5_400_000])
    await patch({ 'autopurge.purgeInterval': -1 })
    expect(timers()).toEqual([])
  })

  it('counts for the next snapshot: snapCount', async () => {
    await start({ snapTreeShare: 0 })
    const client = await server.connect()
    const before = lines('Took a snapshot').length
    await patch({ snapCount: 2 })
    for (let xid = 1; xid <= 5; xid++) {
      client.set(xid, '/', '')
      await server.untilIdle()
    }
    expect(lines('Took a snapshot').length).toBeGreaterThan(before)
  })

  it('counts for the next requests: globalOutstandingLimit', async () => {
    await start()
    const client = await server.connect()
    await patch({ globalOutstandingLimit: 1 })
    const unblock = server.blockDisk()
    for (let xid = 1; xid <= 5; xid++) {
      client.set(xid, '/', '')
      await server.untilIdle()
    }
    const [, outstanding] = /Outstanding: (\d+)/.exec(await server.command('srvr'))!
    expect(Number(outstanding)).toBeLessThan(5)
    unblock()
    await server.untilIdle()
    expect(client.frames.length).toBe(5)
  })

  it('counts for commands: admin.rateLimiterIntervalInMS', async () => {
    await start()
    const snapshot = async (): Promise<number> => {
      const answer = server.http.request('/commands/snapshot?streaming=false')
      await server.untilIdle()
      return (await answer).status
    }
    expect([await snapshot(), await snapshot()]).toEqual([200, 429])
    await patch({ 'admin.rateLimiterIntervalInMS': 0 })
    expect(await snapshot()).toBe(200)
  })

  it('counts in later roles: slow.request.ms', async () => {
    const ensemble = await Ensemble.start(3, { adminRoleAdmin: ['ip:127.0.0.1'] })
    const id = [...ensemble.members.keys()].find((one) => one !== ensemble.leader)!
    const { http } = ensemble.member(id)
    const body = '{"slow.request.ms": 10, "globalOutstandingLimit": 3}'
    expect((await http.request('/api/v1/settings', { method: 'PATCH', body })).status).toBe(200)
    const [first] = [ensemble.leader!]
    await ensemble.member(first).crash()
    await ensemble.until('another leader', () => ensemble.leader !== undefined && ensemble.leader !== first)
    await ensemble.until('a role', () => ensemble.server(id).serving)
    const client = await ensemble.client(id)
    client.create(1, '/a')
    await ensemble.until('the reply', () => client.frames.length > 0)
    const { text } = await http.request('/api/v1/slow')
    expect((JSON.parse(text) as { requests: object[] }).requests).toMatchObject([{ path: '/a' }])
  })
})

it('none that may change is a secret, a path, or one that members must agree on', () => {
  const fixed = /port|address|host|secret|password|ssl|role|auth|acl|tick|limit$|jute|dir|member|target/i
  for (const name of changeableNames) {
    const { key, isSecret, isPath, isSecretFile } = rowOf(name)
    expect([key, isSecret, isPath, isSecretFile]).toEqual([key, undefined, undefined, undefined])
    if (key !== 'globalOutstandingLimit') expect(key).not.toMatch(fixed)
  }
})
