import {
  CreateMode,
  OpCode,
  OPEN_ACL_UNSAFE,
  writeAuthPacket,
  writeCreateRequest,
  writeDeleteRequest,
  writeMultiHeader,
  writeSetACLRequest,
  writeSetDataRequest,
  type Writer,
} from '@zabra/protocol'
import { MemoryDisk, silentLogger } from '@zabra/runtime'
import { ManualPlatform } from '@zabra/testkit'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { Ensemble } from '../ensemble/testing/ensemble.ts'
import { defaults } from '../settings/index.ts'
import { TestServer, type RawClient } from '../testing/test-server.ts'
import { AuditLog } from './audit-log.ts'

const FILE = '/data/audit.log'

let server: TestServer

async function start(
  settings: Parameters<typeof TestServer.start>[0] = {},
  disk?: MemoryDisk,
): Promise<RawClient> {
  server = await TestServer.start({ auditEnabled: true, auditFile: FILE, ...settings }, disk)
  return server.connect()
}

afterEach(() => server?.stop())

/** Returns the lines of the audit file, without time and level. */
async function lines(path = FILE): Promise<string[]> {
  await server.untilIdle()
  // Lines are collected for some milliseconds, and those of a large transaction more than once.
  await server.advance(10)
  await server.advance(10)
  const text = new TextDecoder().decode(await server.disk.readFile(path))
  return text
    .trimEnd()
    .split('\n')
    .map((line) => line.replace(/^\S+ \S+ (INFO|ERROR) audit\.Slf4jAuditLogger: /, '$1 '))
}

/** Returns the lines of the audit file as objects. */
async function jsonLines(): Promise<Record<string, unknown>[]> {
  return (await lines()).map((line) => JSON.parse(line) as Record<string, unknown>)
}

/** Returns the lines of one client as fields, without those that all of its lines have. */
async function writes(client: RawClient): Promise<string[]> {
  const prefix = `session=0x${client.session!.sessionId.toString(16)}\tuser=127.0.0.1\tip=127.0.0.1\t`
  return (await lines()).filter((line) => line.includes(prefix)).map((line) => line.replace(prefix, ''))
}

const auth = (client: RawClient, text: string): void =>
  client.ask(-4, OpCode.auth, (w) =>
    writeAuthPacket(w, { type: 0, scheme: 'digest', auth: new TextEncoder().encode(text) }),
  )

