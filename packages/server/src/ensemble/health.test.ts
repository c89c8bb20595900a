import { afterEach, describe, expect, it } from 'vitest'
import { TestServer } from '../testing/test-server.ts'
import { Ensemble } from './testing/ensemble.ts'

const ready = (ensemble: Ensemble, id: number, query = '') =>
  ensemble.member(id).http.request(`/readyz${query}`)

const followersOf = (ensemble: Ensemble): number[] =>
  [...ensemble.members.keys()].filter((id) => id !== ensemble.leader)

describe('the readiness of a member', () => {
  it('names its checks by role', async () => {
    const ensemble = await Ensemble.start(3)
    const [follower] = followersOf(ensemble)
    expect([ensemble.server(ensemble.leader!).ready, ensemble.server(follower!).ready]).toEqual([true, true])
    expect((await ready(ensemble, ensemble.leader!, '?verbose')).text).toBe(
      '[+]draining ok\n[+]quorum ok\n[+]role leader\n[+]log ok\nreadyz check passed\n',
    )
    expect((await ready(ensemble, follower!, '?verbose')).text).toBe(
      '[+]draining ok\n[+]leader ok\n[+]in-step ok\n[+]role follower\n[+]log ok\nreadyz check passed\n',
    )
  })

  it('fails on members that have not heard each other for two ticks, before they leave their roles', async () => {
    const ensemble = await Ensemble.start(3)
    const leader = ensemble.leader!
    const followers = followersOf(ensemble)
    for (const member of ensemble.members.values()) member.silence()
    await ensemble.advance(3500)
    expect(ensemble.server(leader).role).toBe('leading')
    expect(await ready(ensemble, leader)).toMatchObject({ status: 503, text: 'quorum\n' })
    for (const id of followers) {
      expect(ensemble.server(id).role).toBe('following')
      expect(await ready(ensemble, id)).toMatchObject({ status: 503, text: 'leader\n' })
      expect(ensemble.server(id).ready).toBe(false)
    }
  })

  it('fails while the member looks for a leader, and says since when', async () => {
    const ensemble = await Ensemble.start(3)
    const [first, second] = followersOf(ensemble)
    await ensemble.member(ensemble.leader!).crash()
    await ensemble.member(second!).crash()
    await ensemble.until('a member without a leader', () => ensemble.server(first!).role === 'looking')
    await ensemble.advance(3000)
    const { status, text } = await ready(ensemble, first!, '?verbose')
    expect(status).toBe(503)
    expect(text).toMatch(/\[-\]no-leader looks for a leader since [23]\.\d s\n/)
  })

  it('fails on a leader that serves no clients', async () => {
    const ensemble = new Ensemble(3, { leaderServes: false })
    for (const member of ensemble.members.values()) await member.start()
    await ensemble.until('two members to serve', () => ensemble.running.filter((s) => s.serving).length === 2)
    const leader = [...ensemble.members.keys()].find((id) => ensemble.server(id).role === 'leading')!
    expect(await ready(ensemble, leader)).toMatchObject({ status: 503, text: 'serves\n' })
  })
})

