import {
  OpCode,
  ErrorCode,
  EventType,
  CreateMode,
  OPEN_ACL_UNSAFE,
  writeAuthPacket,
  writeCreateRequest,
  writeMultiRequest,
} from '@zabra/protocol'
import { MemoryDisk } from '@zabra/runtime'
import { describe, expect } from 'vitest'
import { apachePasswordFor, SessionPasswords } from './core/sessions/index.ts'
import type { ServerSettings } from './settings/index.ts'
import { interleavePromises, spendTime } from './testing/many-connections.ts'
import { TestServer, type RawClient } from './testing/test-server.ts'
import { it } from './testing/test-server.ts'

const FULL_DISK = { code: 'ENOSPC' }

describe('the requests of one session', () => {
  it('get replies in their order, and a read after a write sees the write', async ({ fixture, client }) => {
    client.create(1, '/a')
    client.read(2, OpCode.getData, '/a')
    client.set(3, '/a', 'new')
    client.read(4, OpCode.getData, '/a')
    client.read(5, OpCode.getData, '/none')
    client.create(6, '/a')
    await fixture.untilIdle()
    const replies = client.replies()
    expect(replies.map(({ xid, err }) => [xid, err])).toEqual([
      [1, 0],
      [2, 0],
      [3, 0],
      [4, 0],
      [5, ErrorCode.NONODE],
      [6, ErrorCode.NODEEXISTS],
    ])
    expect(new TextDecoder().decode(replies[3]!.body.buffer()!)).toBe('new')
    expect(replies.map(({ zxid }) => zxid)).toEqual([2, 2, 3, 3, 3, 4])
  })

  it('do not wait for the writes of other sessions', async ({ fixture }) => {
    const [writer, reader] = [await fixture.connect(), await fixture.connect()]
    const release = fixture.blockDisk()
    writer.create(1, '/a')
    writer.read(2, OpCode.exists, '/a')
    reader.read(1, OpCode.exists, '/a')
    expect(await reader.received()).toEqual([`1:${ErrorCode.NONODE}`])
    expect(writer.takeReceived()).toEqual([])
    release()
    expect(await writer.received()).toEqual(['1:0', '2:0'])
  })

  it('get replies when they follow the handshake at once, in chunks of three bytes', async ({ fixture }) => {
    fixture.network.chunkBytes = 3
    const client = await fixture.open()
    client.handshake()
    client.create(1, '/early')
    client.ask(-2, OpCode.ping)
    await fixture.untilIdle()
    expect(client.takeConnectResponse()?.timeOut).toBe(10_000)
    expect(client.takeReceived()).toEqual(['1:0', '-2:0'])
  })

  it('get replies when they come in one chunk with the handshake, reads behind a write included', async () => {
    const fixture = await TestServer.start()
    const client = await fixture.open()
    client.batch(() => {
      client.handshake()
      client.create(1, '/early', 0, 'x'.repeat(2000))
      client.read(2, OpCode.exists, '/early')
      client.read(3, OpCode.exists, '/never')
    })
    await fixture.untilIdle()
    expect(client.takeConnectResponse()?.timeOut).toBe(10_000)
    expect(client.takeReceived()).toEqual(['1:0', '2:0', `3:${ErrorCode.NONODE}`])
  })

  it('get an event before the reply that could show its cause', async ({ client }) => {
    client.read(1, OpCode.exists, '/a', true)
    client.read(2, OpCode.getChildren, '/', true)
    client.create(3, '/a')
    client.read(4, OpCode.getData, '/a', true)
    client.set(5, '/a', 'x')
    expect(await client.received()).toEqual([
      `1:${ErrorCode.NONODE}`,
      '2:0',
      `event ${EventType.NodeCreated} /a`,
      `event ${EventType.NodeChildrenChanged} /`,
      '3:0',
      '4:0',
      `event ${EventType.NodeDataChanged} /a`,
      '5:0',
    ])
  })

  it('get UNIMPLEMENTED and a closed connection when their op code is one that no client may send', async () => {
    const fixture = await TestServer.start()
    for (const type of [-1, 0, 10, OpCode.check, OpCode.createSession, OpCode.deleteContainer]) {
      const client = await fixture.connect()
      client.ask(9, type)
      expect(await client.received()).toEqual([`9:${ErrorCode.UNIMPLEMENTED}`])
      expect(client.closed).toBe(true)
    }
  })
})