describe('the audit log', () => {
  it('has the lines of Apache ZooKeeper 3.8 for writes that succeed and that fail', async () => {
    const client = await start()
    client.create(1, '/app')
    client.create(2, '/app')
    client.create(3, '/app/e-', CreateMode.EPHEMERAL_SEQUENTIAL)
    client.create(4, '/none/s-', CreateMode.PERSISTENT_SEQUENTIAL)
    client.set(5, '/app', 'x')
    client.set(6, '/none', 'x')
    client.ask(7, OpCode.setACL, (w) =>
      writeSetACLRequest(w, { path: '/app', acl: OPEN_ACL_UNSAFE, version: 0 }),
    )
    client.ask(8, OpCode.setACL, (w) =>
      writeSetACLRequest(w, { path: '/none', acl: OPEN_ACL_UNSAFE, version: 0 }),
    )
    client.delete(9, '/none')
    client.create(10, '/gone')
    client.delete(11, '/gone')
    expect(await writes(client)).toEqual([
      'INFO operation=create\tznode=/app\tznode_type=persistent\tresult=success',
      'ERROR operation=create\tznode=/app\tznode_type=persistent\tresult=failure',
      'INFO operation=create\tznode=/app/e-0000000000\tznode_type=ephemeral_sequential\tresult=success',
      'ERROR operation=create\tznode=/none/s-\tznode_type=persistent_sequential\tresult=failure',
      'INFO operation=setData\tznode=/app\tresult=success',
      'ERROR operation=setData\tznode=/none\tresult=failure',
      'INFO operation=setAcl\tznode=/app\tacl=world:anyone:cdrwa\tresult=success',
      'ERROR operation=setAcl\tznode=/none\tacl=world:anyone:cdrwa\tresult=failure',
      'ERROR operation=delete\tznode=/none\tresult=failure',
      'INFO operation=create\tznode=/gone\tznode_type=persistent\tresult=success',
      'INFO operation=delete\tznode=/gone\tresult=success',
    ])
  })

  it('has the paths and the identities of the time of their requests, for many writes in flight at once', async () => {
    const client = await start()
    client.create(1, '/app')
    client.set(2, '/app', 'x')
    client.set(3, '/none-3', 'x')
    auth(client, 'ann:secret')
    client.create(4, '/app')
    client.set(5, '/app', 'x')
    client.delete(6, '/none-6')
    client.set(7, '/app', 'x')
    const [own, ann] = ['127.0.0.1', '127.0.0.1,ann'].map((user) => `user=${user}\tip=127.0.0.1\t`)
    const fields = (await lines())
      .filter((line) => line.includes('znode='))
      .map((line) => line.replace(/session=\S+\t/, ''))
    expect(fields).toEqual([
      `INFO ${own}operation=create\tznode=/app\tznode_type=persistent\tresult=success`,
      `INFO ${own}operation=setData\tznode=/app\tresult=success`,
      `ERROR ${own}operation=setData\tznode=/none-3\tresult=failure`,
      `ERROR ${ann}operation=create\tznode=/app\tznode_type=persistent\tresult=failure`,
      `INFO ${ann}operation=setData\tznode=/app\tresult=success`,
      `ERROR ${ann}operation=delete\tznode=/none-6\tresult=failure`,
      `INFO ${ann}operation=setData\tznode=/app\tresult=success`,
    ])
  })

  it('has a line for each change of a multi that succeeds, and one for a multi that fails', async () => {
    const client = await start()
    const multi = (xid: number, version: number): void =>
      client.ask(xid, OpCode.multi, (w) => {
        writeMultiHeader(w, { type: OpCode.create, done: false, err: -1 })
        w.string('/m-')
        w.buffer(null)
        w.int(1)
        w.int(31)
        w.string('world')
        w.string('anyone')
        w.int(CreateMode.PERSISTENT_SEQUENTIAL)
        writeMultiHeader(w, { type: OpCode.check, done: false, err: -1 })
        w.string('/')
        w.int(version)
        writeMultiHeader(w, { type: OpCode.setData, done: false, err: -1 })
        w.string('/m-0000000000')
        w.buffer(null)
        w.int(-1)
        writeMultiHeader(w, { type: -1, done: true, err: -1 })
      })
    multi(1, -1)
    multi(2, 77)
    expect(await writes(client)).toEqual([
      'INFO operation=create\tznode=/m-0000000000\tznode_type=persistent_sequential\tresult=success',
      'INFO operation=setData\tznode=/m-0000000000\tresult=success',
      'ERROR operation=multiOperation\tresult=failure',
    ])
  })

  it('keeps the lines of small multis that are applied while those of a large one are formatted', async () => {
    const client = await start()
    const creations = (xid: number, prefix: string, count: number): void =>
      client.ask(xid, OpCode.multi, (w) => {
        for (let i = 0; i < count; i++) {
          writeMultiHeader(w, { type: OpCode.create, done: false, err: -1 })
          writeCreateRequest(w, { path: `${prefix}${i}`, data: null, acl: OPEN_ACL_UNSAFE, flags: 0 })
        }
        writeMultiHeader(w, { type: -1, done: true, err: -1 })
      })
    creations(1, '/large', 3000)
    for (let i = 0; i < 100; i++) creations(2 + i, `/small${i}-`, 2)
    const created = (await writes(client)).filter((line) => line.startsWith('INFO operation=create'))
    expect(created).toHaveLength(3200)
  })

  it('has the lines of a transaction that take long over several turns of the event loop', async () => {
    const platform = new ManualPlatform()
    const recorded: string[] = []
    const logger = { ...silentLogger, info: (_: object, line: string) => void recorded.push(line) }
    const log = (await AuditLog.open(
      defaults({ dataDir: '/data', auditEnabled: true }),
      platform.platform(logger),
    ))!
    const { clock } = platform
    const now = clock.monotonic.bind(clock)
    let passed = 0
    clock.monotonic = () => now() + (passed += 0.3)
    const events = Array.from({ length: 150 }, (_, i) => log.ephemeralDeletion(1n, `/${i}`))
    log.recordAll(events.length, events)
    expect(recorded.length).toBeLessThan(10)
    await platform.untilIdle()
    expect(recorded.map((line) => /znode=\/(\d+)/.exec(line)?.[1])).toEqual(events.map((_, i) => String(i)))
  })

  it('names the start and stop of the server, and ephemeral nodes that go with their session', async () => {
    const client = await start()
    client.create(1, '/e', CreateMode.EPHEMERAL)
    client.ask(2, OpCode.closeSession)
    await server.untilIdle()
    await server.stop()
    const all = await lines()
    expect(all[0]).toMatch(/^INFO (user=\S+\t)?operation=serverStart\tresult=success$/)
    expect(all.at(-1)).toMatch(/^INFO (user=\S+\t)?operation=serverStop\tresult=invoked$/)
    expect(all.at(-2)).toMatch(
      /^INFO session=0x\w+\t(user=\S+\t)?operation=ephemeralZNodeDeletionOnSessionCloseOrExpire\tznode=\/e\tresult=success$/,
    )
  })

  it('escapes tabs and newlines, with which a path could forge fields', async () => {
    const client = await start()
    client.create(1, '/a\tresult=success\nINFO \\')
    expect((await writes(client))[0]).toBe(
      'ERROR operation=create\tznode=/a\\tresult=success\\nINFO \\\\\tznode_type=persistent\tresult=failure',
    )
  })

  it('escapes what ends a line as Unicode does, commands a terminal, or changes the direction of text', async () => {
    const client = await start()
    client.create(1, '/a\u0085b\u2028c\u001b[2K\u000b\u202eé')
    client.set(2, `/a\u0085é${'x'.repeat(300)}`, '')
    client.set(3, '/a\u0085é', '')
    const all = await writes(client)
    expect(all[0]).toContain('znode=/a\\u0085b\\u2028c\\u001b[2K\\u000b\\u202eé\t')
    expect(all.slice(1)).toEqual([
      `ERROR operation=setData\tznode=/a\\u0085é${'x'.repeat(300)}\tresult=failure`,
      'ERROR operation=setData\tznode=/a\\u0085é\tresult=failure',
    ])
  })

  it('records logins with the user and never a password or its hash', async () => {
    const client = await start({ saslUsers: { ada: 'secret-word' } })
    auth(client, 'bob:secret-word')
    client.ask(1, OpCode.setACL, (w) =>
      writeSetACLRequest(w, {
        path: '/',
        acl: [{ perms: 31, id: { scheme: 'digest', id: 'bob:aGFzaA==' } }],
        version: -1,
      }),
    )
    const all = (await lines()).join('\n')
    expect(all).toContain('user=bob\tip=127.0.0.1\toperation=login\tscheme=digest\tresult=success')
    expect(all).toContain(
      'user=127.0.0.1,bob\tip=127.0.0.1\toperation=setAcl\tznode=/\tacl=digest:bob:x:cdrwa',
    )
    expect(all).not.toMatch(/secret-word|aGFzaA/)
  })

  it('records requests to the HTTP port that change something, refused ones too', async () => {
    await start({ adminRoleOperate: ['sasl:ada'], saslUsers: { ada: 'pass' } })
    await server.http.request('/commands/stat_reset')
    await server.http.request('/commands/stat_reset', {
      headers: { authorization: `Basic ${btoa('ada:pass')}` },
    })
    await server.http.request('/commands/ruok')
    await server.command('srst')
    expect((await lines()).slice(1)).toEqual([
      'ERROR ip=127.0.0.1\toperation=GET /commands/stat_reset\tresult=failure',
      'INFO user=ada\tip=127.0.0.1\toperation=GET /commands/stat_reset\tresult=success',
      'INFO ip=127.0.0.1\toperation=srst\tresult=success',
    ])
  })

  it('records a request to the HTTP port that fails with an error', async () => {
    await start({ adminRoleBackup: ['ip:127.0.0.1'] })
    server.disk.putFile('/data/version-2/snapshot.7', new Uint8Array(8))
    vi.spyOn(server.disk, 'openRead').mockRejectedValueOnce(new Error('EIO'))
    const { status } = await server.http.request('/api/v1/snapshots/content?file=snapshot.7')
    expect(status).toBe(500)
    expect((await lines()).at(-1)).toBe(
      'ERROR ip=127.0.0.1\toperation=GET /api/v1/snapshots/content\tresult=failure',
    )
  })

  it('has one object a line as JSON, with zxid, versions, size, error and where the request came from', async () => {
    const client = await start({ auditFormat: 'json', auditEvents: ['writes', 'sessions'] })
    client.create(7, '/j', 0, 'data')
    client.set(8, '/j', 'x')
    client.set(9, '/none', 'x')
    client.delete(10, '/j')
    const objects = await jsonLines()
    expect(objects.map(({ op }) => op)).toEqual([
      'serverStart',
      'sessionOpen',
      'create',
      'setData',
      'setData',
      'delete',
    ])
    expect(objects[2]).toEqual({
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/) as string,
      id: 3,
      member: 1,
      event: 'writes',
      op: 'create',
      result: 'success',
      session: `0x${client.session!.sessionId.toString(16)}`,
      user: ['127.0.0.1'],
      ip: '127.0.0.1',
      port: expect.any(Number) as number,
      via: 'zk',
      path: '/j',
      mode: 'persistent',
      version: 0,
      zxid: '0x2',
      bytes: 4,
      requestId: 7,
    })
    expect(objects[1]).toMatchObject({ port: objects[2]!['port'], via: 'zk' })
    expect(objects[3]).toMatchObject({ path: '/j', versionBefore: 0, version: 1, bytes: 1 })
    expect(objects[4]).toMatchObject({ result: 'failure', error: 'nonode', port: objects[2]!['port'] })
    expect(objects[5]).toMatchObject({ op: 'delete', versionBefore: 1, requestId: 10 })
    expect(objects[5]).not.toHaveProperty('version')
  })

  it('says as JSON which versions the parts of a multi have replaced', async () => {
    const client = await start({ auditFormat: 'json' })
    client.create(1, '/a')
    client.create(2, '/b')
    client.set(3, '/a', 'x')
    const remove = (w: Writer, path: string): void => {
      writeMultiHeader(w, { type: OpCode.delete, done: false, err: -1 })
      writeDeleteRequest(w, { path, version: -1 })
    }
    client.ask(4, OpCode.multi, (w) => {
      remove(w, '/b')
      writeMultiHeader(w, { type: OpCode.setData, done: false, err: -1 })
      writeSetDataRequest(w, { path: '/a', data: null, version: -1 })
      remove(w, '/a')
      writeMultiHeader(w, { type: -1, done: true, err: -1 })
    })
    client.create(5, '/b')
    client.delete(6, '/b')
    const objects = await jsonLines()
    expect(objects.slice(-5).map(({ op, path, versionBefore }) => [op, path, versionBefore])).toEqual([
      ['delete', '/b', 0],
      ['setData', '/a', 1],
      ['delete', '/a', 2],
      ['create', '/b', undefined],
      ['delete', '/b', 0],
    ])
  })

  it('says as JSON how a session was opened, resumed and closed, and that one has expired', async () => {
    const client = await start({ auditFormat: 'json', auditEvents: ['sessions'] })
    const resumed = await server.connect({ resume: client.session! })
    resumed.ask(1, OpCode.closeSession)
    await server.untilIdle()
    const { session } = await server.connect({ timeout: 4000 })
    await server.advance(10_000)
    const objects = await jsonLines()
    expect(objects.map(({ op, via }) => [op, via])).toEqual([
      ['sessionOpen', 'zk'],
      ['sessionResume', 'zk'],
      ['sessionClose', 'zk'],
      ['sessionOpen', 'zk'],
      ['sessionExpire', undefined],
    ])
    expect(objects[4]).toMatchObject({ session: `0x${session!.sessionId.toString(16)}`, result: 'invoked' })
  })

  it('says as JSON that a request came over HTTP or as a four-letter word, and from which port', async () => {
    await start({
      auditFormat: 'json',
      adminRoleOperate: ['ip:127.0.0.1'],
    })
    await server.http.request('/commands/stat_reset')
    await server.command('srst')
    const via = (await jsonLines()).slice(1).map(({ op, via, port }) => [op, via, typeof port])
    expect(via).toEqual([
      ['GET /commands/stat_reset', 'http', 'number'],
      ['srst', 'word', 'number'],
    ])
  })

  it('records reads of chosen paths and below, and watches above that see all below, with their outcome', async () => {
    const client = await start({ auditFormat: 'json', auditEvents: ['reads:/secret/**'] })
    client.create(1, '/secret', 0, 'x')
    client.create(2, '/secret/a', 0, 'x')
    client.create(3, '/secrets', 0, 'x')
    const ask = (xid: number, type: number, path: string, mode?: number): void =>
      client.ask(xid, type, (w) => {
        w.string(path)
        if (mode === undefined) w.bool(false)
        else w.int(mode)
      })
    ask(4, OpCode.getData, '/secret')
    ask(5, OpCode.getData, '/secrets')
    ask(6, OpCode.exists, '/secret/none')
    ask(7, OpCode.getChildren2, '/')
    ask(8, OpCode.getACL, '/secret/a')
    ask(9, OpCode.addWatch, '/', 0)
    ask(10, OpCode.addWatch, '/', 1)
    client.ask(11, OpCode.multiRead, (w) => {
      for (const path of ['/secrets', '/secret/a']) {
        writeMultiHeader(w, { type: OpCode.getData, done: false, err: -1 })
        w.string(path)
        w.bool(false)
      }
      writeMultiHeader(w, { type: -1, done: true, err: -1 })
    })
    client.ask(12, OpCode.getData, (w) => w.int(1000))
    const objects = await jsonLines()
    expect(
      objects.map(({ op, path, result, error, requestId }) => [requestId, op, path, result, error]),
    ).toEqual([
      [4, 'getData', '/secret', 'success', undefined],
      [6, 'exists', '/secret/none', 'failure', 'nonode'],
      [8, 'getAcl', '/secret/a', 'success', undefined],
      [10, 'addWatch', '/', 'success', undefined],
      [11, 'getData', '/secret/a', 'invoked', undefined],
    ])
    expect(objects[0]).toMatchObject({ event: 'reads', via: 'zk', ip: '127.0.0.1', user: ['127.0.0.1'] })
  })

  it('records each part of a large multiRead, and none of one that writes', async () => {
    const client = await start({ auditFormat: 'json', auditEvents: ['reads:/'] })
    const paths = Array.from({ length: 1000 }, (_, n) => `/${n}`)
    client.ask(1, OpCode.multiRead, (w) => {
      for (const path of paths) {
        writeMultiHeader(w, { type: OpCode.getData, done: false, err: -1 })
        w.string(path)
        w.bool(false)
      }
      writeMultiHeader(w, { type: -1, done: true, err: -1 })
    })
    client.ask(2, OpCode.multiRead, (w) => {
      writeMultiHeader(w, { type: OpCode.delete, done: false, err: -1 })
      w.string('/a')
      w.int(-1)
      writeMultiHeader(w, { type: -1, done: true, err: -1 })
    })
    const objects = await jsonLines()
    expect(objects.map(({ path }) => path)).toEqual(paths)
    expect(objects.every(({ result }) => result === 'invoked')).toBe(true)
  })

  it('records a read that waited for a write of the same session, and one whose reply takes several turns', async () => {
    const client = await start({ auditEvents: ['reads:/'], auditFormat: 'json' })
    const release = server.blockDisk()
    client.create(1, '/a')
    client.ask(2, OpCode.getData, (w) => {
      w.string('/a')
      w.bool(false)
    })
    release()
    expect((await jsonLines()).map(({ path, result }) => [path, result])).toEqual([['/a', 'success']])
  })

  it('records a read that is refused, whatever its path', async () => {
    const client = await start({ auditFormat: 'json', auditEvents: ['auth'] })
    client.create(1, '/a')
    client.ask(2, OpCode.setACL, (w) =>
      writeSetACLRequest(w, {
        path: '/a',
        acl: [{ perms: 1, id: { scheme: 'ip', id: '10.1.1.1' } }],
        version: -1,
      }),
    )
    for (const [xid, path] of [
      [3, '/a'],
      [4, '/'],
    ] as const)
      client.ask(xid, OpCode.getData, (w) => {
        w.string(path)
        w.bool(false)
      })
    expect(await jsonLines()).toMatchObject([
      { event: 'auth', op: 'getData', path: '/a', result: 'failure', error: 'noauth', requestId: 3 },
    ])
  })

  it('says how the server itself was changed', async () => {
    await start({ auditEvents: ['config'] })
    const { logger } = server.server
    logger.info({ id: 'program.log-level', to: 'debug' }, 'The level of the log was changed by SIGUSR2')
    logger.info({}, 'Looking for a leader')
    expect(await lines()).toEqual([
      'INFO operation=logLevel\tdetail=The level of the log was changed by SIGUSR2 to=debug\tresult=success',
    ])
  })

  it('goes to the log of the server without a file', async () => {
    const client = await start({ auditFile: undefined })
    client.create(1, '/logged')
    await server.untilIdle()
    const line = server.logLines.find(({ sentence }) => sentence.includes('znode=/logged'))
    expect(line).toMatchObject({ level: 'info', stamp: { id: 'audit.event', part: 'audit' } })
  })

  it('is not written unless it is enabled', async () => {
    const client = await start({ auditEnabled: false })
    client.create(1, '/quiet')
    await server.untilIdle()
    expect(server.disk.paths()).not.toContain(FILE)
  })

  it('refuses links between its lines in another form than JSON, and without the cryptography for them', async () => {
    await expect(TestServer.start({ auditEnabled: true, auditFile: FILE, auditChain: true })).rejects.toThrow(
      /`auditChain` needs audit\.format=json/,
    )
    const { cryptography, ...platform } = new ManualPlatform().platform(silentLogger)
    const settings = { dataDir: '/data', auditEnabled: true, auditFile: FILE, auditChain: true }
    const linked = defaults({ ...settings, auditFormat: 'json' })
    await expect(AuditLog.open(linked, platform)).rejects.toThrow(/no cryptography/)
    expect(cryptography).toBeDefined()
  })

  it('ends the start when its file cannot be opened', async () => {
    const disk = new MemoryDisk()
    disk.injectFault = (operation, path) =>
      operation === 'open' && path === FILE ? { code: 'EACCES' } : undefined
    await expect(TestServer.start({ auditEnabled: true, auditFile: FILE }, disk)).rejects.toMatchObject({
      cause: { code: 'EACCES' },
    })
  })
})

