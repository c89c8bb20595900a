import { ErrorCode, EventType, OpCode, readMultiRequest, type Writer } from '@zabra/protocol'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ClosedError, SessionExpiredError, SessionMovedError, ThrottledError } from '../errors.ts'
import {
  eventBytes,
  replyBytes,
  ScriptedServer,
  writeStat,
  type ScriptedRequest,
} from '../testing/scripted-server.ts'
import { run, setupEachTest, world } from '../testing/setup.ts'
import { bytes, text } from '../testing/manual-world.ts'
import type { ConnectOptions } from '../connect.ts'
import type { Client } from '../client-api.ts'

setupEachTest()
let server: ScriptedServer
/** The op codes that the server received, in order. */
let requested: string[]
/** The reply to a multiRead that replaces the real one. */
let overrideReply: ((request: ScriptedRequest, paths: string[]) => void) | undefined

beforeEach(async () => {
  server = await ScriptedServer.start(world, 5000)
  requested = []
  overrideReply = undefined
  server.onRequest = (request) => {
    const { xid, type, body, connection } = request
    if (type === OpCode.multiRead) {
      const paths = readMultiRequest(body).map(({ path }) => path!)
      requested.push(paths.join(' '))
      if (overrideReply !== undefined) return overrideReply(request, paths)
      return connection.reply(xid, { body: (w) => writeParts(w, paths) })
    }
    const path = body.remaining > 4 ? body.string()! : ''
    requested.push(type === OpCode.getData ? path : `${type} ${path}`)
    connection.reply(xid, path === '/none' ? { err: ErrorCode.NONODE } : { body: (w) => writeData(w, path) })
  }
})
afterEach(() => server.stop())

const open = (options: Partial<ConnectOptions> = {}): Promise<Client> =>
  world.client({ servers: 's:5000', batchReads: true, ...options })

function writeHeader(w: Writer, type: number, done = false, err = 0): void {
  w.int(type)
  w.bool(done)
  w.int(err)
}

function writeData(w: Writer, path: string): void {
  w.buffer(bytes(path))
  writeStat(w)
}

/** Returns a result for each path, an error for `/none`. */
function writeParts(w: Writer, paths: readonly string[], end = true): void {
  for (const path of paths) {
    const missing = path === '/none'
    writeHeader(w, missing ? OpCode.error : OpCode.getData, false, missing ? ErrorCode.NONODE : 0)
    if (missing) w.int(ErrorCode.NONODE)
    else writeData(w, path)
  }
  if (end) writeHeader(w, -1, true, -1)
}

/** Describes the outcomes of calls as text. */
const outcomes = async (calls: Promise<{ data: Uint8Array }>[], ms = 10_000): Promise<string[]> =>
  (await world.within(ms, Promise.allSettled(calls))).map((one) =>
    one.status === 'fulfilled' ? text(one.value.data) : (one.reason as { code: string }).code,
  )

const three = ['/1', '/none', '/3']
const get = (client: Client, paths: readonly string[], options = {}): Promise<{ data: Uint8Array }>[] =>
  paths.map((path) => client.getData(path, options))