describe('a session', () => {
  it('expires with its ephemeral nodes when its client is silent, and its connection closes without a reply', async () => {
    const fixture = await TestServer.start()
    const [client, watcher] = [
      await fixture.connect({ timeout: 4000 }),
      await fixture.connect({ timeout: 20_000 }),
    ]
    client.create(1, '/e', CreateMode.EPHEMERAL)
    await fixture.untilIdle()
    watcher.read(1, OpCode.exists, '/e', true)
    expect([await client.received(), watcher.takeReceived()]).toEqual([['1:0'], ['1:0']])
    await fixture.advance(3900)
    expect(client.closed).toBe(false)
    await fixture.advance(1200)
    expect(client.closed).toBe(true)
    expect(client.takeReceived()).toEqual([])
    expect(watcher.takeReceived()).toEqual([`event ${EventType.NodeDeleted} /e`])
  })

  it('stays open while its client pings, and can be resumed before its timeout after the connection is gone', async () => {
    const { fixture, client } = await TestServer.withClient({}, { timeout: 4000 })
    const session = client.session!
    for (let i = 0; i < 5; i++) {
      await fixture.advance(3000)
      client.ask(-2, OpCode.ping)
      await fixture.untilIdle()
    }
    client.connection.cut()
    await fixture.advance(3000)
    const again = await fixture.client({ resume: session })
    expect(again.takeConnectResponse()?.sessionId).toBe(session.sessionId)
  })

  it('stays open while the server works off requests of its client, who waits for them in silence', async () => {
    const { fixture, client } = await TestServer.withClient({}, { timeout: 4000 })
    let release = fixture.blockDisk()
    for (let i = 0; i < 4; i++) {
      client.create(2 * i, `/a${i}`, CreateMode.EPHEMERAL)
      // Requests behind a sync are not begun before its reply.
      client.sync(2 * i + 1)
    }
    for (let i = 0; i < 4; i++) {
      await fixture.advance(2000)
      release()
      release = fixture.blockDisk()
      expect(await client.received()).toEqual([`${2 * i}:0`, `${2 * i + 1}:0`])
    }
    expect(client.closed).toBe(false)
    await fixture.advance(6000)
    expect(client.closed).toBe(true)
    release()
  })

  it('moves to a new connection of its client, and the server closes the old one', async ({ fixture }) => {
    const old = await fixture.connect()
    const session = old.session!
    const again = await fixture.client({ resume: session })
    expect(again.takeConnectResponse()).toMatchObject({ sessionId: session.sessionId })
    expect(old.closed).toBe(true)
    again.create(1, '/a', CreateMode.EPHEMERAL)
    expect(await again.received()).toEqual(['1:0'])
  })

  it('is not resumed with a wrong password, and its own connection stays open', async ({ fixture }) => {
    const held = await fixture.connect()
    const session = held.session!
    const guess = await fixture.open()
    guess.handshake({ resume: session, password: new Uint8Array(16) })
    await fixture.untilIdle()
    expect(guess.takeConnectResponse()).toMatchObject({
      timeOut: 0,
      sessionId: 0n,
      passwd: new Uint8Array(16),
    })
    expect(guess.closed).toBe(true)
    expect(held.closed).toBe(false)
  })

  it('ends when its client closes it, and later requests of the client are dropped', async ({ fixture }) => {
    const client = await fixture.connect()
    const session = client.session!
    client.create(1, '/e', CreateMode.EPHEMERAL)
    client.ask(2, OpCode.closeSession)
    client.create(3, '/never')
    expect(await client.received()).toEqual(['1:0', '2:0'])
    expect(client.closed).toBe(true)
    const again = await fixture.client({ resume: session })
    expect(again.takeConnectResponse()?.sessionId).toBe(0n)
    const other = await fixture.connect()
    other.read(1, OpCode.exists, '/e')
    other.read(2, OpCode.exists, '/never')
    expect(await other.received()).toEqual([`1:${ErrorCode.NONODE}`, `2:${ErrorCode.NONODE}`])
  })

  it('gets a timeout between the minimum and the maximum of the server', async () => {
    const fixture = await TestServer.start({ minSessionTimeoutMs: 3000, maxSessionTimeoutMs: 9000 })
    const timeouts: (number | undefined)[] = []
    for (const timeout of [-5, 0, 5000, 2 ** 31 - 1])
      timeouts.push((await fixture.client({ timeout })).takeConnectResponse()?.timeOut)
    expect(timeouts).toEqual([3000, 3000, 5000, 9000])
  })

  it('survives a restart of the server with its ephemeral nodes and its whole timeout', async () => {
    const { fixture, client } = await TestServer.withClient({}, { timeout: 4000 })
    const session = client.session!
    client.create(1, '/e', CreateMode.EPHEMERAL)
    await fixture.untilIdle()
    await fixture.stop()
    await fixture.restart()
    await fixture.advance(3500)
    const again = await fixture.client({ resume: session, timeout: 4000 })
    expect(again.takeConnectResponse()?.sessionId).toBe(session.sessionId)
    again.read(1, OpCode.exists, '/e')
    expect(await again.received()).toEqual(['1:0'])
    await fixture.advance(6000)
    const other = await fixture.connect()
    other.read(1, OpCode.exists, '/e')
    expect(await other.received()).toEqual([`1:${ErrorCode.NONODE}`])
  })

  it('is refused without a response when its client has seen a later transaction than the server', async () => {
    const fixture = await TestServer.start()
    const client = await fixture.client({ seen: 99n })
    expect(client.frames).toEqual([])
    expect(client.closed).toBe(true)
    expect(
      fixture.logLines.some(({ level, sentence }) => level === 'info' && sentence.includes('0x63')),
    ).toBe(true)
  })
})

