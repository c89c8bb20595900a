import { createHash } from 'node:crypto'
import { MemoryDisk } from '@zabra/runtime'
import { afterEach, describe, expect, it } from 'vitest'
import { Ensemble } from '../../../ensemble/testing/ensemble.ts'
import { TestServer } from '../../../testing/test-server.ts'

let server: TestServer

async function start(
  settings: Parameters<typeof TestServer.start>[0] = {},
  disk?: MemoryDisk,
): Promise<void> {
  server = await TestServer.start({ adminRoleOperate: ['ip:127.0.0.1'], ...settings }, disk)
}

afterEach(() => server?.stop())

/** Returns the events that there are as `level id`. */
async function events(query = ''): Promise<string[]> {
  const { status, text } = await server.http.request(`/api/v1/events?follow=false${query}`)
  expect(status, text).toBe(200)
  return [...text.matchAll(/^data: (.*)$/gm)].map(([, json]) => {
    const { level, id } = JSON.parse(json!) as { level: string; id: string }
    return `${level} ${id}`
  })
}

describe('GET /api/v1/events', () => {
  it('sends what has happened, also at another level of the log', async () => {
    await start()
    server.logger.level = 'error'
    await server.http.request('/api/v1/drain', { method: 'POST' })
    await server.http.request('/api/v1/drain', { method: 'DELETE' })
    const { headers } = await server.http.request('/api/v1/events?follow=false')
    expect(headers['content-type']).toBe('text/event-stream')
    expect(await events()).toEqual([
      'info snapshot.taken',
      'info server.ready',
      'info server.drain',
      'info server.not-ready',
      'info server.drain-ended',
      'info server.ready',
    ])
  })

  it('sends those of some ids, parts and levels', async () => {
    await start({ maxClientCnxns: 1 })
    await server.connect()
    await server.open()
    await server.untilIdle()
    const authorization = 'Bearer wrong'
    await server.http.request('/api/v1/drain', { method: 'POST', headers: { authorization } })
    expect(await events('&types=client')).toEqual(['info client.refused'])
    for (const both of [
      '&types=admin.login-refused,client.refused',
      '&types=admin.login-refused&types=client.refused',
    ])
      expect(await events(both)).toEqual(['info client.refused', 'info admin.login-refused'])
    expect(await events('&types=client&level=warn')).toEqual([])
  })

  it.each([
    ['level=debug', 'Expected level=error|warn|info'],
    ['after=-1', 'after to be the id of an event'],
    ['after=12345678901234567', 'after to be the id of an event'],
    ['follow=perhaps', 'follow=true|false'],
    ['types=server.role,nothing', 'got "nothing"'],
  ])('refuses %s', async (query, detail) => {
    await start()
    const { status, text } = await server.http.request(`/api/v1/events?${query}`)
    expect([status, text]).toEqual([400, expect.stringContaining(JSON.stringify(detail).slice(1, -1))])
  })

  it('goes on after the header rather than the query, with which a browser began', async () => {
    await start()
    const all = await server.http.request('/api/v1/events?follow=false')
    const headers = { 'last-event-id': lastIn(all.text) }
    const { text } = await server.http.request('/api/v1/events?follow=false&after=0', { headers })
    expect(text).toBe('retry: 2000\n\n')
    const garbage = { 'last-event-id': 'a1b2' }
    expect((await server.http.request('/api/v1/events?follow=false', { headers: garbage })).text).toContain(
      'event: events.lost',
    )
  })

  it('is refused to callers without a role, and to pages of other origins', async () => {
    await start({ adminAnonymous: ['health'], adminRoleOperate: [] })
    expect((await server.http.request('/api/v1/events')).status).toBe(401)
    const page = { origin: 'http://elsewhere.example' }
    expect((await server.http.request('/api/v1/events', { headers: page })).status).toBe(403)
  })

  it('refuses a thirty-third stream, and says what to do', async () => {
    await start()
    const opened = Array.from({ length: 32 }, () => server.http.open('/api/v1/events'))
    await server.untilIdle()
    for (const { status } of await Promise.all(opened)) expect(status).toBe(200)
    const { status, headers, text } = await server.http.request('/api/v1/events')
    expect([status, headers['retry-after']]).toEqual([503, '15'])
    expect(text).toContain('Close one')
  })

  it('ends its streams when the server closes', async () => {
    await start()
    const { body } = await server.http.open('/api/v1/events')
    let text = ''
    let hasEnded = false
    void (async () => {
      for await (const chunk of body as AsyncIterable<string>) text += chunk
      hasEnded = true
    })()
    await server.untilIdle()
    await server.stop()
    await server.untilIdle()
    expect(text).toContain('event: server.ready')
    expect(hasEnded).toBe(true)
  })

  it('numbers the events of a restarted server higher, and says to a reader of the earlier one that it cannot continue', async () => {
    const disk = new MemoryDisk()
    disk.putFile('/data/tokens', new TextEncoder().encode(`ada:view:${sha256('token')}\n`))
    await start({ adminTokensFile: '/data/tokens', adminAnonymous: ['health'] }, disk)
    const headers = { authorization: 'Bearer token' }
    const before = await server.http.request('/api/v1/events?follow=false', { headers })
    const last = lastIn(before.text)
    await server.stop()
    await server.advance(1000)
    await server.restart()
    const path = '/api/v1/events?follow=false'
    const after = await server.http.request(path, { headers: { ...headers, 'last-event-id': last } })
    const [lost, ready] = after.text.split('\n\n').slice(1)
    expect([lost, ready]).toEqual([
      expect.stringMatching(/event: events.lost\n.*"lost":null/),
      expect.stringMatching(/event: (?!events.lost)/),
    ])
    expect(Number(/\d+/.exec(lost!)![0])).toBeGreaterThan(Number(last))
  })
})

/** Returns the id of the last event in a text. */
const lastIn = (text: string): string => [...text.matchAll(/^id: (\d+)$/gm)].at(-1)![1]!

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

describe('the events of a member', () => {
  it('are sent by one stream over changes of its role', async () => {
    const ensemble = await Ensemble.start(3)
    const id = [...ensemble.members.keys()].find((one) => one !== ensemble.leader)!
    const { body } = await ensemble.member(id).http.open('/api/v1/events?types=server.role,server.role-ended')
    let text = ''
    void (async () => {
      for await (const chunk of body as AsyncIterable<string>) text += chunk
    })()
    await ensemble.member(ensemble.leader!).crash()
    const roles = (): unknown[] =>
      [...text.matchAll(/"id":"(server\.[\w-]+)".*"msg":"This server (\w+)/g)].map((one) => one.slice(1))
    await ensemble.until('a second role', () => roles().length >= 3)
    expect(roles().slice(0, 3)).toMatchObject([
      ['server.role', 'follows'],
      ['server.role-ended', 'is'],
      ['server.role', expect.stringMatching(/^(?:leads|follows)$/)],
    ])
  })
})