describe('a drain', () => {
  let server: TestServer
  afterEach(() => server?.stop())

  const start = async (settings: Parameters<typeof TestServer.start>[0] = {}): Promise<TestServer> =>
    (server = await TestServer.start({ adminRoleOperate: ['ip:127.0.0.1'], ...settings }))

  const drain = (method: string, body = '') => server.http.request('/api/v1/drain', { method, body })

  it('makes a server unready, refuses sessions and closes connections at an even rate', async () => {
    await start()
    const clients = [await server.connect(), await server.connect(), await server.connect()]
    expect(await drain('POST', '{"seconds": 3}')).toMatchObject({ status: 200, text: '{"draining":true}\n' })
    expect(await server.http.request('/readyz')).toMatchObject({ status: 503, text: 'draining\n' })
    expect((await server.client()).closed).toBe(true)
    await server.advance(1500)
    expect(clients.filter(({ closed }) => closed).length).toBeGreaterThan(0)
    expect(clients.filter(({ closed }) => !closed).length).toBeGreaterThan(0)
    await server.advance(1600)
    expect(clients.every(({ closed }) => closed)).toBe(true)
    expect(await drain('DELETE')).toMatchObject({ status: 200, text: '{"draining":false}\n' })
    expect((await server.http.request('/readyz')).status).toBe(200)
    expect((await server.connect()).session).toBeDefined()
  })

  it('serves the last connection until its end', async () => {
    await start()
    const client = await server.connect()
    await drain('POST', '{"seconds": 3}')
    await server.advance(2800)
    client.create(1, '/late')
    expect(await client.received()).toEqual(['1:0'])
    await server.advance(300)
    expect(client.closed).toBe(true)
  })

  it('ends after the time that it is given, since who asked for it may be gone', async () => {
    await start()
    await drain('POST', '{"seconds": 3, "for": 10}')
    await server.advance(9500)
    expect((await server.http.request('/readyz')).status).toBe(503)
    await server.advance(600)
    expect((await server.http.request('/readyz')).status).toBe(200)
    expect((await server.connect()).session).toBeDefined()
  })

  it('lasts as long as the last request says', async () => {
    await start()
    await drain('POST', '{"for": 10}')
    await server.advance(8000)
    await drain('POST', '{"for": 10}')
    await server.advance(8000)
    expect((await server.http.request('/readyz')).status).toBe(503)
    await drain('POST')
    await server.advance(100_000)
    expect((await server.http.request('/readyz')).status).toBe(503)
  })

  it('does not end while the server stops, neither with its time nor by a request', async () => {
    await start({ stopDrainMs: 5000 })
    const closed = server.server.close()
    await drain('POST', '{"for": 1}')
    await server.advance(2000)
    expect(await drain('DELETE')).toMatchObject({ status: 200, text: '{"draining":true}\n' })
    expect((await server.client()).closed).toBe(true)
    await server.advance(4000)
    await closed
  })

  it('of a stop goes on closing connections when a roll renews its own meanwhile', async () => {
    await start({ stopDrainMs: 5000 })
    const clients = [await server.connect(), await server.connect(), await server.connect()]
    const closed = server.server.close()
    await server.advance(100)
    await drain('POST', '{"seconds": 0, "for": 60}')
    await server.advance(4000)
    expect(clients.filter((client) => client.closed).length).toBeGreaterThan(0)
    await server.advance(1000)
    await closed
  })

  it('refuses a body that names no time', async () => {
    await start()
    const bodies = ['{"seconds": -1}', '{"seconds": "3"}', '[', 'x'.repeat(70_000)]
    for (const body of [...bodies, '{"for": 0}', '{"for": 3601}', '{"for": "1m"}'])
      expect(await drain('POST', body)).toMatchObject({
        status: 400,
        headers: { 'content-type': 'application/problem+json' },
      })
  })

  it('precedes the stop of a server with stop.drainMs', async () => {
    await start({ stopDrainMs: 2000 })
    const client = await server.connect()
    const closed = server.server.close()
    await server.untilIdle()
    expect(await server.http.request('/readyz')).toMatchObject({ status: 503, text: 'draining\n' })
    client.create(1, '/late')
    expect(await client.received()).toEqual(['1:0'])
    await server.advance(2000)
    await closed
    expect(client.closed).toBe(true)
  })

  it('is logged once, when the verdict changes', async () => {
    await start()
    await drain('POST')
    await server.advance(5000)
    await drain('DELETE')
    const lines = server.logLines.filter(({ sentence }) => sentence.includes('ready for clients'))
    expect(lines.map(({ sentence }) => sentence)).toEqual([
      'This server is ready for clients',
      'This server is not ready for clients',
      'This server is ready for clients',
    ])
    expect(lines[1]).toMatchObject({
      level: 'info',
      facts: { reasons: ['draining: accepts no new sessions'] },
    })
  })
})

describe('liveness', () => {
  it('fails once the server cannot trust its state, until the server is closed', async () => {
    const fixture = await TestServer.start()
    const client = await fixture.connect()
    expect((await fixture.http.request('/livez')).status).toBe(200)
    fixture.disk.injectFault = (operation) =>
      operation === 'sync' || operation === 'write' ? { code: 'EIO' } : undefined
    client.create(1, '/a')
    await fixture.untilIdle()
    const { status, text } = await fixture.http.request('/livez')
    expect([status, text]).toEqual([503, expect.stringContaining('restart it')])
    expect((await fixture.http.request('/readyz')).status).toBe(503)
    await fixture.server.close()
    await expect(fixture.http.request('/livez')).rejects.toThrow('closed')
  })
})