describe('limits', () => {
  it('refuse a connection above maxClientCnxns of its address, with the reason in the log', async () => {
    const fixture = await TestServer.start({ maxClientCnxns: 2 })
    await fixture.client()
    const second = await fixture.client()
    const third = await fixture.client()
    expect(third.closed).toBe(true)
    expect(fixture.logLines.at(-1)).toMatchObject({
      level: 'info',
      sentence: expect.stringContaining('maxClientCnxns is 2'),
    })
    second.connection.destroy()
    await fixture.untilIdle()
    expect((await fixture.client()).takeConnectResponse()?.timeOut).toBe(10_000)
  })

  it('refuse a connection above maxCnxns', async () => {
    const fixture = await TestServer.start({ maxCnxns: 1, maxClientCnxns: 0 })
    await fixture.client()
    expect((await fixture.client()).closed).toBe(true)
    expect(fixture.logLines.at(-1)?.sentence).toContain('there are 1 connections, and maxCnxns')
  })

  it('refuse a session above maxSessions, and accept one after another has ended', async () => {
    const fixture = await TestServer.start({ maxSessions: 1 })
    const first = await fixture.connect()
    expect((await fixture.client()).closed).toBe(true)
    expect(fixture.logLines.at(-1)?.sentence).toContain('maxSessions is 1')
    first.ask(1, OpCode.closeSession)
    await fixture.untilIdle()
    expect((await fixture.client()).takeConnectResponse()).toBeDefined()
  })

  it('close a connection that sends no request within nio.sessionlessCnxnTimeout', async () => {
    const fixture = await TestServer.start({ sessionlessTimeoutMs: 5000 })
    const silent = await fixture.open()
    await fixture.advance(4900)
    expect(silent.closed).toBe(false)
    await fixture.advance(200)
    expect(silent.closed).toBe(true)
    expect(await fixture.command('mntr')).toContain('zk_sessionless_connections_expired\t1\n')
  })

  it('close a connection whose frame is longer than jute.maxbuffer, and log the client and the length', async () => {
    const { fixture, client } = await TestServer.withClient({ juteMaxBufferBytes: 1000 })
    client.create(1, '/a', 0, 'x'.repeat(2000))
    await fixture.untilIdle()
    expect(client.closed).toBe(true)
    expect(fixture.logLines.at(-1)).toMatchObject({
      level: 'info',
      facts: {
        client: expect.stringMatching(/^127\.0\.0\.1:\d+$/),
        reason: expect.stringMatching(/1 to 1000 bytes, got a length of 20\d\d/),
      },
    })
  })

  it('throttle a client that writes while the server is above globalOutstandingLimit, and reply to all its writes later', async () => {
    const fixture = await TestServer.start({ globalOutstandingLimit: 5 })
    fixture.network.chunkBytes = 64
    const client = await fixture.connect()
    const release = fixture.blockDisk()
    for (let i = 1; i <= 50; i++) client.create(i, `/n${i}`)
    await fixture.untilIdle()
    expect(fixture.server.stats().outstanding).toBeLessThan(10)
    release()
    expect(await client.received()).toEqual(Array.from({ length: 50 }, (_, i) => `${i + 1}:0`))
  })

  it('accept as many new sessions as connection_throttle_tokens allows', async () => {
    const fixture = await TestServer.start({
      connectionThrottleTokens: 2,
      connectionThrottleFillTimeMs: 1000,
      connectionThrottleFillCount: 1,
    })
    expect((await fixture.client()).takeConnectResponse()).toBeDefined()
    expect((await fixture.client()).takeConnectResponse()).toBeDefined()
    expect((await fixture.client()).closed).toBe(true)
    await fixture.advance(1000)
    expect((await fixture.client()).takeConnectResponse()).toBeDefined()
  })

  it('refuse requests of a client without an identity of enforce.auth.schemes', async () => {
    const fixture = await TestServer.start({ enforceAuthEnabled: true, enforceAuthSchemes: ['digest'] })
    const unidentified = await fixture.client()
    unidentified.takeConnectResponse()
    unidentified.ask(-2, OpCode.ping)
    expect(await unidentified.received()).toEqual([`-2:${ErrorCode.SESSIONCLOSEDREQUIRESASLAUTH}`])
    expect(unidentified.closed).toBe(true)
    const known = await fixture.client()
    known.takeConnectResponse()
    known.ask(-4, OpCode.auth, (w) =>
      writeAuthPacket(w, { type: 0, scheme: 'digest', auth: new TextEncoder().encode('bob:secret') }),
    )
    known.create(1, '/a')
    expect(await known.received()).toEqual(['-4:0', '1:0'])
    expect(JSON.stringify(fixture.logLines)).not.toContain('secret')
  })
})

describe('a client that does not read', () => {
  async function slow(): Promise<{ fixture: TestServer; client: Awaited<ReturnType<TestServer['client']>> }> {
    const { fixture, client } = await TestServer.withClient({ juteMaxBufferBytes: 2_000_000 })
    client.create(1, '/big', 0, 'x'.repeat(1_000_000))
    await fixture.untilIdle()
    client.takeReceived()
    client.connection.pause()
    return { fixture, client }
  }

  it('gets every reply in its order once it reads', async () => {
    const { fixture, client } = await slow()
    for (let xid = 1; xid <= 20; xid++) client.read(xid, OpCode.getData, '/big')
    client.set(21, '/big', 'small')
    client.read(22, OpCode.getData, '/big')
    client.create(23, '/after')
    client.create(24, '/after')
    client.read(25, OpCode.exists, '/after')
    await fixture.untilIdle()
    client.connection.resume()
    for (let turns = 0; turns < 50; turns++) await fixture.untilIdle()
    const replies = client.replies()
    expect(replies.map(({ xid, err }) => `${xid}:${err}`)).toEqual([
      ...Array.from({ length: 23 }, (_, i) => `${i + 1}:0`),
      `24:${ErrorCode.NODEEXISTS}`,
      '25:0',
    ])
    const sizes = replies
      .filter(({ xid }) => xid <= 20 || xid === 22)
      .map(({ body }) => body.buffer()!.length)
    expect(sizes).toEqual([...new Array<number>(20).fill(1_000_000), 5])
    expect(replies.every(({ zxid }, i) => i === 0 || zxid >= replies[i - 1]!.zxid)).toBe(true)
  })

  it('gets the reply to its closeSession after those to earlier requests, and later requests are dropped', async () => {
    const { fixture, client } = await slow()
    for (let xid = 1; xid <= 5; xid++) client.read(xid, OpCode.getData, '/big')
    client.ask(6, OpCode.closeSession)
    client.create(7, '/never')
    await fixture.untilIdle()
    client.connection.resume()
    for (let turns = 0; turns < 50; turns++) await fixture.untilIdle()
    expect(client.takeReceived()).toEqual(['1:0', '2:0', '3:0', '4:0', '5:0', '6:0'])
    expect(client.closed).toBe(true)
    expect(fixture.server.stats()).toMatchObject({ sessions: 0, nodes: 5 })
  })

  it('gets MARSHALLINGERROR for a multiRead of more than 8 MiB, and the server still accepts clients', async () => {
    const { fixture, client } = await slow()
    for (let xid = 1; xid <= 3; xid++) client.create(xid + 1, `/big${xid}`, 0, 'x'.repeat(1_000_000))
    await fixture.untilIdle()
    client.ask(9, OpCode.multiRead, (w) => {
      for (let i = 0; i < 4000; i++) {
        w.int(OpCode.getData)
        w.bool(false)
        w.int(-1)
        w.string('/big')
        w.bool(false)
      }
      w.int(-1)
      w.bool(true)
      w.int(-1)
    })
    await fixture.untilIdle()
    client.connection.resume()
    for (let turns = 0; turns < 20; turns++) await fixture.untilIdle()
    expect(client.takeReceived().at(-1)).toBe(`9:${ErrorCode.MARSHALLINGERROR}`)
    expect((await fixture.client()).takeConnectResponse()).toBeDefined()
  })
})