describe('an audit file that cannot be written', () => {
  it('lets writes go on, and gets their lines later', async () => {
    const client = await start()
    server.disk.injectFault = (operation, path) =>
      operation === 'write' && path === FILE ? { code: 'ENOSPC' } : undefined
    client.create(1, '/a')
    expect(await client.received()).toEqual(['1:0'])
    await server.advance(10)
    server.disk.injectFault = undefined
    await server.advance(1000)
    expect((await lines()).at(-1)).toContain('znode=/a')
    expect(server.logLines.map(({ sentence }) => sentence)).toContain('The audit file can be written again')
  })

  it('counts the lines that are lost while its disk is full, and says how many once there is room', async () => {
    const platform = new ManualPlatform()
    const settings = defaults({ dataDir: '/data', auditEnabled: true, auditFile: '/audit.log' })
    const log = (await AuditLog.open(settings, platform.platform(silentLogger)))!
    platform.disk.injectFault = (operation) => (operation === 'write' ? { code: 'ENOSPC' } : undefined)
    const event = { category: 'writes', operation: 'create', result: 'success' } as const
    const path = `/${'x'.repeat(4000)}`
    for (let i = 0; i < 1500; i++) log.record({ ...event, path })
    await platform.advance(10)
    expect(log.lost).toBeGreaterThan(400)
    expect(log.refusesWrites).toBe(false)
    platform.disk.injectFault = undefined
    await platform.advance(1000)
    await log.close()
    const text = new TextDecoder().decode(await platform.disk.readFile('/audit.log'))
    expect(text.match(/operation=create/g)).toHaveLength(1500 - log.lost)
    expect(text).toMatch(new RegExp(`operation=auditLinesLost\tlost=${log.lost}\tresult=failure\n$`))
  })

  it('refuses writes where the settings ask for it', async () => {
    const client = await start({ auditOnFailure: 'refuse' })
    server.disk.injectFault = (operation, path) =>
      operation === 'write' && path === FILE ? { code: 'ENOSPC' } : undefined
    client.create(1, '/a')
    expect(await client.received()).toEqual(['1:0'])
    await server.advance(10)
    client.create(2, '/b')
    expect(await client.received()).toEqual(['2:-1'])
    server.disk.injectFault = undefined
    await server.advance(1000)
    client.create(3, '/b')
    expect(await client.received()).toEqual(['3:0'])
  })
})

