import { OpCode } from '@zabra/protocol'
import { afterEach, describe, expect, it } from 'vitest'
import { Ensemble } from '../../../ensemble/testing/ensemble.ts'
import { TestServer } from '../../../testing/test-server.ts'

let server: TestServer

async function start(settings: Parameters<typeof TestServer.start>[0] = {}): Promise<TestServer> {
  server = await TestServer.start({ adminRoleOperate: ['ip:127.0.0.1'], ...settings })
  return server
}

afterEach(() => server?.stop())

const ask = async (path: string, method = 'GET', from = '127.0.0.1') => {
  const { status, headers, text } = await server.http.request(`/api/v1${path}`, { method, from })
  return { status, type: headers['content-type'], body: JSON.parse(text) as Record<string, unknown> }
}

const idOf = (client: { session: { sessionId: bigint } | undefined }): string =>
  `0x${client.session!.sessionId.toString(16)}`

describe('the API', () => {
  it('describes the server with its settings, but for secrets', async () => {
    await start({ superDigest: 'super:c2VjcmV0' })
    const { body } = await ask('/self')
    expect(body).toMatchObject({ role: 'standalone', ready: true, draining: false, zxidLag: 0 })
    expect(JSON.stringify(body)).not.toContain('c2VjcmV0')
  })

  it('lists sessions in pages', async () => {
    await start()
    const clients = [await server.connect(), await server.connect(), await server.connect()]
    clients[1]!.create(1, '/held', 1)
    clients[1]!.read(2, OpCode.exists, '/held', true)
    await server.untilIdle()
    const first = (await ask('/sessions?limit=2')).body
    expect(first).toMatchObject({
      sessions: [
        { id: idOf(clients[0]!), ephemerals: 0, local: false },
        { id: idOf(clients[1]!), ephemerals: 1, watchedPaths: 1, lastOperation: 'EXIS' },
      ],
      next: idOf(clients[1]!),
    })
    const second = (await ask(`/sessions?limit=2&after=${idOf(clients[1]!)}`)).body
    expect(second).toMatchObject({ sessions: [{ id: idOf(clients[2]!) }], next: null })
    expect((await ask('/sessions?after=0x1')).status).toBe(410)
    expect(await ask('/sessions?limit=0')).toMatchObject({ status: 400, type: 'application/problem+json' })
  })

  it('ends a session with its ephemeral nodes', async () => {
    await start()
    const [client, other] = [await server.connect(), await server.connect()]
    client.create(1, '/held', 1)
    await server.untilIdle()
    expect((await ask(`/sessions/${idOf(client)}`, 'DELETE')).status).toBe(202)
    await server.untilIdle()
    expect(client.closed).toBe(true)
    other.read(1, OpCode.exists, '/held')
    expect(await other.received()).toEqual(['1:-101'])
    expect((await ask(`/sessions/${idOf(client)}`, 'DELETE')).status).toBe(404)
  })

  it('answers 503 for a session that cannot be ended while the disk is full, and leaves its connection', async () => {
    await start()
    const client = await server.connect()
    server.disk.injectFault = (call) => (call === 'write' ? { code: 'ENOSPC' } : undefined)
    await server.client()
    expect(await ask(`/sessions/${idOf(client)}`, 'DELETE')).toMatchObject({
      status: 503,
      body: { title: 'The session cannot be ended now' },
    })
    server.disk.injectFault = undefined
    await server.advance(10_000)
    client.frames.length = 0
    client.read(1, OpCode.exists, '/')
    expect(await client.received()).toEqual(['1:0'])
  })

  it('closes a connection, whose session lives on', async () => {
    await start()
    const client = await server.connect()
    expect((await ask(`/connections/${idOf(client)}`, 'DELETE')).status).toBe(200)
    await server.untilIdle()
    expect(client.closed).toBe(true)
    expect((await server.connect({ resume: client.session! })).session?.sessionId).toBe(
      client.session!.sessionId,
    )
  })

  it('answers callers without the role, unknown paths and methods', async () => {
    await start({ adminRoleOperate: [] })
    expect(await ask('/drain', 'POST')).toMatchObject({
      status: 401,
      type: 'application/problem+json',
      body: { detail: 'The operation needs the role operate.' },
    })
    expect((await ask('/self', 'GET', '10.0.0.1')).status).toBe(401)
    expect((await server.http.request('/api/v1/nothing')).status).toBe(404)
    expect(await server.http.request('/api/v1/drain')).toMatchObject({
      status: 405,
      headers: { allow: 'POST, DELETE' },
    })
  })

  it.each([
    ['POST', '/drain', '{"secs":30}'],
    ['POST', '/stop-permit', '{"minutes":5}'],
    ['POST', '/leader/transfer', '{"leader":2}'],
    ['POST', '/cluster/finalize', '{"dryRun":true}'],
    ['POST', '/cluster/finalize?dryRun=true', ''],
    ['PUT', '/log-level', '{"level":"debug","for":60}'],
    ['POST', '/members', '{"member":"4=zk4:2888:3888;2181","dry_run":true}'],
    ['DELETE', '/members/4?dry-run=true', ''],
    ['DELETE', '/members/4', '{"dryRun":true}'],
    ['POST', '/snapshots', '{"dryRun":true}'],
  ])(
    'refuses %s %s %s: its caller means something that the operation does not do',
    async (method, path, body) => {
      await start({ adminRoleAdmin: ['ip:127.0.0.1'] })
      const { status, text } = await server.http.request(`/api/v1${path}`, { method, body })
      expect([status, text]).toEqual([400, expect.stringContaining('Expected ')])
      expect((await ask('/self')).body).toMatchObject({ draining: false, finalizedLevel: 0 })
    },
  )

  it('describes its operations', async () => {
    await start()
    const { body } = await ask('/openapi.json', 'GET', '10.0.0.1')
    expect(body).toMatchObject({
      openapi: '3.1.0',
      paths: {
        '/api/v1/drain': { post: { 'x-role': 'operate' }, delete: {} },
        '/api/v1/sessions/{session}': { delete: { parameters: [{ name: 'session' }] } },
        '/api/v1/log-level': {
          put: {
            requestBody: {
              required: true,
              content: {
                'application/json': { schema: { required: ['level'], properties: { seconds: {} } } },
              },
            },
            responses: {
              200: { content: { 'application/json': {} } },
              400: {
                content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
              },
            },
          },
        },
        '/api/v1/restore': { post: { requestBody: { content: { 'application/octet-stream': {} } } } },
        '/api/v1/log': { get: { responses: { 200: { content: { 'application/octet-stream': {} } } } } },
      },
      components: { schemas: { Problem: { required: ['type', 'title', 'status', 'detail'] } } },
    })
  })

  it('ends a session on the server of its connection and on the leader only', async () => {
    const ensemble = await Ensemble.start(3, { adminRoleOperate: ['ip:127.0.0.1'] })
    const [first, second] = [...ensemble.members.keys()].filter((id) => id !== ensemble.leader)
    const end = (id: number, session: string) =>
      ensemble.member(id).http.request(`/api/v1/sessions/${session}`, { method: 'DELETE' })
    for (const at of [first!, ensemble.leader!]) {
      const client = await ensemble.client(first!)
      await ensemble.create(client, '/held')
      expect((await end(second!, idOf(client))).status).toBe(409)
      expect((await end(at, idOf(client))).status).toBe(202)
      await ensemble.until('the end of the session', () => client.closed)
      await ensemble.advance(500)
      expect((await end(at, idOf(client))).status).toBe(404)
    }
  })
})