describe('a client that pings', () => {
  it('keeps its session while it does not read its replies', async () => {
    const fixture = await TestServer.start({ juteMaxBufferBytes: 2_000_000 })
    const client = await fixture.connect({ timeout: 4000 })
    client.create(1, '/big', 0, 'x'.repeat(1_000_000))
    await fixture.untilIdle()
    client.connection.pause()
    for (let xid = 2; xid <= 9; xid++) client.read(xid, OpCode.getData, '/big')
    for (let second = 0; second < 20; second++) {
      client.ask(-2, OpCode.ping)
      await fixture.advance(1000)
    }
    expect(client.closed).toBe(false)
    client.connection.resume()
    for (let turns = 0; turns < 50; turns++) await fixture.untilIdle()
    expect(client.takeReceived().filter((one) => one === '-2:0').length).toBe(20)
  })

  it('keeps its session while the server is overloaded and does not read it', async () => {
    const { fixture, client } = await TestServer.withClient({ globalOutstandingLimit: 2 }, { timeout: 4000 })
    const release = fixture.blockDisk()
    for (let xid = 1; xid <= 10; xid++) client.create(xid, `/n${xid}`)
    await fixture.untilIdle()
    await fixture.advance(30_000)
    release()
    expect((await client.received()).length).toBe(10)
    await fixture.advance(6000)
    expect(client.closed).toBe(true)
  })

  it('gets the replies to its requests before one with an op code that no client may send', async () => {
    const { fixture, client } = await TestServer.withClient()
    client.create(1, '/a')
    client.read(2, OpCode.exists, '/a')
    client.ask(3, 13)
    client.create(4, '/never')
    expect(await client.received()).toEqual(['1:0', '2:0', `3:${ErrorCode.UNIMPLEMENTED}`])
    expect([client.closed, fixture.server.stats().nodes]).toEqual([true, 5])
  })
})

describe('the limits of one connection', () => {
  it('are 1 MiB of queued requests; further ones are read after replies to these', async ({ fixture }) => {
    fixture.network.chunkBytes = 4096
    const client = await fixture.connect()
    const release = fixture.blockDisk()
    client.create(1, '/a')
    for (let xid = 2; xid <= 20_000; xid++) client.read(xid, OpCode.exists, '/a')
    await fixture.untilIdle()
    const queued = Number(/queued=(\d+),recved=\d+,sent=\d+,sid/.exec(await fixture.command('cons'))?.[1])
    expect(queued).toBeGreaterThan(1000)
    expect(queued).toBeLessThan(6000)
    release()
    for (let turns = 0; turns < 50; turns++) await fixture.untilIdle()
    expect(client.takeReceived()).toEqual(Array.from({ length: 20_000 }, (_, i) => `${i + 1}:0`))
  })

  it('are a hundred identities', async ({ client }) => {
    for (let i = 0; i < 101; i++) {
      const auth = new TextEncoder().encode(`user${i}:secret`)
      client.ask(-4, OpCode.auth, (w) => writeAuthPacket(w, { type: 0, scheme: 'digest', auth }))
    }
    expect((await client.received()).at(-1)).toBe(`-4:${ErrorCode.AUTHFAILED}`)
    expect(client.closed).toBe(true)
  })

  it('are 64 MiB for watches, each path counted once', async () => {
    const { fixture, client } = await TestServer.withClient({ juteMaxBufferBytes: 2_000_000 })
    const watch = (n: number): void =>
      client.read(n, OpCode.exists, `/${String(n).padStart(1_000_000, '0')}`, true)
    for (let n = 1; n <= 67; n++) watch(n)
    for (let n = 1; n <= 10; n++) watch(n)
    await fixture.untilIdle()
    expect(client.closed).toBe(false)
    watch(68)
    await fixture.untilIdle()
    expect(client.closed).toBe(true)
    expect(await fixture.command('wchs')).toContain('Total watches:0')
  })
})

