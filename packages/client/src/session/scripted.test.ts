import { concatBytes, ErrorCode, EventType, OpCode, Xid } from '@zabra/protocol'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { ZooKeeperClient } from '../client.ts'
import { AuthFailedError, ThrottledError, UnknownServerError } from '../errors.ts'
import {
  eventBytes,
  replyBytes,
  ScriptedServer,
  writeStat,
  type ScriptedRequest,
} from '../testing/scripted-server.ts'
import { run, setupEachTest, world } from '../testing/setup.ts'
import { bytes, text } from '../testing/manual-world.ts'
import type { Client } from '../client-api.ts'
import type { SaslMechanism } from '../client-options.ts'

setupEachTest()
let server: ScriptedServer

beforeEach(async () => {
  server = await ScriptedServer.start(world, 5000)
})
afterEach(() => server.stop())

const open = (options = {}): Promise<Client> => world.client({ servers: 's:5000', ...options })
const data =
  (content: string) =>
  (w: Parameters<typeof writeStat>[0]): void => {
    w.buffer(bytes(content))
    writeStat(w)
  }

describe('the handshake', () => {
  it('accepts a connect response without the read-only byte', async () => {
    server.connectResponse = () => ({ readOnly: undefined as never })
    expect((await open()).state).toBe('connected')
  })

  it('sends the newest zxid that the client has seen, and never an older one', async () => {
    const client = await open()
    server.onRequest = ({ xid, connection }) =>
      connection.reply(xid, { zxid: 0x7_0000_0002n, body: data('') })
    await run(client.getData('/a'))
    server.onRequest = ({ xid, connection }) =>
      connection.reply(xid, { zxid: 0x7_0000_0001n, body: data('') })
    await run(client.getData('/a'))
    server.onRequest = ({ xid, connection }) => connection.reply(xid, { zxid: 0n, err: ErrorCode.NONODE })
    await expect(run(client.getData('/a'))).rejects.toThrow()
    server.lastConnection.raw.destroy()
    await world.advance(2000)
    expect(server.connectRequests.at(-1)!.lastZxidSeen).toBe(0x7_0000_0002n)
  })

  it('compares zxids as unsigned numbers within an epoch', async () => {
    const client = await open()
    for (const zxid of [0x1_8000_0000n, 0x1_7fff_ffffn]) {
      server.onRequest = ({ xid, connection }) => connection.reply(xid, { zxid, body: data('') })
      await run(client.getData('/a'))
    }
    server.lastConnection.raw.destroy()
    await world.advance(2000)
    expect(server.connectRequests.at(-1)!.lastZxidSeen).toBe(0x1_8000_0000n)
  })
})

