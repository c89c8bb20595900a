// oxlint-disable-next-line no-restricted-imports -- a plain request checks what the port says to it
import { get } from 'node:http'
import { once } from 'node:events'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { WebSocket, WebSocketServer, type ClientOptions } from 'ws'
import { ManualClock } from '../manual-clock.ts'
import type { Connection, Listener } from '../network.ts'
import { httpUpgrades } from '../node/http.ts'
import { tlsNetwork } from '../node/tls.ts'
import type { WebSocketListenOptions } from '../tls.ts'
import { ConnectionProbe } from '../testing/network-compliance.ts'
import { webSocketClientNetwork } from '../web/index.ts'
import { webSocketNetwork } from './index.ts'

const listeners: Listener[] = []
const sockets: (WebSocket | Socket)[] = []
afterEach(async () => {
  for (const socket of sockets.splice(0)) {
    socket.on('error', () => {})
    if (socket instanceof WebSocket) socket.terminate()
    else socket.destroy()
  }
  for (const listener of listeners.splice(0)) await listener.close()
})

const forever = (): Promise<void> => new Promise(() => {})

async function serve(limits: WebSocketListenOptions = {}, tls?: Parameters<typeof tlsNetwork>[0]) {
  const clock = new ManualClock()
  const accepted: ConnectionProbe[] = []
  const refused: string[] = []
  let wake = (): void => {}
  const network = webSocketNetwork({
    clock,
    upgrades: httpUpgrades(tls ? { tls: tlsNetwork(tls) } : {}),
    ...limits,
  })
  const listener = await network.listen(
    { host: '127.0.0.1', port: 0 },
    (connection) => {
      accepted.push(new ConnectionProbe(connection, forever))
      wake()
    },
    (error) => refused.push(error.message),
  )
  listeners.push(listener)
  const { port } = listener.address
  return {
    clock,
    refused,
    port,
    async next(): Promise<ConnectionProbe> {
      if (accepted.length === 0) await new Promise<void>((resolve) => (wake = resolve))
      return accepted.shift()!
    },
    /** Opens a WebSocket. Resolves to `open`, or to the status with which it was refused. */
    open(path = '/', options: ClientOptions = {}): Promise<{ socket: WebSocket; outcome: string }> {
      const socket = new WebSocket(`${tls ? 'wss' : 'ws'}://127.0.0.1:${port}${path}`, options)
      sockets.push(socket)
      return new Promise((resolve) => {
        socket.once('open', () => resolve({ socket, outcome: 'open' }))
        socket.once('error', (error) => resolve({ socket, outcome: error.message }))
      })
    },
  }
}

/** Returns a frame of a client, with a mask of zeros. `type`: 0x80 for the last fragment, and the op code. */
const frame = (type: number, payload: ArrayLike<number>): Buffer =>
  Buffer.from([type, 0x80 | payload.length, 0, 0, 0, 0, ...Array.from(payload)])

/** Resolves to a socket on which a WebSocket is open. */
function rawWebSocket(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    sockets.push(socket)
    socket.on('error', reject)
    socket.once('data', () => resolve(socket))
    const key = Buffer.alloc(16).toString('base64')
    socket.write(
      `GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n\r\n`,
    )
  })
}

const closing = (socket: WebSocket): Promise<number> =>
  new Promise((resolve) => socket.once('close', resolve))