describe('a reply to a batch', () => {
  it.each([
    ['fewer results', (w: Writer, paths: string[]) => writeParts(w, paths.slice(1))],
    ['more results', (w: Writer, paths: string[]) => writeParts(w, [...paths, '/4'])],
    ['no end', (w: Writer, paths: string[]) => writeParts(w, paths, false)],
    ['no parts', () => {}],
    ['a part of another type', (w: Writer) => writeHeader(w, OpCode.getChildren)],
    [
      'an error part with code 0',
      (w: Writer, paths: string[]) => {
        writeHeader(w, OpCode.error)
        w.int(0)
        writeParts(w, paths.slice(1))
      },
    ],
    [
      'half a Stat',
      (w: Writer, paths: string[]) => {
        writeParts(w, paths.slice(1), false)
        writeHeader(w, OpCode.getData)
        w.buffer(bytes('x'))
        w.int(1)
      },
    ],
  ])('that has %s settles no read: the reads are sent again one by one', async (_, body) => {
    const client = await open()
    overrideReply = ({ xid, connection }, paths) => connection.reply(xid, { body: (w) => body(w, paths) })
    expect(await outcomes(get(client, three, { retry: false }))).toEqual(['/1', 'NO_NODE', '/3'])
    expect(requested).toEqual(['/1 /none /3', ...three])
  })

  it('with an unimplemented error makes the session send its reads one by one, in their order', async () => {
    const client = await open()
    const changes = world.collect(client.states())
    overrideReply = ({ xid, connection }) => {
      connection.reply(xid, { err: ErrorCode.UNIMPLEMENTED })
      connection.raw.end()
    }
    const calls = get(client, three, { retry: false })
    const behind = client.exists('/4')
    expect(await outcomes(calls)).toEqual(['/1', 'NO_NODE', '/3'])
    await run(behind)
    expect(requested.slice(1).filter((word) => word !== '3 /4')).toEqual(three)
    expect(requested.at(-1)).toBe('3 /4')
    expect(changes.map(({ state }) => state)).toEqual(['connected', 'suspended', 'connected'])
    expect(String(changes[1]!.cause)).toContain('are sent one by one from now on')
    requested.length = 0
    expect(await outcomes(get(client, three))).toEqual(['/1', 'NO_NODE', '/3'])
    expect(requested).toEqual(three)
  })

  it('with an unimplemented error allows batches again in the next session', async () => {
    const client = await open()
    overrideReply = ({ xid, connection }) => connection.reply(xid, { err: ErrorCode.UNIMPLEMENTED })
    await outcomes(get(client, three))
    overrideReply = undefined
    server.connectResponse = ({ sessionId }) => (sessionId === 0n ? {} : { timeOut: 0 })
    server.lastConnection.raw.destroy()
    await world.advance(5000)
    expect(client.session.generation).toBe(2)
    requested.length = 0
    await outcomes(get(client, three))
    expect(requested).toEqual(['/1 /none /3'])
  })

  it('that is malformed is not followed by a retry of reads without a waiting caller', async () => {
    const client = await open()
    const gone = new AbortController()
    overrideReply = ({ xid, connection }) => {
      gone.abort()
      connection.reply(xid)
    }
    const calls = [client.getData('/1', { signal: gone.signal }), ...get(client, ['/2', '/3'])]
    expect(await outcomes(calls)).toEqual(['ABORTED', '/2', '/3'])
    expect(requested).toEqual(['/1 /2 /3', '/2', '/3'])
  })

  it.each([ErrorCode.MARSHALLINGERROR, ErrorCode.NONODE, -777])(
    'with error %d for the whole batch is followed by its reads one by one',
    async (err) => {
      const client = await open()
      overrideReply = ({ xid, connection }) => connection.reply(xid, { err })
      expect(await outcomes(get(client, ['/1', '/2'], { retry: false }))).toEqual(['/1', '/2'])
      expect(requested).toEqual(['/1 /2', '/1', '/2'])
    },
  )

  it('with THROTTLEDOP retries each read by its own policy', async () => {
    const client = await open()
    overrideReply = ({ xid, connection }) => connection.reply(xid, { err: ErrorCode.THROTTLEDOP })
    const withRetries = client.getData('/1')
    const once = client.getData('/2', { retry: false })
    await expect(run(once)).rejects.toThrow(ThrottledError)
    await world.within(1000, withRetries)
    expect(requested).toEqual(['/1 /2', '/1'])
    expect(client.state).toBe('connected')
  })

  it('with SESSIONMOVED reconnects the client, and rejects the reads without retries', async () => {
    const client = await open()
    overrideReply = ({ xid, connection }) => connection.reply(xid, { err: ErrorCode.SESSIONMOVED })
    const once = client.getData('/1', { retry: false })
    const calls = get(client, ['/2', '/3'])
    await expect(run(once)).rejects.toThrow(SessionMovedError)
    expect(await outcomes(calls)).toEqual(['/2', '/3'])
    expect(server.connectRequests.length).toBe(2)
    requested.length = 0
    overrideReply = undefined
    await outcomes(get(client, ['/2', '/3']))
    expect(requested).toEqual(['/2 /3'])
  })

  it('with SESSIONEXPIRED rejects each read', async () => {
    const client = await open()
    overrideReply = ({ xid, connection }) => connection.reply(xid, { err: ErrorCode.SESSIONEXPIRED })
    for (const call of get(client, ['/1', '/2'])) await expect(run(call)).rejects.toThrow(SessionExpiredError)
  })
})