describe('a server that stood still', () => {
  it('reads what clients have sent meanwhile before it judges their sessions', async () => {
    const fixture = await TestServer.start({ minSessionTimeoutMs: 2000 })
    const [lively, silent] = [
      await fixture.connect({ timeout: 2000 }),
      await fixture.connect({ timeout: 2000 }),
    ]
    lively.ask(-2, OpCode.ping)
    fixture.clock.standStill(60_000)
    await fixture.untilIdle()
    expect([lively.takeReceived(), lively.closed, silent.closed]).toEqual([['-2:0'], false, false])
    await fixture.advance(1500)
    lively.ask(-2, OpCode.ping)
    await fixture.advance(1000)
    expect([lively.closed, silent.closed]).toEqual([false, true])
    await fixture.advance(4000)
    expect(lively.closed).toBe(true)
  })
})

describe('session ids', () => {
  it('are not used twice when the wall clock goes back between two starts', async ({ fixture }) => {
    const before = (await fixture.client()).takeConnectResponse()!.sessionId
    await fixture.stop()
    fixture.clock.jumpWall(-1)
    await fixture.restart()
    const ids = new Set([before])
    for (let i = 0; i < 5; i++) ids.add((await fixture.client()).takeConnectResponse()!.sessionId)
    fixture.clock.jumpWall(1)
    expect(ids.size).toBe(6)
  })
})

describe('a server without free file descriptors', () => {
  it('refuses writes until there are some', async () => {
    const { fixture, client } = await TestServer.withClient({ snapCount: 5 }, { timeout: 20_000 })
    fixture.disk.injectFault = (call) => (call === 'open' ? { code: 'EMFILE' } : undefined)
    for (let xid = 1; xid <= 20; xid++) {
      client.create(xid, `/n${xid}`)
      await fixture.untilIdle()
    }
    const received = client.takeReceived()
    expect(received.filter((one) => one.endsWith(`:${ErrorCode.SYSTEMERROR}`)).length).toBeGreaterThan(0)
    expect(fixture.logLines.some(({ sentence }) => sentence.includes('No file descriptor is left'))).toBe(
      true,
    )
    fixture.disk.injectFault = undefined
    await fixture.advance(5000)
    client.create(21, '/after')
    expect(await client.received()).toEqual(['21:0'])
  })
})

describe('a full disk', () => {
  it('delays the expiry of a session until there is space', async ({ fixture }) => {
    const client = await fixture.connect({ timeout: 4000 })
    client.create(1, '/e', CreateMode.EPHEMERAL)
    await fixture.untilIdle()
    client.connection.destroy()
    fixture.disk.injectFault = (call) => (call === 'write' ? FULL_DISK : undefined)
    await fixture.advance(8000)
    expect(fixture.server.stats()).toMatchObject({ sessions: 1, nodes: 5 })
    fixture.disk.injectFault = undefined
    await fixture.advance(10_000)
    expect(fixture.server.stats()).toMatchObject({ sessions: 0, nodes: 4 })
  })

  it('replies to requests in their order where the log takes turns to take back what is not durable', async () => {
    const disk = new MemoryDisk()
    const openWrite = disk.openWrite.bind(disk)
    let release = (): void => {}
    const held = new Promise<void>((resolve) => (release = resolve))
    disk.openWrite = async (path, options) => {
      const writer = await openWrite(path, options)
      const truncate = writer.truncate.bind(writer)
      return Object.assign(writer, { truncate: (length: number) => held.then(() => truncate(length)) })
    }
    const fixture = await TestServer.start({}, disk)
    const client = await fixture.connect()
    client.create(1, '/a')
    expect(await client.received()).toEqual(['1:0'])
    disk.injectFault = (call) => (call === 'write' ? FULL_DISK : undefined)
    interleavePromises(fixture.clock)
    const check = { type: OpCode.check, path: '/', version: -1 } as const
    client.batch(() => {
      client.set(2, '/a', 'x')
      client.ask(3, OpCode.multi, (w) => writeMultiRequest(w, Array(20_000).fill(check)))
      client.set(4, '/a', 'y')
      client.sync(5)
    })
    expect(await client.received()).toEqual([])
    release()
    expect(await client.received()).toEqual(['2:-1', '3:-1', '4:-1', '5:0'])
  })

  it('does not keep throttled clients throttled', async () => {
    const { fixture, client } = await TestServer.withClient({ globalOutstandingLimit: 5 }, { timeout: 6000 })
    fixture.disk.injectFault = (call) => (call === 'write' ? FULL_DISK : undefined)
    const release = fixture.blockDisk()
    for (let i = 1; i <= 20; i++) client.create(i, `/h${i}`)
    await fixture.untilIdle()
    release()
    await fixture.untilIdle()
    fixture.disk.injectFault = undefined
    for (let i = 0; i < 10; i++) {
      client.ask(-2, OpCode.ping)
      await fixture.advance(1000)
    }
    expect(client.closed).toBe(false)
    expect(client.takeReceived().length).toBe(30)
  })

  it('answers what it discards over several turns in the order of each session, syncs included, and stays up', async () => {
    const { fixture, client } = await TestServer.withClient()
    const other = await fixture.connect()
    fixture.disk.injectFault = (call) => (call === 'write' ? FULL_DISK : undefined)
    const release = fixture.blockDisk()
    for (const one of [client, other]) {
      for (let i = 1; i <= 30; i++) one.create(i, `/h${i}`)
      one.sync(31)
      one.read(32, OpCode.exists, '/h1')
      one.create(33, '/h33')
    }
    await fixture.untilIdle()
    // Each look at the clock takes time, so that the answers take several turns.
    const spend = spendTime(fixture.clock)
    const monotonic = fixture.clock.monotonic.bind(fixture.clock)
    fixture.clock.monotonic = () => (spend(0.5), monotonic())
    release()
    await fixture.untilIdle()
    const lost = Array.from({ length: 30 }, (_, i) => `${i + 1}:${ErrorCode.SYSTEMERROR}`)
    const all = [...lost, '31:0', `32:${ErrorCode.NONODE}`, `33:${ErrorCode.SYSTEMERROR}`]
    expect([client.takeReceived(), other.takeReceived()]).toEqual([all, all])
    expect(fixture.server.stats().sessions).toBe(2)
  })

  it('refuses writes and serves reads, and accepts writes again when there is space', async ({ fixture }) => {
    const client = await fixture.connect({ timeout: 20_000 })
    client.create(1, '/a')
    await fixture.untilIdle()
    client.takeReceived()
    fixture.disk.injectFault = (call) => (call === 'write' ? FULL_DISK : undefined)
    client.create(2, '/b')
    client.read(3, OpCode.exists, '/b')
    expect(await client.received()).toEqual([`2:${ErrorCode.SYSTEMERROR}`, `3:${ErrorCode.NONODE}`])
    client.create(4, '/c')
    client.read(5, OpCode.exists, '/a')
    expect(await client.received()).toEqual([`4:${ErrorCode.SYSTEMERROR}`, '5:0'])
    expect(fixture.logLines.some(({ level, sentence }) => level !== 'info' && /space/i.test(sentence))).toBe(
      true,
    )
    fixture.disk.injectFault = undefined
    await fixture.advance(10_000)
    client.create(6, '/c')
    expect(await client.received()).toEqual(['6:0'])
    await fixture.stop()
    await fixture.restart()
    expect(fixture.server.stats().nodes).toBe(6)
  })

  it('keeps sessions open whose timeout passes, and closes them when there is space', async ({ fixture }) => {
    const client = await fixture.connect({ timeout: 4000 })
    client.create(1, '/e', CreateMode.EPHEMERAL)
    const writer = await fixture.connect({ timeout: 20_000 })
    await fixture.untilIdle()
    fixture.disk.injectFault = (call) => (call === 'write' ? FULL_DISK : undefined)
    writer.create(1, '/b')
    await fixture.advance(8000)
    expect(fixture.server.stats().sessions).toBe(2)
    const next = fixture.clock.pendingTimers().find(({ name }) => name === 'session expiry')!
    expect(next.at - fixture.clock.monotonic()).toBeGreaterThan(100)
    fixture.disk.injectFault = undefined
    await fixture.advance(8000)
    expect(fixture.server.stats()).toMatchObject({ sessions: 1, nodes: 4 })
  })
})