describe('a WebSocket listener', () => {
  it('accepts pages of its own host and clients without an origin', async () => {
    const server = await serve()
    const own = 'https://127.0.0.1:8443'
    expect((await server.open('/any?x=1')).outcome).toBe('open')
    expect((await server.open('/', { origin: own })).outcome).toBe('open')
    for (const origin of ['http://evil.example', 'null', 'http://127.0.0.1.evil.example', 'http://localhost'])
      expect((await server.open('/', { origin })).outcome).toBe('Unexpected server response: 403')
    expect(server.refused[0]).toMatch(/comes from a page of "http:\/\/evil\.example"/)
  })

  it('without origins accepts pages only where Host is localhost, an address or the configured name', async () => {
    const server = await serve({ hostName: 'zk.example' })
    const open = async (host: string, origin = `http://${host}`): Promise<string> =>
      (await server.open('/', { origin, headers: { host } })).outcome
    for (const host of ['localhost:9', '127.0.0.1:9', '[::1]:9', '10.1.2.3', 'zk.example:2184', 'ZK.example'])
      expect([host, await open(host)]).toEqual([host, 'open'])
    // A name that an attacker owns can be pointed at any address, and is then the origin and the host alike.
    for (const host of [
      'evil.example',
      'evil.example:2184',
      'localhost.evil.example',
      '127.0.0.1.evil.example',
    ])
      expect([host, await open(host)]).toEqual([host, 'Unexpected server response: 403'])
    expect(server.refused[0]).toContain('webSocketOrigins')
    expect((await server.open('/', { headers: { host: 'evil.example' } })).outcome).toBe('open')
  })

  it('accepts the configured origins, and all with *', async () => {
    const server = await serve({ origins: ['https://app.example/', 'https://b.example'] })
    expect((await server.open('/', { origin: 'https://App.example' })).outcome).toBe('open')
    expect((await server.open('/', { origin: `http://127.0.0.1:${server.port}` })).outcome).toMatch(/403/)
    const open = await serve({ origins: ['*'] })
    expect((await open.open('/', { origin: 'http://evil.example' })).outcome).toBe('open')
  })

  it('accepts only the configured path', async () => {
    const server = await serve({ path: '/zabra' })
    expect((await server.open('/zabra?token=x')).outcome).toBe('open')
    expect((await server.open('/other')).outcome).toBe('Unexpected server response: 404')
  })

  it('closes connections that send a message that is too long, or text', async () => {
    const server = await serve({ maxMessageBytes: 1000 })
    const { socket } = await server.open()
    const long = await server.next()
    socket.send(new Uint8Array(1000))
    await long.until(() => long.length === 1000)
    socket.send(new Uint8Array(1001))
    expect(await closing(socket)).toBe(1009)
    await long.until(() => long.closed !== undefined)
    expect(long.closed?.cause?.message).toMatch(/[Mm]ax payload size exceeded/)
    const { socket: texting } = await server.open()
    const text = await server.next()
    texting.send('ruok')
    expect(await closing(texting)).toBe(1003)
    await text.until(() => text.closed !== undefined)
    expect(text.closed?.cause?.message).toMatch(/only binary messages are read/)
  })

  describe('counts what a peer makes it hold:', () => {
    it('fragments of an incomplete message, until it is complete', async () => {
      const server = await serve()
      const { socket } = await server.open()
      const probe = await server.next()
      const held = (): number => probe.connection.heldBytes ?? 0
      socket.send(new Uint8Array(50_000), { fin: false })
      await probe.until(() => held() >= 50_000)
      expect(probe.length).toBe(0)
      for (let i = 0; i < 200; i++) socket.send(Uint8Array.of(1), { fin: false })
      await probe.until(() => held() >= 50_000 + 200 * 150)
      socket.send(Uint8Array.of(1))
      await probe.until(() => probe.length === 50_201)
      socket.send(new Uint8Array(40_000))
      await probe.until(() => probe.length === 90_201)
      await probe.until(() => held() === 0)
    })

    it('a message with more fragments than one for each 4 KiB closes its connection', async () => {
      const server = await serve({ maxMessageBytes: 2 ** 20 })
      const { socket } = await server.open()
      const probe = await server.next()
      for (let i = 0; i < 300; i++) socket.send(Uint8Array.of(1), { fin: false })
      expect(await closing(socket)).toBe(1008)
      await probe.until(() => probe.closed !== undefined)
      expect(probe.closed?.cause?.message).toMatch(/Too many message fragments/)
    })

    it('nothing that comes after a message with too many fragments, since it is dropped', async () => {
      const server = await serve()
      const raw = await rawWebSocket(server.port)
      const probe = await server.next()
      raw.write(Buffer.concat([frame(0x02, [1]), Buffer.alloc(7 * 20_000, frame(0x00, [1]))]))
      await probe.until(() => probe.closed !== undefined)
      expect(probe.closed?.cause?.message).toMatch(/Too many message fragments/)
      expect(probe.connection.heldBytes).toBeLessThan(100_000)
    })

    it('tiny messages that come while it is paused', async () => {
      const server = await serve()
      const raw = await rawWebSocket(server.port)
      const probe = await server.next()
      probe.onData = () => probe.connection.pause()
      const messages = 9000
      raw.write(Buffer.concat(Array.from({ length: messages }, (_, i) => frame(0x82, [i & 255]))))
      await probe.until(() => probe.length > 0)
      while (probe.length < messages) {
        expect(probe.connection.heldBytes).toBeLessThan(140_000)
        probe.connection.resume()
        await server.clock.untilIdle()
        await new Promise((resolve) => setImmediate(resolve))
      }
      expect([...probe.bytes]).toEqual(Array.from({ length: messages }, (_, i) => i & 255))
    })

    it('answers to pings: to none while the peer does not read those to earlier ones', async () => {
      const server = await serve()
      const raw = await rawWebSocket(server.port)
      const probe = await server.next()
      raw.pause()
      const pings = Buffer.concat(Array.from({ length: 1000 }, () => frame(0x89, new Uint8Array(125))))
      for (let i = 0; i < 120; i++) raw.write(pings)
      raw.write(frame(0x82, [7]))
      await probe.until(() => probe.length === 1)
      expect(probe.connection.bufferedBytes).toBeLessThan(200_000)
      raw.destroy()
    })
  })

  it('answers the last one of the pings that arrive together', async () => {
    const server = await serve()
    const raw = await rawWebSocket(server.port)
    let answers = Buffer.alloc(0)
    const whole = new Promise<void>((resolve) =>
      raw.on('data', (chunk) => {
        answers = Buffer.concat([answers, chunk])
        if (answers.at(-1) === 201) resolve()
      }),
    )
    raw.write(Buffer.concat(Array.from({ length: 5000 }, (_, i) => frame(0x89, [i === 4999 ? 201 : 7]))))
    await whole
    expect(answers.length).toBeLessThan(100 * 3)
  })

  it('carries a stream regardless of message boundaries', async () => {
    const server = await serve()
    const { socket } = await server.open()
    const probe = await server.next()
    for (const part of [[1], [], [2, 3], [4]]) socket.send(Uint8Array.from(part))
    await probe.until(() => probe.length === 4)
    expect([...probe.bytes]).toEqual([1, 2, 3, 4])
  })

  it('pings, keeps peers that answer, and disconnects a peer that does not', async () => {
    const server = await serve({ pingIntervalMs: 30_000 })
    const { socket: lively } = await server.open()
    const kept = await server.next()
    const { socket: dead } = await server.open('/', { autoPong: false })
    const cut = await server.next()
    const pinged = Promise.all(
      [lively, dead].map((socket) => new Promise((resolve) => socket.once('ping', resolve))),
    )
    server.clock.advance(30_000)
    await pinged
    lively.send(Uint8Array.of(1))
    await kept.until(() => kept.length === 1)
    server.clock.advance(30_000)
    await cut.until(() => cut.closed !== undefined)
    expect(cut.closed?.cause).toMatchObject({ code: 'ETIMEDOUT' })
    expect(kept.closed).toBeUndefined()
  })

  it('does not disconnect a silent peer while reading is paused', async () => {
    const server = await serve({ pingIntervalMs: 30_000 })
    const { socket } = await server.open('/', { autoPong: false })
    const probe = await server.next()
    probe.connection.pause()
    server.clock.advance(90_000)
    probe.connection.resume()
    socket.send(Uint8Array.of(1))
    await probe.until(() => probe.length === 1)
  })

  it.each([
    ['the closing frame', [frame(0x88, [3, 232])], false],
    ['the end of the connection', [], true],
    ['both', [frame(0x88, [3, 232])], true],
  ])('delivers what arrived before %s, and then the end, after a pause', async (_, last, isEnd) => {
    const server = await serve()
    const raw = await rawWebSocket(server.port)
    const probe = await server.next()
    probe.onData = () => probe.connection.pause()
    const messages = 1200
    raw.write(Buffer.concat([...Array.from({ length: messages }, (_, i) => frame(0x82, [i & 255])), ...last]))
    if (isEnd) raw.end()
    await probe.until(() => probe.length > 0)
    while (probe.length < messages || probe.closed === undefined) {
      for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve))
      expect(probe.closed !== undefined && probe.length < messages).toBe(false)
      probe.connection.resume()
      await server.clock.untilIdle()
    }
    expect([...probe.bytes]).toEqual(Array.from({ length: messages }, (_, i) => i & 255))
  })

  it('that has ended while reading is paused is closed when its owner destroys it', async () => {
    const server = await serve()
    const raw = await rawWebSocket(server.port)
    const probe = await server.next()
    probe.onData = () => probe.connection.pause()
    raw.resume().end(Buffer.concat([frame(0x82, [1]), frame(0x82, [2]), frame(0x88, [3, 232])]))
    await once(raw, 'close')
    for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve))
    expect([probe.length, probe.closed]).toEqual([1, undefined])
    probe.connection.destroy()
    await server.clock.untilIdle()
    expect([probe.length, probe.closed, probe.faults]).toEqual([1, { cause: undefined }, []])
  })

  it('has the identity of a TLS client', async () => {
    const path = (name: string): string => new URL(`../testdata/tls/${name}`, import.meta.url).pathname
    const server = await serve(
      {},
      {
        keyStore: { path: path('server.pem') },
        trustStore: { path: path('authority.pem') },
        clientAuth: 'need',
      },
    )
    const { readFileSync } = await import('node:fs')
    const [pem, ca] = ['alice.pem', 'authority.pem'].map((name) => readFileSync(path(name)))
    expect((await server.open('/', { ca: ca!, cert: pem!, key: pem! })).outcome).toBe('open')
    const { connection } = await server.next()
    expect(connection).toMatchObject({ isSecure: true, transport: 'webSocket' } satisfies Partial<Connection>)
    expect(connection.peer?.subject).toMatch(/^CN=alice,/)
    expect(connection.tls?.version).toBe('TLSv1.3')
  })

  it('answers a plain HTTP request with 426', async () => {
    const { port } = await serve()
    const status = await new Promise((resolve) =>
      get({ port, host: '127.0.0.1' }, (response) => {
        response.resume()
        resolve(response.statusCode)
      }),
    )
    expect(status).toBe(426)
  })

  it('requires a source of upgrades', async () => {
    const network = webSocketNetwork({ clock: new ManualClock() })
    await expect(network.listen({ port: 0 }, () => {})).rejects.toMatchObject({ code: 'ENOTSUP' })
  })
})