describe('the audit log of an ensemble', () => {
  it('has a write on the server of its client, and ephemeral nodes that go with their session on every member', async () => {
    const ensemble = await Ensemble.start(3, { auditEnabled: true, auditFile: FILE })
    const follower = [...ensemble.members.keys()].find((id) => id !== ensemble.leader)!
    const client = await ensemble.client(follower)
    client.create(1, '/e', CreateMode.EPHEMERAL)
    client.create(2, '/e', CreateMode.EPHEMERAL)
    client.ask(3, OpCode.closeSession)
    await ensemble.advance(100)
    for (const { id, disk } of ensemble.members.values()) {
      const text = new TextDecoder().decode(await disk.readFile(FILE))
      const results = [...text.matchAll(/operation=create\t.*result=(\w+)/g)].map(([, result]) => result)
      expect(results).toEqual(id === follower ? ['success', 'failure'] : [])
      expect(text.match(/operation=ephemeralZNodeDeletionOnSessionCloseOrExpire\tznode=\/e\t/g)).toHaveLength(
        1,
      )
    }
  })
})

it('the audit log of each member says which members the ensemble has from then on', async () => {
  const ensemble = await Ensemble.start(3, {
    auditEnabled: true,
    auditFile: FILE,
    reconfigEnabled: true,
    skipAcl: true,
  })
  const client = await ensemble.client(ensemble.leader!)
  const leaving = [...ensemble.members.keys()].find((id) => id !== ensemble.leader)!
  expect(await ensemble.reconfigure(client, { leaving: String(leaving) })).toBe('77:0')
  await ensemble.advance(1000)
  const left = [...ensemble.members.keys()].filter((id) => id !== leaving)
  for (const id of left) {
    const text = new TextDecoder().decode(await ensemble.member(id).disk.readFile(FILE))
    expect(text.match(/operation=members\t.*/g)).toEqual([
      expect.stringMatching(
        new RegExp(
          `^operation=members\tdetail=version=0x[0-9a-f]+ server.${left[0]}=\\S+ server.${left[1]}=\\S+\tresult=success$`,
        ),
      ),
    ])
  }
})
