import { OPEN_ACL_UNSAFE, OpCode, writeCreateRequest, writeMultiHeader } from '@zabra/protocol'
import { afterEach, describe, expect, it } from 'vitest'
import { TestServer, type RawClient } from '../testing/test-server.ts'

let server: TestServer
afterEach(() => server?.stop())

interface Top {
  readonly windowMs: number
  readonly oneIn: number
  readonly operations: number
  readonly bytes: number
  readonly entries: readonly { readonly key: string; readonly operations: number; readonly bytes: number }[]
  readonly next: number | null
}

const look = async (query = ''): Promise<Top> =>
  JSON.parse((await server.http.request(`/api/v1/top${query}`)).text) as Top

const keysOf = ({ entries }: Top): Record<string, number> =>
  Object.fromEntries(entries.map(({ key, operations }) => [key, operations]))

const idOf = ({ session }: RawClient): string => `0x${session!.sessionId.toString(16)}`

async function start(): Promise<[RawClient, RawClient]> {
  const timeout = 200_000
  server = await TestServer.start({ maxSessionTimeoutMs: timeout })
  return [await server.connect({ timeout }), await server.connect({ timeout })]
}

describe('the busiest keys', () => {
  it('are counted from the first look on, by path, session, address and identity', async () => {
    const [first, second] = await start()
    first.create(1, '/before')
    await server.untilIdle()
    expect(await look()).toEqual({
      by: 'path',
      sort: 'operations',
      windowMs: 0,
      oneIn: 1,
      operations: 0,
      bytes: 0,
      timeMs: 0,
      entries: [],
      next: null,
    })
    first.create(2, '/a')
    first.create(3, '/a')
    second.read(1, OpCode.getData, '/a')
    second.read(2, OpCode.exists, '/none')
    second.ask(-2, OpCode.ping)
    await server.advance(2000)
    const paths = await look()
    expect(paths.windowMs).toBe(2000)
    expect(paths.operations).toBe(4)
    expect(keysOf(paths)).toEqual({ '/a': 3, '/none': 1 })
    expect(keysOf(await look('?by=session'))).toEqual({ [idOf(first)]: 2, [idOf(second)]: 2 })
    expect(Object.values(keysOf(await look('?by=address')))).toEqual([4])
    expect(Object.values(keysOf(await look('?by=identity')))).toEqual([4])
  })

  it('have the path of the first part of a multi', async () => {
    const [client] = await start()
    await look()
    client.ask(1, OpCode.multi, (w) => {
      for (const path of ['/m', '/n']) {
        writeMultiHeader(w, { type: OpCode.create, done: false, err: -1 })
        writeCreateRequest(w, { path, data: null, acl: OPEN_ACL_UNSAFE, flags: 0 })
      }
      writeMultiHeader(w, { type: -1, done: true, err: -1 })
    })
    await server.untilIdle()
    expect(keysOf(await look())).toEqual({ '/m': 1 })
  })

  it('are sorted by bytes, also those of a reply that is written over several turns', async () => {
    const [client] = await start()
    client.create(1, '/wide')
    for (let child = 0; child < 3000; child++) client.create(2 + child, `/wide/${'x'.repeat(60)}${child}`)
    await server.untilIdle()
    await look()
    for (let xid = 1; xid <= 3; xid++) client.read(10_000 + xid, OpCode.exists, '/wide/none')
    client.read(10_010, OpCode.getChildren, '/wide')
    client.read(10_011, OpCode.exists, '/wide/none')
    await server.untilIdle()
    expect((await look()).entries.map(({ key }) => key)).toEqual(['/wide/none', '/wide'])
    const [widest] = (await look('?sort=bytes')).entries
    expect(widest).toMatchObject({ key: '/wide', operations: 1 })
    expect(widest!.bytes).toBeGreaterThan(3000 * 60)
  })

  it('come in pages, and refuse queries that are not understood', async () => {
    const [client] = await start()
    await look()
    for (let xid = 1; xid <= 5; xid++)
      for (let times = 0; times < xid; times++) client.read(xid * 10 + times, OpCode.exists, `/${xid}`)
    await server.untilIdle()
    const first = await look('?limit=2')
    expect([keysOf(first), first.next]).toEqual([{ '/5': 5, '/4': 4 }, 2])
    const last = await look('?limit=2&offset=4')
    expect([keysOf(last), last.next]).toEqual([{ '/1': 1 }, null])
    for (const query of ['?by=x', '?sort=x', '?limit=0', '?limit=257', '?offset=-1', '?limit=x'])
      expect((await server.http.request(`/api/v1/top${query}`)).status).toBe(400)
  })

  it('hold the last minute only, and a long path in part', async () => {
    const [client] = await start()
    await look()
    client.read(1, OpCode.exists, '/old')
    for (let half = 0; half < 2; half++) {
      await server.advance(35_000)
      client.read(2 + half, OpCode.exists, `/${'x'.repeat(600)}`)
      await server.untilIdle()
      await look()
    }
    const top = await look()
    expect(top.windowMs).toBe(60_000)
    expect(keysOf(top)).toEqual({ [`/${'x'.repeat(511)}`]: 2 })
  })

  it('are not counted from a minute after the last look on', async () => {
    const [client] = await start()
    await look()
    await server.advance(59_000)
    client.read(1, OpCode.exists, '/a')
    await server.untilIdle()
    expect(keysOf(await look())).toEqual({ '/a': 1 })
    await server.advance(61_000)
    client.read(2, OpCode.exists, '/b')
    await server.untilIdle()
    expect(await look()).toMatchObject({ windowMs: 0, operations: 0, entries: [] })
  })

  it('are estimated from a sample above 1,000 requests a second, and counted again at a lower rate', async () => {
    const [client] = await start()
    await look()
    const send = async (from: number, count: number): Promise<Top> => {
      client.batch(() => {
        // Two requests in turns, which a count of every nth one would not tell apart.
        for (let xid = from; xid < from + count; xid++)
          client.read(xid, OpCode.exists, xid % 2 === 0 ? '/a' : '/b')
      })
      await server.untilIdle()
      client.frames.length = 0
      return look()
    }
    expect(await send(0, 900)).toMatchObject({ operations: 900, oneIn: 1 })
    await server.advance(1000)
    const sampled = await send(900, 30_000)
    expect(sampled.oneIn).toBeGreaterThan(1)
    expect(Math.abs(sampled.operations - 30_900)).toBeLessThan(3000)
    for (const { operations } of sampled.entries) expect(Math.abs(operations - 15_450)).toBeLessThan(3000)
    await server.advance(1000)
    await server.advance(1000)
    // The first request of a second decides by the rate of the last one.
    await send(50_000, 1)
    await server.advance(1000)
    const { operations } = await look()
    expect((await send(60_000, 900)).operations - operations).toBe(900)
  })
})