describe('the level of the log', () => {
  const put = async (body: string): Promise<number> =>
    (await server.http.request('/api/v1/log-level', { method: 'PUT', body })).status

  it('is changed for a time, after which the former one comes back', async () => {
    await start()
    server.logger.level = 'info'
    expect(await put('{"level": "debug", "seconds": 600}')).toBe(200)
    expect(await put('{"level": "error", "seconds": 60}')).toBe(200)
    expect((await ask('/log-level')).body).toEqual({ level: 'error', parts: {} })
    await server.advance(60_000)
    expect(server.logger.level).toBe('info')
    expect(await put('{"level": "warn"}')).toBe(200)
    await server.advance(600_000)
    expect(server.logger.level).toBe('warn')
  })

  it('is changed for a part within a turn, and goes back by itself', async () => {
    await start()
    server.logger.level = 'warn'
    const written = (): string[] =>
      server.logLines
        .filter(({ sentence }) => sentence === 'A session is connected')
        .map(({ level }) => level)
    expect(await put('{"part": "client", "level": "info", "seconds": 600}')).toBe(200)
    await server.connect()
    expect(written()).toEqual(['info'])
    expect((await ask('/log-level')).body).toEqual({ level: 'warn', parts: { client: 'info' } })
    await server.advance(600_000)
    await server.connect()
    expect(written()).toEqual(['info'])
    expect((await ask('/log-level')).body).toEqual({ level: 'warn', parts: {} })
  })

  it('is refused for a part that does not exist, with those that do', async () => {
    await start()
    server.logger.level = 'info'
    const body = '{"part": "elections", "level": "debug"}'
    const { status, text } = await server.http.request('/api/v1/log-level', { method: 'PUT', body })
    expect(status).toBe(400)
    expect(text).toContain('admin, audit, backup, client, config, data, election, file, log')
  })

  it('is one of four, and cannot be changed where the logger of the program has none', async () => {
    await start()
    expect(await put('{"level": "trace"}')).toBe(400)
    expect(await put('{"level": "debug", "seconds": -1}')).toBe(400)
    expect(await put('{"level": "debug"}')).toBe(501)
  })
})
