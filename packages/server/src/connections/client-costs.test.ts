import { ErrorCode, OpCode, writeAuthPacket, writeMultiHeader } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import { TestServer, type RawClient } from '../testing/test-server.ts'

/** Makes each look at the clock take milliseconds, as if the requests before it had taken them. Returns the time that has passed. */
function slowDown({ clock }: TestServer, ms: number): () => number {
  const now = clock.monotonic.bind(clock)
  let passed = 0
  clock.monotonic = () => now() + (passed += ms)
  return () => passed
}

/** Records after each turn how many frames the clients have. */
function countPerTurn({ clock }: TestServer, clients: readonly RawClient[]): number[][] {
  const immediate = clock.immediate.bind(clock)
  const counts: number[][] = []
  clock.immediate = (action) =>
    immediate(() => {
      action()
      counts.push(clients.map(({ frames }) => frames.length))
    })
  return counts
}

describe('a client that sends more requests than a turn of the event loop can handle', () => {
  it('gets its replies in order over several turns, between which another client gets its own', async () => {
    const fixture = await TestServer.start()
    const [greedy, other] = [await fixture.connect(), await fixture.connect()]
    greedy.create(1, '/a')
    await fixture.untilIdle()
    greedy.frames.length = 0
    slowDown(fixture, 3)
    const counts = countPerTurn(fixture, [greedy, other])
    greedy.batch(() => {
      for (let i = 1; i <= 200; i++) greedy.read(i, OpCode.getData, '/a')
    })
    other.read(1, OpCode.exists, '/a')
    await fixture.untilIdle()
    expect(greedy.takeReceived()).toEqual(Array.from({ length: 200 }, (_, i) => `${i + 1}:0`))
    expect(other.takeReceived()).toEqual(['1:0'])
    const atReply = counts.find(([, replies]) => replies === 1)!
    expect(atReply[0]).toBeLessThan(60)
  })

  it('shares the time with others that do the same', async () => {
    const fixture = await TestServer.start()
    const clients = await Promise.all(Array.from({ length: 5 }, () => fixture.connect()))
    slowDown(fixture, 3)
    const counts = countPerTurn(fixture, clients)
    for (const client of clients)
      client.batch(() => {
        for (let i = 1; i <= 200; i++) client.read(i, OpCode.exists, '/')
      })
    await fixture.untilIdle()
    for (const client of clients) expect(client.frames).toHaveLength(200)
    const spread = counts.map((each) => Math.max(...each) - Math.min(...each))
    expect(Math.max(...spread)).toBeLessThan(60)
  })

  it('gets the replies to reads that wait for a write over several turns too, and no write is started behind all of them', async () => {
    const fixture = await TestServer.start()
    const client = await fixture.connect()
    const release = fixture.blockDisk()
    client.batch(() => {
      client.create(1, '/a')
      for (let i = 2; i <= 1000; i++) client.read(i, OpCode.exists, '/')
      client.set(1001, '/a', 'x')
    })
    await fixture.untilIdle()
    slowDown(fixture, 3)
    const counts = countPerTurn(fixture, [client])
    release()
    await fixture.untilIdle()
    expect(client.takeReceived()).toEqual(Array.from({ length: 1001 }, (_, i) => `${i + 1}:0`))
    const steps = counts.map(([count], i) => count! - (counts[i - 1]?.[0] ?? 0))
    expect(Math.max(...steps)).toBeLessThan(700)
  })

  it('reads nothing of a write that it has sent later, although the reads wait', async () => {
    const fixture = await TestServer.start()
    const client = await fixture.connect()
    client.create(1, '/a')
    await fixture.untilIdle()
    client.frames.length = 0
    const release = fixture.blockDisk()
    client.batch(() => {
      client.set(1, '/a', 'x')
      for (let i = 2; i <= 60; i++) client.read(i, OpCode.exists, '/a')
      client.set(61, '/a', 'y')
    })
    await fixture.untilIdle()
    slowDown(fixture, 3)
    release()
    await fixture.untilIdle()
    // A stat begins behind the header of 16 bytes with two zxids and two times.
    const versions = client.frames.slice(1, -1).map((frame) => {
      frame.raw(48)
      return frame.int()
    })
    expect(versions).toEqual(Array.from({ length: 59 }, () => 1))
  })

  it('keeps its session while its pings wait', async () => {
    const fixture = await TestServer.start({ minSessionTimeoutMs: 1000 })
    const client = await fixture.connect({ timeout: 1000 })
    slowDown(fixture, 50)
    client.batch(() => {
      for (let i = 1; i <= 1000; i++) client.read(i, OpCode.exists, '/')
      client.ask(-2, OpCode.ping)
    })
    await fixture.untilIdle()
    expect([client.frames.length, client.closed]).toEqual([1001, false])
  })

  it('that are pipelined behind the handshake gets all replies', async () => {
    const fixture = await TestServer.start()
    const client = await fixture.open()
    slowDown(fixture, 3)
    client.batch(() => {
      client.handshake()
      for (let i = 1; i <= 100; i++) client.read(i, OpCode.exists, '/')
    })
    await fixture.untilIdle()
    client.takeConnectResponse()
    expect(client.takeReceived()).toEqual(Array.from({ length: 100 }, (_, i) => `${i + 1}:0`))
  })
})