describe('a reply', () => {
  it('with an unknown error code fails only its request', async () => {
    const client = await open()
    server.onRequest = ({ xid, connection }) => connection.reply(xid, { err: -777 })
    await expect(run(client.getData('/a'))).rejects.toThrow(UnknownServerError)
    await expect(run(client.getData('/a'))).rejects.toMatchObject({ wireCode: -777, retryable: false })
    expect(client.state).toBe('connected')
  })

  it('with EPHEMERALONLOCALSESSION rejects the create, and the session continues', async () => {
    const client = await open()
    server.onRequest = ({ xid, connection }) =>
      connection.reply(xid, { err: ErrorCode.EPHEMERALONLOCALSESSION })
    await expect(run(client.create('/e', { mode: 'ephemeral' }))).rejects.toMatchObject({
      name: 'EphemeralOnLocalSessionError',
      maybeApplied: false,
    })
    server.onRequest = ({ xid, connection }) => connection.reply(xid, { body: data('1') })
    expect(text((await run(client.getData('/a'))).data)).toBe('1')
  })

  it('decodes 64-bit numbers exactly', async () => {
    server.connectResponse = () => ({ sessionId: 0x7fff_ffff_ffff_fffdn })
    const client = await open()
    expect(client.session.id).toBe(0x7fff_ffff_ffff_fffdn)
    const mzxid = 0x7fff_ffff_ffff_fffbn
    server.onRequest = ({ xid, connection }) =>
      connection.reply(xid, {
        body: (w) => {
          w.buffer(bytes(''))
          writeStat(w, { mzxid })
        },
      })
    expect((await run(client.getData('/a'))).stat.mzxid).toBe(mzxid)
  })

  it('out of order ends the connection', async () => {
    const client = await open()
    const states = world.states(client)
    server.onRequest = ({ xid, connection }) => connection.reply(xid + 1, { body: data('') })
    const read = client.getData('/a', { retry: false })
    await expect(run(read)).rejects.toMatchObject({ code: 'CONNECTION_LOSS', cause: { message: /broken/ } })
    expect(states).toContain('suspended')
  })

  it('that is malformed rejects its request and ends the connection', async () => {
    const client = await open()
    const states = world.states(client)
    server.onRequest = ({ xid, connection }) => connection.reply(xid, { body: (w) => w.int(1000) })
    await expect(run(client.getData('/a'))).rejects.toMatchObject({
      code: 'MARSHALLING_ERROR',
      message: expect.stringMatching(/^getData \/a: this reply cannot be read here: /) as unknown,
    })
    await world.settle()
    expect(states).toEqual(['connected', 'suspended'])
  })

  it.each([
    ['too few results', [OpCode.delete]],
    ['too many results', [OpCode.delete, OpCode.check, OpCode.check]],
    ['a result of another kind', [OpCode.check, OpCode.delete]],
    ['no results', []],
  ])('to a multi with %s rejects its request and ends the connection', async (_what, types) => {
    const client = await open()
    const states = world.states(client)
    server.onRequest = ({ xid, connection }) =>
      connection.reply(xid, {
        body: (w) => {
          for (const type of [...types, -1]) {
            w.int(type)
            w.bool(type === -1)
            w.int(-1)
          }
        },
      })
    const multi = client.multi([
      { op: 'delete', path: '/a' },
      { op: 'check', path: '/b' },
    ])
    await expect(run(multi)).rejects.toMatchObject({ code: 'MARSHALLING_ERROR', maybeApplied: true })
    await world.settle()
    expect(states).toEqual(['connected', 'suspended'])
  })

  it('longer than maxFrameBytes ends the connection before its bytes are buffered', async () => {
    const client = await open({ maxFrameBytes: 2048 })
    server.onRequest = ({ connection }) => void connection.raw.write(Uint8Array.of(0x7f, 0xff, 0xff, 0xff))
    const read = client.getData('/a', { retry: false })
    await expect(run(read)).rejects.toMatchObject({ cause: { name: 'ProtocolError' } })
  })

  it('with THROTTLEDOP is followed by a retry after a delay', async () => {
    const client = await open()
    let times = 0
    server.onRequest = ({ xid, connection }) =>
      ++times < 4
        ? connection.reply(xid, { err: ErrorCode.THROTTLEDOP })
        : connection.reply(xid, { body: data('x') })
    const read = client.getData('/a')
    await world.advance(2000)
    expect(text((await run(read)).data)).toBe('x')
    times = -1000
    await expect(run(client.getData('/a', { retry: false }))).rejects.toThrow(ThrottledError)
  })

  it('with SESSIONMOVED is followed by a reconnect and a retry', async () => {
    const client = await open()
    let times = 0
    server.onRequest = ({ xid, connection }) =>
      ++times === 1
        ? connection.reply(xid, { err: ErrorCode.SESSIONMOVED })
        : connection.reply(xid, { body: data('x') })
    const read = client.getData('/a')
    await world.advance(2000)
    expect(text((await run(read)).data)).toBe('x')
    expect(server.connectRequests).toHaveLength(2)
  })

  it('to the last xid is followed by xid 1', async () => {
    const client = await open()
    const xids: number[] = []
    server.onRequest = ({ xid, connection }) => {
      xids.push(xid)
      connection.reply(xid, { body: data('') })
    }
    await run(client.getData('/a'))
    ;(client as ZooKeeperClient).sharedSession.dispatcher.setLastXid(0x7fff_fffe)
    for (let i = 0; i < 3; i++) await run(client.getData('/a'))
    expect(xids).toEqual([1, 0x7fff_ffff, 1, 2])
  })
})