describe('a server that stops', () => {
  it('replies to accepted writes before it closes connections, and has these writes after a restart', async () => {
    const { fixture, client } = await TestServer.withClient()
    client.create(1, '/last')
    // The server has received the write and not made it durable yet when it is closed.
    fixture.clock.advance(0)
    const closed = fixture.server.close()
    await fixture.untilIdle()
    await closed
    expect(client.takeReceived()).toEqual(['1:0'])
    expect(client.closed).toBe(true)
    expect(await fixture.server.failed).toBe(undefined)
    await fixture.restart()
    const again = await fixture.connect()
    again.read(1, OpCode.exists, '/last')
    expect(await again.received()).toEqual(['1:0'])
  })

  it('waits one second for a client that does not read', async ({ fixture, client }) => {
    client.connection.pause()
    client.create(1, '/a')
    await fixture.untilIdle()
    let over = false
    const closed = fixture.server.close().then(() => (over = true))
    await fixture.untilIdle()
    expect(over).toBe(false)
    await fixture.advance(1000)
    await closed
    expect(client.closed).toBe(true)
  })

  it('stops when the disk fails: it logs one error and closes its connections', async ({ fixture }) => {
    const client = await fixture.connect()
    fixture.disk.injectFault = (call) => (call === 'write' ? { code: 'EIO' } : undefined)
    client.create(1, '/a')
    await fixture.untilIdle()
    expect(client.closed).toBe(true)
    expect(client.takeReceived()).toEqual([])
    expect(await fixture.server.failed).toMatchObject({ cause: { code: 'EIO' } })
    expect(fixture.logLines.filter(({ level }) => level === 'error').length).toBe(1)
    fixture.disk.injectFault = undefined
    await fixture.stop()
  })
})

/** Starts a server with 200 znodes that takes a snapshot after at most 20 changes. `snapshots` counts its snapshots. */
async function startWithNodes(settings: Partial<ServerSettings>) {
  const { fixture, client } = await TestServer.withClient({ snapCount: 20, ...settings }, { timeout: 20_000 })
  for (let i = 0; i < 200; i++) {
    client.create(i + 1, `/n${i}`)
    if (i % 10 === 0) await fixture.untilIdle()
  }
  await fixture.untilIdle()
  const snapshots = (): number => fixture.disk.paths().filter((path) => path.includes('/snapshot.')).length
  return { fixture, client, snapshots }
}