describe('a connection that breaks before the reply to a batch', () => {
  it('makes its reads go out one by one, and later reads in batches', async () => {
    const client = await open()
    overrideReply = ({ connection }) => connection.raw.destroy()
    expect(await outcomes(get(client, three))).toEqual(['/1', 'NO_NODE', '/3'])
    expect(requested).toEqual(['/1 /none /3', ...three])
    overrideReply = undefined
    requested.length = 0
    await outcomes(get(client, three))
    expect(requested).toEqual(['/1 /none /3'])
  })

  it.each([
    ['breaks the connection', ({ connection }: ScriptedRequest) => connection.raw.destroy()],
    ['sends a malformed reply', ({ connection, xid }: ScriptedRequest) => connection.reply(xid)],
  ])('three times in a row, when the server %s, disables batches in this session', async (_, fault) => {
    const client = await open()
    overrideReply = fault
    for (let turn = 0; turn < 6; turn++)
      expect(await outcomes(get(client, ['/1', '/2']))).toEqual(['/1', '/2'])
    expect(requested.filter((word) => word === '/1 /2').length).toBe(3)
    expect(server.connectRequests.length).toBe(4)
  })

  it('does not disable batches when it happens occasionally', async () => {
    const client = await open()
    for (let turn = 0; turn < 10; turn++) {
      overrideReply = turn % 3 === 2 ? undefined : ({ connection }) => connection.raw.destroy()
      expect(await outcomes(get(client, ['/1', '/2']))).toEqual(['/1', '/2'])
    }
    expect(requested.filter((word) => word === '/1 /2').length).toBe(10)
  })

  it('rejects the reads without retries', async () => {
    const client = await open()
    overrideReply = ({ connection }) => connection.raw.destroy()
    const [once, again] = [client.getData('/1', { retry: false }), client.getData('/2')]
    await expect(world.within(5000, once)).rejects.toMatchObject({
      code: 'CONNECTION_LOSS',
      maybeApplied: false,
      path: '/1',
    })
    expect(text((await world.within(5000, again)).data)).toBe('/2')
  })
})