describe('costly requests of many connections at once', () => {
  const multiRead = (client: RawClient, xid: number, parts = 1): void =>
    client.ask(xid, OpCode.multiRead, (w) => {
      for (let i = 0; i < parts; i++) {
        writeMultiHeader(w, { type: OpCode.getData, done: false, err: -1 })
        w.string('/')
        w.bool(false)
      }
      writeMultiHeader(w, { type: -1, done: true, err: -1 })
    })

  it('are executed one in a turn, between which other clients get their replies', async () => {
    const fixture = await TestServer.start()
    const greedy = await Promise.all(Array.from({ length: 30 }, () => fixture.connect()))
    const other = await fixture.connect()
    slowDown(fixture, 3)
    const counts = countPerTurn(fixture, [...greedy, other])
    for (const client of greedy)
      client.batch(() => {
        for (let i = 1; i <= 3; i++) multiRead(client, i)
      })
    other.read(1, OpCode.exists, '/')
    await fixture.untilIdle()
    for (const client of greedy) expect(client.takeReceived()).toEqual(['1:0', '2:0', '3:0'])
    expect(other.takeReceived()).toEqual(['1:0'])
    const atReply = counts.find((replies) => replies.at(-1) === 1)!
    expect(atReply.slice(0, -1).reduce((sum, replies) => sum + replies)).toBeLessThan(15)
  })

  const list = (client: RawClient, xid: number): void => client.read(xid, OpCode.getChildren2, '/')
  it.each([
    ['multiReads', multiRead],
    ['lists', list],
    ['reads of 900 KB', (client: RawClient, xid: number) => client.read(xid, OpCode.getData, '/')],
  ])('(%s) that wait behind a write let no write behind more than four of them start', async (what, ask) => {
    const fixture = await TestServer.start()
    const client = await fixture.connect()
    const data = 'x'.repeat(what.startsWith('reads') ? 900_000 : 1)
    client.set(1, '/', data)
    await fixture.untilIdle()
    client.takeReceived()
    const release = fixture.blockDisk()
    client.batch(() => {
      client.set(1, '/', data)
      for (let i = 2; i <= 20; i++) ask(client, i)
      client.set(21, '/', 'y')
    })
    await fixture.untilIdle()
    slowDown(fixture, 3)
    const counts = countPerTurn(fixture, [client])
    release()
    await fixture.untilIdle()
    expect(client.takeReceived()).toEqual(Array.from({ length: 21 }, (_, i) => `${i + 1}:0`))
    const steps = counts.map(([count], i) => count! - (counts[i - 1]?.[0] ?? 0))
    expect(Math.max(...steps)).toBeLessThan(7)
  })
})

describe('credentials', () => {
  const authenticate = (client: RawClient, length: number): void =>
    client.ask(-4, OpCode.auth, (w) =>
      writeAuthPacket(w, { type: 0, scheme: 'digest', auth: new Uint8Array(length).fill(0x61) }),
    )

  it.each([
    [4096, `-4:${ErrorCode.OK}`],
    [4097, `-4:${ErrorCode.AUTHFAILED}`],
  ])('of %i bytes are answered with %s', async (length, reply) => {
    const fixture = await TestServer.start()
    const client = await fixture.connect()
    authenticate(client, length)
    await fixture.untilIdle()
    expect([client.takeReceived(), client.closed]).toEqual([[reply], length > 4096])
  })

  it('whose identities have more than 16,384 characters together close the connection', async () => {
    const fixture = await TestServer.start()
    const client = await fixture.connect()
    for (let i = 0; i < 4; i++) authenticate(client, 4000 + i)
    await fixture.untilIdle()
    expect([client.takeReceived().at(-1), client.closed]).toEqual([`-4:${ErrorCode.OK}`, false])
    authenticate(client, 300)
    await fixture.untilIdle()
    expect([client.takeReceived().at(-1), client.closed]).toEqual([`-4:${ErrorCode.AUTHFAILED}`, true])
  })

  it('of more than a hundred identities close the connection', async () => {
    const fixture = await TestServer.start()
    const client = await fixture.connect()
    for (let i = 1; i <= 101; i++) authenticate(client, i)
    await fixture.untilIdle()
    expect([client.takeReceived().at(-1), client.closed]).toEqual([`-4:${ErrorCode.AUTHFAILED}`, true])
  })
})