describe('the order of replies and events', () => {
  /** Returns how a client orders one stream of bytes that arrives in chunks. */
  async function history(cut: (stream: Uint8Array) => Uint8Array[]): Promise<string[]> {
    const client = await open()
    const received: [number, string][] = []
    const requested: ScriptedRequest[] = []
    server.onRequest = (request) => {
      if (request.type === OpCode.getData) requested.push(request)
      else request.connection.reply(request.xid)
    }
    const watcher = await run(client.watch('/a', { mode: 'persistentRecursive' }))
    void (async () => {
      for await (const event of watcher) received.push([event.order, event.type])
    })()
    const reads = Array.from({ length: 3 }, async (_, i) => {
      const { data: content, order } = await client.getData('/a')
      received.push([order, `read ${i} ${text(content)}`])
    })
    await world.settle()
    const parts = [
      replyBytes(requested[0]!.xid, { zxid: 5n, body: data('v1') }),
      eventBytes(EventType.NodeDataChanged, '/a', -1n),
      replyBytes(requested[1]!.xid, { zxid: 6n, body: data('v2') }),
      eventBytes(EventType.NodeDeleted, '/a', -1n),
      eventBytes(EventType.NodeCreated, '/a/b', -1n),
      replyBytes(requested[2]!.xid, { zxid: 7n, body: data('v3') }),
    ]
    const stream = concatBytes(parts)
    for (const chunk of cut(stream)) {
      server.lastConnection.raw.write(chunk)
      await world.settle()
    }
    await run(Promise.all(reads))
    await run(client.close())
    return received.toSorted(([a], [b]) => a - b).map(([, what]) => what)
  }
  const expected = ['read 0 v1', 'nodeDataChanged', 'read 1 v2', 'nodeDeleted', 'nodeCreated', 'read 2 v3']
  const every = (size: number) => (stream: Uint8Array) =>
    Array.from({ length: Math.ceil(stream.length / size) }, (_, i) => stream.slice(i * size, (i + 1) * size))

  it('is kept when they arrive in one chunk', async () => {
    expect(await history((stream) => [stream])).toEqual(expected)
  })
  it.each([1, 2, 3, 5, 7, 16, 33, 100])('is the same in chunks of %d bytes', async (size) => {
    expect(await history(every(size))).toEqual(expected)
  })
})

describe('thousands of frames in one chunk', () => {
  it('are decoded without recursion', async () => {
    const client = await open()
    const requested: ScriptedRequest[] = []
    server.onRequest = (request) => void requested.push(request)
    const reads = Array.from({ length: 20_000 }, () => client.exists('/a'))
    await world.settle()
    const frames = requested.map(({ xid }) => replyBytes(xid, { err: ErrorCode.NONODE }))
    const stream = concatBytes(frames)
    world.network.chunkBytes = 1 << 30
    server.lastConnection.raw.write(stream)
    expect(new Set(await run(Promise.all(reads)))).toEqual(new Set([undefined]))
  })
})

describe('a read-only server', () => {
  beforeEach(() => {
    server.connectResponse = ({ readOnly }) => (readOnly ? { readOnly: true } : undefined)
  })

  it('is used only by a client with the option readOnly', async () => {
    const strict = world.connect({ servers: 's:5000' })
    strict.catch(() => {})
    await world.advance(3000)
    expect(server.connectRequests.length).toBeGreaterThan(1)
    const client = await open({ readOnly: true })
    expect(client.state).toBe('connectedReadOnly')
    expect(client.session.id).toBe(0n)
  })

  it('is left, with the session, as soon as another server is read-write', async () => {
    server.fourLetterReplies = { isro: 'ro' }
    const client = await open({ readOnly: true, servers: 's:5000,a:2181' })
    const states = world.states(client)
    // Whichever connects first, the read-write server has the client in the end.
    await world.advance(2000)
    expect(client.state).toBe('connected')
    expect(states.at(-1)).toBe('connected')
    await run(client.create('/a'))
  })

  it('is asked with isro whether it is read-write again', async () => {
    server.fourLetterReplies = { isro: 'ro' }
    const client = await open({ readOnly: true })
    await world.advance(1000)
    expect(client.state).toBe('connectedReadOnly')
    const connections = server.connections.length
    expect(connections).toBeGreaterThan(2)
    server.fourLetterReplies = { isro: 'rw' }
    server.connectResponse = () => ({})
    await world.advance(5000)
    expect(client.state).toBe('connected')
    expect(client.session.generation).toBe(2)
  })

  it('that does not support isro is tried with a handshake after three probes', async () => {
    server.fourLetterReplies = { isro: 'isro is not executed because it is not on the list' }
    const client = await open({ readOnly: true })
    server.connectResponse = () => ({})
    await world.advance(5000)
    expect(client.state).toBe('connected')
  })

  it('rejects writes, and writes with waitForReadWrite wait', async () => {
    server.fourLetterReplies = { isro: 'ro' }
    server.onRequest = ({ xid, type, connection }) =>
      type === OpCode.setData ? connection.reply(xid, { err: ErrorCode.NOTREADONLY }) : connection.reply(xid)
    const client = await open({ readOnly: true })
    await expect(run(client.setData('/a', bytes('')))).rejects.toMatchObject({
      code: 'NOT_READ_ONLY',
      retryable: true,
    })
    const waiting = client.setData('/a', bytes(''), { waitForReadWrite: true })
    await world.advance(500)
    server.fourLetterReplies = { isro: 'rw' }
    server.connectResponse = () => ({})
    server.onRequest = ({ xid, connection }) =>
      connection.reply(xid, { body: (w) => writeStat(w, { version: 4 }) })
    await world.advance(5000)
    expect((await run(waiting)).version).toBe(4)
  })

  it('does not extend the lease', async () => {
    server.fourLetterReplies = { isro: 'ro' }
    const client = await open({ readOnly: true, sessionTimeoutMs: 60_000 })
    await run(client.getChildren('/').catch(() => {}))
    await world.advance(11_000)
    expect(client.leaseHorizon).toBe(Number.NEGATIVE_INFINITY)
  })
})