describe('the reads of a batch', () => {
  it('may be aborted or time out one by one', async () => {
    const client = await open()
    let late: (() => void) | undefined
    overrideReply = ({ xid, connection }, paths) =>
      void (late = () => connection.reply(xid, { body: (w) => writeParts(w, paths) }))
    const [before, during] = [new AbortController(), new AbortController()]
    const calls = [
      client.getData('/1', { signal: before.signal }),
      client.getData('/2'),
      client.getData('/3', { signal: during.signal }),
      client.getData('/4', { timeoutMs: 100 }),
      client.getData('/5'),
    ]
    before.abort()
    await world.settle()
    during.abort()
    await world.advance(200)
    late!()
    expect(await outcomes(calls)).toEqual(['ABORTED', '/2', 'ABORTED', 'OPERATION_TIMEOUT', '/5'])
    expect(requested).toEqual(['/1 /2 /3 /4 /5'])
  })

  it('are not sent again without a waiting caller', async () => {
    const client = await open()
    overrideReply = () => {}
    const { signal, abort } = ((c) => ({ signal: c.signal, abort: () => c.abort() }))(new AbortController())
    const calls = [client.getData('/1', { signal }), client.getData('/2')]
    await world.settle()
    abort()
    server.lastConnection.raw.destroy()
    expect(await outcomes(calls)).toEqual(['ABORTED', '/2'])
    expect(requested).toEqual(['/1 /2', '/2'])
  })

  it('are all rejected when the client closes before the reply', async () => {
    const client = await open()
    overrideReply = () => {}
    const calls = get(client, ['/1', '/2'])
    await world.settle()
    server.onRequest = ({ connection }) => connection.raw.destroy()
    const closed = client.close()
    for (const call of calls) await expect(world.within(5000, call)).rejects.toThrow(ClosedError)
    await closed
  })

  it('are all rejected when their session expires', async () => {
    const client = await open()
    overrideReply = () => {}
    const calls = get(client, ['/1', '/2'])
    await world.settle()
    server.connectResponse = () => ({ timeOut: 0 })
    server.lastConnection.raw.destroy()
    for (const call of calls) await expect(world.within(5000, call)).rejects.toThrow(SessionExpiredError)
    server.connectResponse = () => ({})
  })

  it('are rejected one by one when the callback of the first closes the client', async () => {
    const client = await open({
      instrumentation: {
        request: ({ path }) => (path === '/1' ? () => controller.abort() : undefined),
      },
    })
    const controller = new AbortController()
    const detached = new Promise<void>((resolve) => {
      controller.signal.addEventListener('abort', () => void client.detach().then(() => resolve()))
    })
    expect(await outcomes(get(client, ['/1', '/2', '/3']))).toEqual(['/1', 'CLOSED', 'CLOSED'])
    await detached
  })

  it('have one instrumentation end each, with their share of the bytes', async () => {
    const received: string[] = []
    let sent = 0
    const client = await open({
      instrumentation: {
        request: ({ operation, path }) => {
          received.push(`${operation} ${path}`)
          return (end) => {
            sent += end.requestBytes
            received.push(`${path} ${end.error?.code ?? 'ok'} ${end.replyBytes} ${end.zxid}`)
          }
        },
      },
    })
    let left = 0
    world.faults.toServer = (chunk) => {
      left += chunk.length
      return chunk
    }
    overrideReply = ({ xid, connection }, paths) =>
      connection.reply(xid, { zxid: 77n, body: (w) => writeParts(w, paths) })
    await outcomes(get(client, three))
    expect(received).toEqual([
      'getData /1',
      'getData /none',
      'getData /3',
      `/1 ok ${9 + 4 + 2 + 68} 77`,
      '/none NO_NODE 0 undefined',
      `/3 ok ${9 + 4 + 2 + 68} 77`,
    ])
    expect(sent).toBe(left)
  })

  it.each([1, 2, 3, 5, 7, 16, 33, 100, 10_000])(
    'are ordered among events, in chunks of %d bytes',
    async (size) => {
      const client = await open()
      const watcher = await run(client.watch('/'))
      const events = world.collect(watcher)
      let xid = 0
      overrideReply = (request) => void (xid = request.xid)
      const calls = ['/1', '/none', '/3', '/4'].map((path) =>
        client.getData(path).catch(() => ({ order: -1 })),
      )
      await world.settle()
      const stream = [
        eventBytes(EventType.NodeDataChanged, '/', 5n),
        replyBytes(xid, { zxid: 6n, body: (w) => writeParts(w, ['/1', '/none', '/3', '/4']) }),
        eventBytes(EventType.NodeDataChanged, '/', 7n),
      ].flatMap((part) => [...part])
      for (let at = 0; at < stream.length; at += size) {
        server.lastConnection.raw.write(Uint8Array.from(stream.slice(at, at + size)))
        await world.settle()
      }
      const [one, , threeth, four] = (await run(Promise.all(calls))).map(({ order }) => order)
      const orders = [events[0]!.order, one!, threeth!, four!, events[1]!.order]
      expect(orders).toEqual([...new Set(orders)].toSorted((a, b) => a - b))
    },
  )
})