describe('the background work of a server', () => {
  it('deletes a container whose last child is deleted, and an expired TTL node', async () => {
    const fixture = await TestServer.start({ extendedTypesEnabled: true, containerCheckIntervalMs: 1000 })
    const client = await fixture.connect({ timeout: 20_000 })
    const container = { path: '/c', data: null, acl: OPEN_ACL_UNSAFE, flags: CreateMode.CONTAINER }
    client.ask(1, OpCode.createContainer, (w) => writeCreateRequest(w, container))
    client.create(2, '/c/x')
    client.createTtl(3, '/t', 2500n)
    await fixture.advance(1500)
    expect(client.takeReceived()).toEqual(['1:0', '2:0', '3:0'])
    expect(fixture.server.stats().nodes).toBe(7)
    client.delete(4, '/c/x')
    await fixture.advance(1000)
    expect(fixture.server.stats().nodes).toBe(5)
    await fixture.advance(2000)
    expect(fixture.server.stats().nodes).toBe(4)
  })

  it('does not delete a TTL node that is written while its deletion is due', async () => {
    const fixture = await TestServer.start({
      extendedTypesEnabled: true,
      containerCheckIntervalMs: 1000,
      containerMaxPerMinute: 60,
    })
    const client = await fixture.connect({ timeout: 20_000 })
    for (let n = 1; n <= 4; n++) client.createTtl(n, `/t${n}`, 3000n)
    await fixture.advance(4100)
    // /t1 is deleted; the others are in a list of which one node is deleted each second.
    client.takeReceived()
    client.set(5, '/t4', 'alive')
    await fixture.advance(2500)
    client.read(6, OpCode.exists, '/t4')
    client.read(7, OpCode.exists, '/t1')
    expect(await client.received()).toEqual(['5:0', '6:0', `7:${ErrorCode.NONODE}`])
    await fixture.advance(10_000)
    expect(fixture.server.stats().nodes).toBe(4)
  })

  it('takes a snapshot after snapCount transactions, and purges all but autopurge.snapRetainCount of them', async () => {
    const { fixture, snapshots } = await startWithNodes({ purgeRetainCount: 3, purgeIntervalMs: 5000 })
    expect(snapshots()).toBeGreaterThan(3)
    await fixture.advance(5100)
    expect(snapshots()).toBe(3)
    await fixture.stop()
    await fixture.restart()
    expect(fixture.server.stats().nodes).toBe(204)
  })

  it.each([
    [0, 10, 20],
    [1, 1, 2],
  ])('with snapTreeShare %s takes %i to %i snapshots during 200 changes', async (share, least, most) => {
    const { fixture, client, snapshots } = await startWithNodes({ snapTreeShare: share })
    const before = snapshots()
    for (let i = 0; i < 200; i++) {
      client.set(i + 201, '/n0', 'again')
      if (i % 5 === 0) await fixture.untilIdle()
    }
    await fixture.untilIdle()
    expect(snapshots() - before).toBeGreaterThanOrEqual(least)
    expect(snapshots() - before).toBeLessThanOrEqual(most)
  })
})

describe('four-letter commands', () => {
  it('are refused by name when they are not in the whitelist', async () => {
    const fixture = await TestServer.start({ fourLetterWords: ['srvr'] })
    expect(await fixture.command('ruok')).toBe('ruok is not executed because it is not in the whitelist.\n')
    expect(await fixture.command('srvr')).toMatch(
      /^Zookeeper version: 3\.9\.\d+.*\nLatency min\/avg\/max: 0\/0\.0\/0\n/,
    )
  })

  it('are recognized byte by byte, and other bytes are a handshake', async ({ fixture }) => {
    fixture.network.chunkBytes = 1
    expect(await fixture.command('ruok')).toBe('imok')
    expect((await fixture.client()).takeConnectResponse()?.timeOut).toBe(10_000)
  })

  it('show the connections, watches and sessions of the server', async ({ fixture, client }) => {
    const { sessionId } = client.session!
    const sid = `0x${sessionId.toString(16)}`
    client.create(1, '/e', CreateMode.EPHEMERAL)
    client.read(2, OpCode.getData, '/e', true)
    await fixture.untilIdle()
    expect(await fixture.command('wchs')).toBe('1 connections watching 1 paths\nTotal watches:1\n')
    expect(await fixture.command('wchc')).toBe(`${sid}\n\t/e\n\n`)
    expect(await fixture.command('wchp')).toBe(`/e\n\t${sid}\n\n`)
    expect(await fixture.command('cons')).toContain(`recved=3,sent=3,sid=${sid},lop=GETD,`)
    expect(await fixture.command('dump')).toContain(`Sessions with Ephemerals (1):\n${sid}:\n\t/e\n`)
    expect(await fixture.command('crst')).toBe('Connection stats reset.\n')
    expect(await fixture.command('cons')).toContain(`recved=0,sent=0,sid=${sid},lop=NA,`)
    client.read(3, OpCode.getData, '/e', true)
    client.delete(4, '/e')
    await fixture.untilIdle()
    expect(await fixture.command('mntr')).toMatch(/zk_cnt_node_deleted_watch_count\t1\n/)
    expect(await fixture.command('srst')).toBe('Server stats reset.\n')
    const reset = await fixture.command('mntr')
    expect(reset).toMatch(/zk_cnt_node_deleted_watch_count\t0\n/)
    expect(reset).toMatch(/zk_watch_bytes\t0\n/)
    client.create(5, '/e', CreateMode.EPHEMERAL)
    await fixture.untilIdle()
    expect(await fixture.command('mntr')).toMatch(/zk_ephemerals_count\t1\n/)
  })
})