describe('a SASL login', () => {
  const steps = (answers: (string | undefined)[], received: string[]): (() => SaslMechanism) => {
    return () => {
      const left = [...answers]
      return {
        name: 'TEST',
        step: async (challenge) => {
          received.push(challenge === undefined ? 'begin' : text(challenge))
          const answer = left.shift()
          return answer === undefined ? undefined : bytes(answer)
        },
      }
    }
  }

  it('runs on every connection before any request', async () => {
    const received: string[] = []
    const types: number[] = []
    server.onRequest = ({ xid, type, body, connection }) => {
      types.push(type)
      if (type !== OpCode.sasl) return connection.reply(xid, { body: data('') })
      const token = text(body.buffer()!)
      connection.reply(xid, { body: (w) => w.buffer(bytes(`re: ${token}`)) })
    }
    const client = await open({ sasl: steps(['', 'one', undefined], received) })
    await run(client.getData('/a'))
    server.lastConnection.raw.destroy()
    await world.settle()
    const read = client.getData('/a')
    await world.advance(2000)
    await run(read)
    expect(received).toEqual(['begin', 're: ', 're: one', 'begin', 're: ', 're: one'])
    expect(types).toEqual([102, 102, 4, 102, 102, 4])
  })

  it('that the server rejects closes the client', async () => {
    server.onRequest = ({ xid, connection }) => connection.reply(xid, { err: ErrorCode.AUTHFAILED })
    const refused = open({ sasl: steps(['x'], []) })
    await expect(refused).rejects.toThrow(AuthFailedError)
  })

  it('whose mechanism fails closes the client with its reason', async () => {
    const sasl = (): SaslMechanism => ({
      name: 'TEST',
      step: () => Promise.reject(new Error('the server is not who it says')),
    })
    await expect(open({ sasl })).rejects.toThrow('SASL TEST: the server is not who it says')
  })
})

describe('events', () => {
  it('of other types and without watchers are ignored', async () => {
    const client = await open()
    server.lastConnection.event(EventType.None, '')
    server.lastConnection.event(99, '/a')
    server.lastConnection.event(EventType.NodeCreated, '/nobody')
    await world.settle()
    expect(client.state).toBe('connected')
  })

  it('do not change the zxid sent to the next server', async () => {
    await open()
    server.lastConnection.event(EventType.NodeCreated, '/a', 99n)
    await world.settle()
    server.lastConnection.raw.destroy()
    await world.advance(2000)
    expect(server.connectRequests.at(-1)!.lastZxidSeen).toBe(0n)
  })

  it('of a server that cannot restore persistent watches end their streams with its error', async () => {
    const client = await open()
    const watcher = await run(client.watch('/a'))
    const events = world.collect(watcher)
    server.onRequest = ({ xid, connection }) =>
      xid === Xid.setWatches ? connection.reply(xid, { err: ErrorCode.UNIMPLEMENTED }) : connection.reply(xid)
    server.lastConnection.raw.destroy()
    await world.advance(2000)
    expect(events).toMatchObject([{ code: 'UNIMPLEMENTED' }])
  })
})
