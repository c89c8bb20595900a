import { OpCode, ErrorCode, EventType, CreateMode, writeAuthPacket } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import type { ServerSettings } from './settings/index.ts'
import { TestServer, type RawClient } from './testing/test-server.ts'

const FULL_DISK = { code: 'ENOSPC' }

describe('requests of one session', () => {
  it('are answered in their order, and a read behind a write sees it', async () => {
    const world = await TestServer.start()
    const client = await world.client()
    client.takeConnectResponse()
    client.create(1, '/a')
    client.read(2, OpCode.getData, '/a')
    client.set(3, '/a', 'new')
    client.read(4, OpCode.getData, '/a')
    client.read(5, OpCode.getData, '/none')
    client.create(6, '/a')
    await world.untilIdle()
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

  it('do not wait for the writes of others', async () => {
    const world = await TestServer.start()
    const [writer, reader] = [await world.client(), await world.client()]
    writer.takeConnectResponse()
    reader.takeConnectResponse()
    const release = world.blockDisk()
    writer.create(1, '/a')
    writer.read(2, OpCode.exists, '/a')
    reader.read(1, OpCode.exists, '/a')
    await world.untilIdle()
    expect(reader.takeReceived()).toEqual([`1:${ErrorCode.NONODE}`])
    expect(writer.takeReceived()).toEqual([])
    release()
    await world.untilIdle()
    expect(writer.takeReceived()).toEqual(['1:0', '2:0'])
  })

  it('are kept when they come right behind the handshake, in whatever pieces', async () => {
    const world = await TestServer.start()
    world.network.chunkBytes = 3
    const client = await world.open()
    client.handshake()
    client.create(1, '/early')
    client.ask(-2, OpCode.ping)
    await world.untilIdle()
    expect(client.takeConnectResponse()?.timeOut).toBe(10_000)
    expect(client.takeReceived()).toEqual(['1:0', '-2:0'])
  })

  it('are kept when they come in one piece with the handshake, and behind what makes them wait', async () => {
    const world = await TestServer.start()
    const client = await world.open()
    client.batch(() => {
      client.handshake()
      client.create(1, '/early', 0, 'x'.repeat(2000))
      client.read(2, OpCode.exists, '/early')
      client.read(3, OpCode.exists, '/never')
    })
    await world.untilIdle()
    expect(client.takeConnectResponse()?.timeOut).toBe(10_000)
    expect(client.takeReceived()).toEqual(['1:0', '2:0', `3:${ErrorCode.NONODE}`])
  })

  it('see events before the reply that could show their cause', async () => {
    const world = await TestServer.start()
    const client = await world.client()
    client.takeConnectResponse()
    client.read(1, OpCode.exists, '/a', true)
    client.read(2, OpCode.getChildren, '/', true)
    client.create(3, '/a')
    client.read(4, OpCode.getData, '/a', true)
    client.set(5, '/a', 'x')
    await world.untilIdle()
    expect(client.takeReceived()).toEqual([
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

  it('end with an error and a closed connection when no client may send them', async () => {
    const world = await TestServer.start()
    for (const type of [-1, 0, 10, OpCode.check, OpCode.createSession, OpCode.deleteContainer]) {
      const client = await world.client()
      client.takeConnectResponse()
      client.ask(9, type)
      await world.untilIdle()
      expect(client.takeReceived()).toEqual([`9:${ErrorCode.UNIMPLEMENTED}`])
      expect(client.closed).toBe(true)
    }
  })
})

describe('a session', () => {
  it('ends with its ephemeral nodes when it is silent, and its connection is closed without a word', async () => {
    const world = await TestServer.start()
    const [client, watcher] = [await world.client({ timeout: 4000 }), await world.client({ timeout: 20_000 })]
    client.takeConnectResponse()
    watcher.takeConnectResponse()
    client.create(1, '/e', CreateMode.EPHEMERAL)
    await world.untilIdle()
    watcher.read(1, OpCode.exists, '/e', true)
    await world.untilIdle()
    expect([client.takeReceived(), watcher.takeReceived()]).toEqual([['1:0'], ['1:0']])
    await world.advance(3900)
    expect(client.closed).toBe(false)
    await world.advance(1200)
    expect(client.closed).toBe(true)
    expect(client.takeReceived()).toEqual([])
    expect(watcher.takeReceived()).toEqual([`event ${EventType.NodeDeleted} /e`])
  })

  it('lives on with pings, and after its connection is gone until its time is over', async () => {
    const world = await TestServer.start()
    const client = await world.client({ timeout: 4000 })
    const session = client.takeConnectResponse()!
    for (let i = 0; i < 5; i++) {
      await world.advance(3000)
      client.ask(-2, OpCode.ping)
      await world.untilIdle()
    }
    client.connection.cut()
    await world.advance(3000)
    const again = await world.client({ resume: session })
    expect(again.takeConnectResponse()?.sessionId).toBe(session.sessionId)
  })

  it('moves to a new connection, and the old one is closed', async () => {
    const world = await TestServer.start()
    const old = await world.client()
    const session = old.takeConnectResponse()!
    const again = await world.client({ resume: session })
    expect(again.takeConnectResponse()).toMatchObject({ sessionId: session.sessionId })
    expect(old.closed).toBe(true)
    again.create(1, '/a', CreateMode.EPHEMERAL)
    await world.untilIdle()
    expect(again.takeReceived()).toEqual(['1:0'])
  })

  it('is not valid with a wrong password, which does not disturb the one who has it', async () => {
    const world = await TestServer.start()
    const held = await world.client()
    const session = held.takeConnectResponse()!
    const guess = await world.open()
    guess.handshake({ resume: session, password: new Uint8Array(16) })
    await world.untilIdle()
    expect(guess.takeConnectResponse()).toMatchObject({
      timeOut: 0,
      sessionId: 0n,
      passwd: new Uint8Array(16),
    })
    expect(guess.closed).toBe(true)
    expect(held.closed).toBe(false)
  })

  it('ends at its wish, with what was sent behind it dropped', async () => {
    const world = await TestServer.start()
    const client = await world.client()
    const session = client.takeConnectResponse()!
    client.create(1, '/e', CreateMode.EPHEMERAL)
    client.ask(2, OpCode.closeSession)
    client.create(3, '/never')
    await world.untilIdle()
    expect(client.takeReceived()).toEqual(['1:0', '2:0'])
    expect(client.closed).toBe(true)
    const again = await world.client({ resume: session })
    expect(again.takeConnectResponse()?.sessionId).toBe(0n)
    const other = await world.client()
    other.takeConnectResponse()
    other.read(1, OpCode.exists, '/e')
    other.read(2, OpCode.exists, '/never')
    await world.untilIdle()
    expect(other.takeReceived()).toEqual([`1:${ErrorCode.NONODE}`, `2:${ErrorCode.NONODE}`])
  })

  it('gets a timeout within the limits of the server', async () => {
    const world = await TestServer.start({ minSessionTimeoutMs: 3000, maxSessionTimeoutMs: 9000 })
    const timeouts: (number | undefined)[] = []
    for (const timeout of [-5, 0, 5000, 2 ** 31 - 1])
      timeouts.push((await world.client({ timeout })).takeConnectResponse()?.timeOut)
    expect(timeouts).toEqual([3000, 3000, 5000, 9000])
  })

  it('lives through a restart of the server, with its ephemeral nodes and a full life', async () => {
    const world = await TestServer.start()
    const client = await world.client({ timeout: 4000 })
    const session = client.takeConnectResponse()!
    client.create(1, '/e', CreateMode.EPHEMERAL)
    await world.untilIdle()
    await world.stop()
    await world.restart()
    await world.advance(3500)
    const again = await world.client({ resume: session, timeout: 4000 })
    expect(again.takeConnectResponse()?.sessionId).toBe(session.sessionId)
    again.read(1, OpCode.exists, '/e')
    await world.untilIdle()
    expect(again.takeReceived()).toEqual(['1:0'])
    await world.advance(6000)
    const other = await world.client()
    other.takeConnectResponse()
    other.read(1, OpCode.exists, '/e')
    await world.untilIdle()
    expect(other.takeReceived()).toEqual([`1:${ErrorCode.NONODE}`])
  })

  it('of a client that has seen later transactions is refused without an answer', async () => {
    const world = await TestServer.start()
    const client = await world.client({ seen: 99n })
    expect(client.frames).toEqual([])
    expect(client.closed).toBe(true)
    expect(world.logLines.some(({ level, sentence }) => level === 'warn' && sentence.includes('0x63'))).toBe(
      true,
    )
  })
})

describe('limits', () => {
  it('refuse the connection too many of one address and say why in the log', async () => {
    const world = await TestServer.start({ maxClientCnxns: 2 })
    await world.client()
    const second = await world.client()
    const third = await world.client()
    expect(third.closed).toBe(true)
    expect(world.logLines.at(-1)).toMatchObject({
      level: 'warn',
      sentence: expect.stringContaining('maxClientCnxns is 2'),
    })
    second.connection.destroy()
    await world.untilIdle()
    expect((await world.client()).takeConnectResponse()?.timeOut).toBe(10_000)
  })

  it('refuse the connection too many of all', async () => {
    const world = await TestServer.start({ maxCnxns: 1, maxClientCnxns: 0 })
    await world.client()
    expect((await world.client()).closed).toBe(true)
    expect(world.logLines.at(-1)?.sentence).toContain('there are 1 connections, and maxCnxns')
  })

  it('refuse the session too many, and let one more begin when one has ended', async () => {
    const world = await TestServer.start({ maxSessions: 1 })
    const first = await world.client()
    first.takeConnectResponse()
    expect((await world.client()).closed).toBe(true)
    expect(world.logLines.findLast(({ level }) => level === 'warn')?.sentence).toContain('maxSessions is 1')
    first.ask(1, OpCode.closeSession)
    await world.untilIdle()
    expect((await world.client()).takeConnectResponse()).toBeDefined()
  })

  it('close a connection that asks for nothing in time', async () => {
    const world = await TestServer.start({ sessionlessTimeoutMs: 5000 })
    const silent = await world.open()
    await world.advance(4900)
    expect(silent.closed).toBe(false)
    await world.advance(200)
    expect(silent.closed).toBe(true)
    expect(await world.command('mntr')).toContain('zk_sessionless_connections_expired\t1\n')
  })

  it('close a connection whose frame is too long, and name the client and the length', async () => {
    const world = await TestServer.start({ juteMaxBufferBytes: 1000 })
    const client = await world.client()
    client.takeConnectResponse()
    client.create(1, '/a', 0, 'x'.repeat(2000))
    await world.untilIdle()
    expect(client.closed).toBe(true)
    expect(world.logLines.findLast(({ level }) => level === 'warn')).toMatchObject({
      facts: {
        client: expect.stringMatching(/^127\.0\.0\.1:\d+$/),
        reason: expect.stringMatching(/1 to 1000 bytes, got a length of 20\d\d/),
      },
    })
  })

  it('hold back a client that writes while too much is on its way, and let it go on', async () => {
    const world = await TestServer.start({ globalOutstandingLimit: 5 })
    world.network.chunkBytes = 64
    const client = await world.client()
    client.takeConnectResponse()
    const release = world.blockDisk()
    for (let i = 1; i <= 50; i++) client.create(i, `/n${i}`)
    await world.untilIdle()
    expect(world.server.stats().outstanding).toBeLessThan(10)
    release()
    await world.untilIdle()
    expect(client.takeReceived()).toEqual(Array.from({ length: 50 }, (_, i) => `${i + 1}:0`))
  })

  it('let only so many sessions begin in a time', async () => {
    const world = await TestServer.start({
      connectionThrottleTokens: 2,
      connectionThrottleFillTimeMs: 1000,
      connectionThrottleFillCount: 1,
    })
    expect((await world.client()).takeConnectResponse()).toBeDefined()
    expect((await world.client()).takeConnectResponse()).toBeDefined()
    expect((await world.client()).closed).toBe(true)
    await world.advance(1000)
    expect((await world.client()).takeConnectResponse()).toBeDefined()
  })

  it('demand an identity where the configuration does', async () => {
    const world = await TestServer.start({ enforceAuthEnabled: true, enforceAuthSchemes: ['digest'] })
    const stranger = await world.client()
    stranger.takeConnectResponse()
    stranger.ask(-2, OpCode.ping)
    await world.untilIdle()
    expect(stranger.takeReceived()).toEqual([`-2:${ErrorCode.SESSIONCLOSEDREQUIRESASLAUTH}`])
    expect(stranger.closed).toBe(true)
    const known = await world.client()
    known.takeConnectResponse()
    known.ask(-4, OpCode.auth, (w) =>
      writeAuthPacket(w, { type: 0, scheme: 'digest', auth: new TextEncoder().encode('bob:secret') }),
    )
    known.create(1, '/a')
    await world.untilIdle()
    expect(known.takeReceived()).toEqual(['-4:0', '1:0'])
    expect(JSON.stringify(world.logLines)).not.toContain('secret')
  })
})

describe('a client that does not read', () => {
  async function slow(): Promise<{ world: TestServer; client: Awaited<ReturnType<TestServer['client']>> }> {
    const world = await TestServer.start({ juteMaxBufferBytes: 2_000_000 })
    const client = await world.client()
    client.takeConnectResponse()
    client.create(1, '/big', 0, 'x'.repeat(1_000_000))
    await world.untilIdle()
    client.takeReceived()
    client.connection.pause()
    return { world, client }
  }

  it('gets every answer in its order once it reads, writes and those behind them included', async () => {
    const { world, client } = await slow()
    for (let xid = 1; xid <= 20; xid++) client.read(xid, OpCode.getData, '/big')
    client.set(21, '/big', 'small')
    client.read(22, OpCode.getData, '/big')
    client.create(23, '/after')
    client.create(24, '/after')
    client.read(25, OpCode.exists, '/after')
    await world.untilIdle()
    client.connection.resume()
    for (let turns = 0; turns < 50; turns++) await world.untilIdle()
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

  it('ends its session in its turn, and what comes behind is dropped', async () => {
    const { world, client } = await slow()
    for (let xid = 1; xid <= 5; xid++) client.read(xid, OpCode.getData, '/big')
    client.ask(6, OpCode.closeSession)
    client.create(7, '/never')
    await world.untilIdle()
    client.connection.resume()
    for (let turns = 0; turns < 50; turns++) await world.untilIdle()
    expect(client.takeReceived()).toEqual(['1:0', '2:0', '3:0', '4:0', '5:0', '6:0'])
    expect(client.closed).toBe(true)
    expect(world.server.stats()).toMatchObject({ sessions: 0, nodes: 5 })
  })

  it('and asks for more than 64 MiB is cut off, and the server lives on', async () => {
    const { world, client } = await slow()
    for (let xid = 1; xid <= 3; xid++) client.create(xid + 1, `/big${xid}`, 0, 'x'.repeat(1_000_000))
    await world.untilIdle()
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
    await world.untilIdle()
    client.connection.resume()
    for (let turns = 0; turns < 20; turns++) await world.untilIdle()
    expect(client.takeReceived().at(-1)).toBe(`9:${ErrorCode.MARSHALLINGERROR}`)
    expect((await world.client()).takeConnectResponse()).toBeDefined()
  })
})

describe('a client that is alive', () => {
  it('keeps its session by pings while it is slow to read', async () => {
    const world = await TestServer.start({ juteMaxBufferBytes: 2_000_000 })
    const client = await world.client({ timeout: 4000 })
    client.takeConnectResponse()
    client.create(1, '/big', 0, 'x'.repeat(1_000_000))
    await world.untilIdle()
    client.connection.pause()
    for (let xid = 2; xid <= 9; xid++) client.read(xid, OpCode.getData, '/big')
    for (let second = 0; second < 20; second++) {
      client.ask(-2, OpCode.ping)
      await world.advance(1000)
    }
    expect(client.closed).toBe(false)
    client.connection.resume()
    for (let turns = 0; turns < 50; turns++) await world.untilIdle()
    expect(client.takeReceived().filter((one) => one === '-2:0').length).toBe(20)
  })

  it('keeps its session while the server is too busy to read it', async () => {
    const world = await TestServer.start({ globalOutstandingLimit: 2 })
    const client = await world.client({ timeout: 4000 })
    client.takeConnectResponse()
    const release = world.blockDisk()
    for (let xid = 1; xid <= 10; xid++) client.create(xid, `/n${xid}`)
    await world.untilIdle()
    await world.advance(30_000)
    release()
    await world.untilIdle()
    expect(client.takeReceived().length).toBe(10)
    await world.advance(6000)
    expect(client.closed).toBe(true)
  })

  it('gets the answers of what it asked before a request that nobody may send', async () => {
    const world = await TestServer.start()
    const client = await world.client()
    client.takeConnectResponse()
    client.create(1, '/a')
    client.read(2, OpCode.exists, '/a')
    client.ask(3, 13)
    client.create(4, '/never')
    await world.untilIdle()
    expect(client.takeReceived()).toEqual(['1:0', '2:0', `3:${ErrorCode.UNIMPLEMENTED}`])
    expect([client.closed, world.server.stats().nodes]).toEqual([true, 5])
  })
})

describe('bounds on one connection', () => {
  it('are a mebibyte of requests that wait; the rest is read when these are answered', async () => {
    const world = await TestServer.start()
    world.network.chunkBytes = 4096
    const client = await world.client()
    client.takeConnectResponse()
    const release = world.blockDisk()
    client.create(1, '/a')
    for (let xid = 2; xid <= 20_000; xid++) client.read(xid, OpCode.exists, '/a')
    await world.untilIdle()
    const queued = Number(/queued=(\d+),recved=\d+,sent=\d+,sid/.exec(await world.command('cons'))?.[1])
    expect(queued).toBeGreaterThan(1000)
    expect(queued).toBeLessThan(6000)
    release()
    for (let turns = 0; turns < 50; turns++) await world.untilIdle()
    expect(client.takeReceived()).toEqual(Array.from({ length: 20_000 }, (_, i) => `${i + 1}:0`))
  })

  it('allow a hundred identities', async () => {
    const world = await TestServer.start()
    const client = await world.client()
    client.takeConnectResponse()
    for (let i = 0; i < 101; i++) {
      const auth = new TextEncoder().encode(`user${i}:secret`)
      client.ask(-4, OpCode.auth, (w) => writeAuthPacket(w, { type: 0, scheme: 'digest', auth }))
    }
    await world.untilIdle()
    expect(client.takeReceived().at(-1)).toBe(`-4:${ErrorCode.AUTHFAILED}`)
    expect(client.closed).toBe(true)
  })

  it('allow watches of 32 MiB of paths, each path counted once', async () => {
    const world = await TestServer.start({ juteMaxBufferBytes: 2_000_000 })
    const client = await world.client()
    client.takeConnectResponse()
    const watch = (n: number): void =>
      client.read(n, OpCode.exists, `/${String(n).padStart(1_000_000, '0')}`, true)
    for (let n = 1; n <= 33; n++) watch(n)
    for (let n = 1; n <= 10; n++) watch(n)
    await world.untilIdle()
    expect(client.closed).toBe(false)
    watch(34)
    await world.untilIdle()
    expect(client.closed).toBe(true)
    expect(await world.command('wchs')).toContain('Total watches:0')
  })
})

describe('ids of sessions', () => {
  it('do not come again when the wall clock has gone back', async () => {
    const world = await TestServer.start()
    const before = (await world.client()).takeConnectResponse()!.sessionId
    await world.stop()
    world.clock.jumpWall(-1)
    await world.restart()
    const ids = new Set([before])
    for (let i = 0; i < 5; i++) ids.add((await world.client()).takeConnectResponse()!.sessionId)
    world.clock.jumpWall(1)
    expect(ids.size).toBe(6)
  })
})

describe('too few file descriptors', () => {
  it('refuse writes until there are some, and bound the connections', async () => {
    const world = await TestServer.start({ snapCount: 5 })
    const client = await world.client({ timeout: 20_000 })
    client.takeConnectResponse()
    world.disk.injectFault = (call) => (call === 'open' ? { code: 'EMFILE' } : undefined)
    for (let xid = 1; xid <= 20; xid++) {
      client.create(xid, `/n${xid}`)
      await world.untilIdle()
    }
    const heard = client.takeReceived()
    expect(heard.filter((one) => one.endsWith(`:${ErrorCode.SYSTEMERROR}`)).length).toBeGreaterThan(0)
    expect(world.logLines.some(({ sentence }) => sentence.includes('No file descriptor is left'))).toBe(true)
    world.disk.injectFault = undefined
    await world.advance(5000)
    client.create(21, '/after')
    await world.untilIdle()
    expect(client.takeReceived()).toEqual(['21:0'])
  })
})

describe('a full disk', () => {
  it('that meets the end of a session ends it later all the same', async () => {
    const world = await TestServer.start()
    const client = await world.client({ timeout: 4000 })
    client.takeConnectResponse()
    client.create(1, '/e', CreateMode.EPHEMERAL)
    await world.untilIdle()
    client.connection.destroy()
    world.disk.injectFault = (call) => (call === 'write' ? FULL_DISK : undefined)
    await world.advance(8000)
    expect(world.server.stats()).toMatchObject({ sessions: 1, nodes: 5 })
    world.disk.injectFault = undefined
    await world.advance(10_000)
    expect(world.server.stats()).toMatchObject({ sessions: 0, nodes: 4 })
  })

  it('lets clients go on that were held back when it came', async () => {
    const world = await TestServer.start({ globalOutstandingLimit: 5 })
    const client = await world.client({ timeout: 6000 })
    client.takeConnectResponse()
    world.disk.injectFault = (call) => (call === 'write' ? FULL_DISK : undefined)
    const release = world.blockDisk()
    for (let i = 1; i <= 20; i++) client.create(i, `/h${i}`)
    await world.untilIdle()
    release()
    await world.untilIdle()
    world.disk.injectFault = undefined
    for (let i = 0; i < 10; i++) {
      client.ask(-2, OpCode.ping)
      await world.advance(1000)
    }
    expect(client.closed).toBe(false)
    expect(client.takeReceived().length).toBe(30)
  })

  it('refuses writes and answers reads, and writes go on when space returns', async () => {
    const world = await TestServer.start()
    const client = await world.client({ timeout: 20_000 })
    client.takeConnectResponse()
    client.create(1, '/a')
    await world.untilIdle()
    client.takeReceived()
    world.disk.injectFault = (call) => (call === 'write' ? FULL_DISK : undefined)
    client.create(2, '/b')
    client.read(3, OpCode.exists, '/b')
    await world.untilIdle()
    expect(client.takeReceived()).toEqual([`2:${ErrorCode.SYSTEMERROR}`, `3:${ErrorCode.NONODE}`])
    client.create(4, '/c')
    client.read(5, OpCode.exists, '/a')
    await world.untilIdle()
    expect(client.takeReceived()).toEqual([`4:${ErrorCode.SYSTEMERROR}`, '5:0'])
    expect(world.logLines.some(({ level, sentence }) => level !== 'info' && /space/i.test(sentence))).toBe(
      true,
    )
    world.disk.injectFault = undefined
    await world.advance(10_000)
    client.create(6, '/c')
    await world.untilIdle()
    expect(client.takeReceived()).toEqual(['6:0'])
    await world.stop()
    await world.restart()
    expect(world.server.stats().nodes).toBe(6)
  })

  it('keeps sessions that end meanwhile and ends them later', async () => {
    const world = await TestServer.start()
    const client = await world.client({ timeout: 4000 })
    client.takeConnectResponse()
    client.create(1, '/e', CreateMode.EPHEMERAL)
    const writer = await world.client({ timeout: 20_000 })
    writer.takeConnectResponse()
    await world.untilIdle()
    world.disk.injectFault = (call) => (call === 'write' ? FULL_DISK : undefined)
    writer.create(1, '/b')
    await world.advance(8000)
    expect(world.server.stats().sessions).toBe(2)
    const next = world.clock.pendingTimers().find(({ name }) => name === 'session expiry')!
    expect(next.at - world.clock.monotonic()).toBeGreaterThan(100)
    world.disk.injectFault = undefined
    await world.advance(8000)
    expect(world.server.stats()).toMatchObject({ sessions: 1, nodes: 4 })
  })
})

describe('the end', () => {
  it('answers what it has accepted before connections close, and a write is there after a restart', async () => {
    const world = await TestServer.start()
    const client = await world.client()
    client.takeConnectResponse()
    client.create(1, '/last')
    // The frame has to arrive first; that it is not durable yet when the server closes is what counts.
    world.clock.advance(0)
    const closed = world.server.close()
    await world.untilIdle()
    await closed
    expect(client.takeReceived()).toEqual(['1:0'])
    expect(client.closed).toBe(true)
    expect(await world.server.failed).toBe(undefined)
    await world.restart()
    const again = await world.client()
    again.takeConnectResponse()
    again.read(1, OpCode.exists, '/last')
    await world.untilIdle()
    expect(again.takeReceived()).toEqual(['1:0'])
  })

  it('does not wait for ever for a client that reads nothing', async () => {
    const world = await TestServer.start()
    const client = await world.client()
    client.takeConnectResponse()
    client.connection.pause()
    client.create(1, '/a')
    await world.untilIdle()
    let over = false
    const closed = world.server.close().then(() => (over = true))
    await world.untilIdle()
    expect(over).toBe(false)
    await world.advance(1000)
    await closed
    expect(client.closed).toBe(true)
  })

  it('comes by itself when the disk fails: it says why once and cuts its clients', async () => {
    const world = await TestServer.start()
    const client = await world.client()
    client.takeConnectResponse()
    world.disk.injectFault = (call) => (call === 'write' ? { code: 'EIO' } : undefined)
    client.create(1, '/a')
    await world.untilIdle()
    expect(client.closed).toBe(true)
    expect(client.takeReceived()).toEqual([])
    expect(await world.server.failed).toMatchObject({ cause: { code: 'EIO' } })
    expect(world.logLines.filter(({ level }) => level === 'error').length).toBe(1)
    world.disk.injectFault = undefined
    await world.stop()
  })
})

/** 200 nodes, with a snapshot after twenty changes at most, and how many snapshots there are. */
async function planted(
  settings: Partial<ServerSettings>,
): Promise<{ world: TestServer; client: RawClient; snapshots: () => number }> {
  const world = await TestServer.start({ snapCount: 20, ...settings })
  const client = await world.client({ timeout: 20_000 })
  client.takeConnectResponse()
  for (let i = 0; i < 200; i++) {
    client.create(i + 1, `/n${i}`)
    if (i % 10 === 0) await world.untilIdle()
  }
  await world.untilIdle()
  const snapshots = (): number => world.disk.paths().filter((path) => path.includes('/snapshot.')).length
  return { world, client, snapshots }
}

describe('time', () => {
  it('removes containers whose last child is gone, and nodes whose time to live is over', async () => {
    const world = await TestServer.start({ extendedTypesEnabled: true, containerCheckIntervalMs: 1000 })
    const client = await world.client({ timeout: 20_000 })
    client.takeConnectResponse()
    client.ask(1, OpCode.createContainer, (w) => {
      w.string('/c')
      w.buffer(null)
      w.int(1)
      w.int(31)
      w.string('world')
      w.string('anyone')
      w.int(CreateMode.CONTAINER)
    })
    client.create(2, '/c/x')
    client.ask(3, OpCode.createTTL, (w) => {
      w.string('/t')
      w.buffer(null)
      w.int(1)
      w.int(31)
      w.string('world')
      w.string('anyone')
      w.int(CreateMode.PERSISTENT_WITH_TTL)
      w.long(2500n)
    })
    await world.advance(1500)
    expect(client.takeReceived()).toEqual(['1:0', '2:0', '3:0'])
    expect(world.server.stats().nodes).toBe(7)
    client.ask(4, OpCode.delete, (w) => {
      w.string('/c/x')
      w.int(-1)
    })
    await world.advance(1000)
    expect(world.server.stats().nodes).toBe(5)
    await world.advance(2000)
    expect(world.server.stats().nodes).toBe(4)
  })

  it('looks again before it removes a node that was refreshed meanwhile', async () => {
    const world = await TestServer.start({
      extendedTypesEnabled: true,
      containerCheckIntervalMs: 1000,
      containerMaxPerMinute: 60,
    })
    const client = await world.client({ timeout: 20_000 })
    client.takeConnectResponse()
    for (let n = 1; n <= 4; n++) {
      client.ask(n, OpCode.createTTL, (w) => {
        w.string(`/t${n}`)
        w.buffer(null)
        w.int(1)
        w.int(31)
        w.string('world')
        w.string('anyone')
        w.int(CreateMode.PERSISTENT_WITH_TTL)
        w.long(3000n)
      })
    }
    await world.advance(4100)
    // The first is gone, the others stand in a list that is worked off one by one each second.
    client.takeReceived()
    client.set(5, '/t4', 'alive')
    await world.advance(2500)
    client.read(6, OpCode.exists, '/t4')
    client.read(7, OpCode.exists, '/t1')
    await world.untilIdle()
    expect(client.takeReceived()).toEqual(['5:0', '6:0', `7:${ErrorCode.NONODE}`])
    await world.advance(10_000)
    expect(world.server.stats().nodes).toBe(4)
  })

  it('takes a snapshot after so many transactions and purges what recovery does not need', async () => {
    const { world, snapshots } = await planted({ purgeRetainCount: 3, purgeIntervalMs: 5000 })
    expect(snapshots()).toBeGreaterThan(3)
    await world.advance(5100)
    expect(snapshots()).toBe(3)
    await world.stop()
    await world.restart()
    expect(world.server.stats().nodes).toBe(204)
  })

  it.each([
    [0, 10, 20],
    [1, 1, 2],
  ])(
    'with a share of its znodes of %s takes from %i to %i snapshots of 200 changes',
    async (share, least, most) => {
      const { world, client, snapshots } = await planted({ snapTreeShare: share })
      const before = snapshots()
      for (let i = 0; i < 200; i++) {
        client.set(i + 201, '/n0', 'again')
        if (i % 5 === 0) await world.untilIdle()
      }
      await world.untilIdle()
      expect(snapshots() - before).toBeGreaterThanOrEqual(least)
      expect(snapshots() - before).toBeLessThanOrEqual(most)
    },
  )
})

describe('four-letter words', () => {
  it('that are not in the whitelist are refused by name', async () => {
    const world = await TestServer.start({ fourLetterWords: ['srvr'] })
    expect(await world.command('ruok')).toBe('ruok is not executed because it is not in the whitelist.\n')
    expect(await world.command('srvr')).toMatch(
      /^Zookeeper version: 3\.9\.\d+.*\nLatency min\/avg\/max: 0\/0\.0\/0\n/,
    )
  })

  it('arrive in pieces too, and other bytes are a handshake', async () => {
    const world = await TestServer.start()
    world.network.chunkBytes = 1
    expect(await world.command('ruok')).toBe('imok')
    expect((await world.client()).takeConnectResponse()?.timeOut).toBe(10_000)
  })

  it('show connections, watches and sessions as they are', async () => {
    const world = await TestServer.start()
    const client = await world.client()
    const { sessionId } = client.takeConnectResponse()!
    const sid = `0x${sessionId.toString(16)}`
    client.create(1, '/e', CreateMode.EPHEMERAL)
    client.read(2, OpCode.getData, '/e', true)
    await world.untilIdle()
    expect(await world.command('wchs')).toBe('1 connections watching 1 paths\nTotal watches:1\n')
    expect(await world.command('wchc')).toBe(`${sid}\n\t/e\n\n`)
    expect(await world.command('wchp')).toBe(`/e\n\t${sid}\n\n`)
    expect(await world.command('cons')).toContain(`recved=3,sent=3,sid=${sid},lop=GETD,`)
    expect(await world.command('dump')).toContain(`Sessions with Ephemerals (1):\n${sid}:\n\t/e\n`)
    expect(await world.command('crst')).toBe('Connection stats reset.\n')
    expect(await world.command('cons')).toContain(`recved=0,sent=0,sid=${sid},lop=NA,`)
    client.read(3, OpCode.getData, '/e', true)
    client.ask(4, OpCode.delete, (w) => {
      w.string('/e')
      w.int(-1)
    })
    await world.untilIdle()
    expect(await world.command('mntr')).toMatch(/zk_cnt_node_deleted_watch_count\t1\n/)
    expect(await world.command('srst')).toBe('Server stats reset.\n')
    const reset = await world.command('mntr')
    expect(reset).toMatch(/zk_cnt_node_deleted_watch_count\t0\n/)
    expect(reset).toMatch(/zk_watch_bytes\t0\n/)
    client.create(5, '/e', CreateMode.EPHEMERAL)
    await world.untilIdle()
    expect(await world.command('mntr')).toMatch(/zk_ephemerals_count\t1\n/)
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

  it('gives its folders back when it is closed after a failure', async () => {
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