describe('a client over a WebSocket', () => {
  it('reads what its server sends in slices of 2 KiB, and answers the last ping of each', async () => {
    const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
    await once(server, 'listening')
    const connected = once(server, 'connection') as Promise<[WebSocket, { socket: Socket }]>
    const network = webSocketNetwork({ clock: new ManualClock() })
    const { port } = server.address() as AddressInfo
    const connection = await network.connect({ host: '127.0.0.1', port })
    const [webSocket, { socket }] = await connected
    let pongs = 0
    webSocket.on('pong', () => pongs++)
    const probe = new ConnectionProbe(connection, forever)
    const pings = 5000
    socket.write(Buffer.concat([Buffer.alloc(2 * pings, Buffer.of(0x89, 0)), Buffer.of(0x82, 1, 7)]))
    await probe.until(() => probe.length === 1)
    connection.write(Uint8Array.of(8))
    await once(webSocket, 'message')
    expect(pongs).toBeGreaterThan(0)
    expect(pongs).toBeLessThanOrEqual(Math.ceil((2 * pings + 3) / 2048) + 1)
    connection.destroy()
    server.close()
  })
})

describe('webSocketClientNetwork', () => {
  it('cannot listen, and rejects where the platform has no WebSocket', async () => {
    const network = webSocketClientNetwork({ WebSocket: undefined })
    await expect(network.listen({ port: 0 }, () => {})).rejects.toMatchObject({ code: 'ENOTSUP' })
    if ('WebSocket' in globalThis) return
    await expect(network.connect({ host: '127.0.0.1', port: 1 })).rejects.toThrow(/has no WebSocket/)
  })

  it('connects to the path of a URL', async () => {
    const server = await serve({ path: '/zabra' })
    const network = webSocketClientNetwork({ WebSocket: WebSocket as never })
    const to = { host: '127.0.0.1', port: server.port, url: `ws://127.0.0.1:${server.port}/zabra` }
    const probe = new ConnectionProbe(await network.connect(to), forever)
    ;(await server.next()).connection.write(Uint8Array.of(1))
    await probe.until(() => probe.length === 1)
    probe.connection.destroy()
    await expect(network.connect({ ...to, url: `${to.url}/no` })).rejects.toMatchObject({
      code: 'ECONNREFUSED',
    })
  })
})