describe('a standalone server', () => {
  it('has neither a leader nor epoch files nor a configuration, and serves whatever leaderServes and localSessionsEnabled say', async () => {
    const server = await TestServer.start({ leaderServes: false, localSessionsEnabled: true })
    const client = await server.client()
    expect(client.takeConnectResponse()?.timeOut).toBe(10_000)
    client.create(1, '/a', CreateMode.EPHEMERAL)
    client.read(2, OpCode.getData, '/zookeeper/config')
    await server.untilIdle()
    expect(client.replies().map(({ xid, err, zxid }) => [xid, err, zxid])).toEqual([
      [1, 0, 2],
      [2, 0, 2],
    ])
    const { role, leader, epoch, serving } = server.server
    expect({ role, leader, epoch, serving }).toEqual({
      role: 'standalone',
      leader: undefined,
      epoch: 0,
      serving: true,
    })
    expect(server.disk.paths().filter((path) => /epoch|dynamic/i.test(path))).toEqual([])
  })

  it('has no leadership to hand over', async () => {
    const server = await TestServer.start()
    expect(server.server.yieldLeadership()).toBe(false)
    expect(server.logLines.filter(({ level }) => level === 'warn')).toEqual([])
  })

  it('unlocks its folders when it is closed after a failure', async () => {
    const server = await TestServer.start()
    const client = await server.client()
    server.disk.injectFault = (call) => (call === 'write' ? { code: 'EIO' } : undefined)
    client.create(1, '/a')
    await server.untilIdle()
    expect(await server.server.failed).toMatchObject({ cause: { code: 'EIO' } })
    server.disk.injectFault = undefined
    await server.stop()
    await server.restart()
    expect(server.server.serving).toBe(true)
  })
})

describe('a start', () => {
  it('that trusts logs without a snapshot takes a snapshot, so that later starts need no trust', async () => {
    const fixture = await TestServer.start()
    const client = await fixture.connect()
    client.create(1, '/a')
    await fixture.untilIdle()
    await fixture.stop()
    const { disk } = fixture
    const folder = '/data/version-2'
    for (const name of await disk.list(folder))
      if (name.startsWith('snapshot.')) await disk.remove(`${folder}/${name}`)
    await expect(TestServer.start({}, disk)).rejects.toThrow('snapshot.trust.empty=true')
    await (await TestServer.start({ snapshotTrustEmpty: true }, disk)).stop()
    const again = await TestServer.start({}, disk)
    const reader = await again.connect()
    reader.read(1, OpCode.exists, '/a')
    await again.untilIdle()
    expect(reader.takeReceived()).toEqual(['1:0'])
  })

  it('is refused where the first snapshot cannot be written: a later start refuses logs without one', async () => {
    const disk = new MemoryDisk()
    disk.injectFault = (call, path) =>
      call === 'write' && path.includes('/writing.') ? { code: 'ENOSPC' } : undefined
    await expect(TestServer.start({}, disk)).rejects.toThrow('ENOSPC')
    disk.injectFault = undefined
    const server = await TestServer.start({}, disk)
    const client = await server.connect()
    client.create(1, '/a')
    await server.untilIdle()
    const crashed = disk.clone()
    await server.stop()
    const again = await TestServer.start({}, crashed)
    const reader = await again.connect()
    reader.read(1, OpCode.exists, '/a')
    await again.untilIdle()
    expect(reader.takeReceived()).toEqual(['1:0'])
  })
})

describe('the password of a session', () => {
  const apache = (client: RawClient): Uint8Array => apachePasswordFor(client.session!.sessionId)
  const statusOf = async (fixture: TestServer, client: RawClient, password: Uint8Array): Promise<string> => {
    const other = await fixture.client({ resume: client.session!, password })
    return (other.takeConnectResponse()?.timeOut ?? 0) > 0 ? 'resumed' : 'refused'
  }

  it('cannot be computed from its id, and is kept over restarts in a file of the data folder', async () => {
    const fixture = await TestServer.start()
    const client = await fixture.connect()
    expect(await statusOf(fixture, client, apache(client))).toBe('refused')
    await fixture.stop()
    expect(new TextDecoder().decode(await fixture.disk.readFile('/data/session.secret'))).toMatch(
      /^secret=[\da-f]{64}\nsince=never\n$/,
    )
    await fixture.restart()
    expect(await statusOf(fixture, client, client.session!.passwd!)).toBe('resumed')
    expect(JSON.stringify(fixture.logLines)).not.toMatch(/secret=/)
  })

  it('of a session from before the secret stays as it was, and no later session has one like it', async () => {
    const fixture = await TestServer.start({ sessionSecretEnabled: false })
    const client = await fixture.connect()
    expect(client.session!.passwd).toEqual(apache(client))
    await fixture.stop()
    await fixture.advance(1000)
    Object.assign(fixture, { settings: { ...fixture.settings, sessionSecretEnabled: true } })
    await fixture.restart()
    expect(await statusOf(fixture, client, apache(client))).toBe('resumed')
    const later = await fixture.connect()
    expect(await statusOf(fixture, later, apache(later))).toBe('refused')
    await fixture.stop()
    await fixture.restart()
    expect(await statusOf(fixture, client, apache(client))).toBe('resumed')
  })

  it('comes from sessionSecretFile, the same on every server that has it', async () => {
    const shared = { sessionSecretFile: '/secret' }
    const fixture = await TestServer.start().then(async (first) => (await first.stop(), first))
    await expect(TestServer.start(shared, fixture.disk)).rejects.toThrow('got no file in /secret')
    fixture.disk.putFile('/secret', new TextEncoder().encode('too short\n'))
    await expect(TestServer.start(shared, fixture.disk)).rejects.toThrow('at least 16 bytes')
    fixture.disk.putFile('/secret', new TextEncoder().encode('sixteen bytes ok\n'))
    const one = await TestServer.start(shared, fixture.disk)
    const client = await one.connect()
    const expected = new SessionPasswords({
      bytes: new TextEncoder().encode('sixteen bytes ok'),
      since: undefined,
    })
    expect(client.session!.passwd).toEqual(expected.passwordFor(client.session!.sessionId))
  })
})
