import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect as connectPlain, createServer, type AddressInfo, type Socket } from 'node:net'
import { Duplex } from 'node:stream'
import {
  connect as connectTls,
  createServer as createTlsServer,
  type ConnectionOptions,
  type TLSSocket,
} from 'node:tls'
import { afterEach, describe, expect, it, vi } from 'vitest'
import type { Connection } from '../network.ts'
import type { TlsOptions } from '../tls.ts'
import { chainOf, linkOf, pemOf, type ChainLink } from './testing/client-chains.ts'
import { echoPort } from './testing/echo-port.ts'
import { CertificateGuard } from './guarded-socket.ts'
import { tlsNetwork } from './tls.ts'

const path = (name: string): string => new URL(`../testdata/tls/${name}`, import.meta.url).pathname
const store = (name: string) => ({ path: path(name) })
const pem = (name: string): Buffer => readFileSync(path(name))

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

/** Opens a port that asks for certificates and echoes. */
async function serve(options: Partial<TlsOptions> = {}) {
  const network = tlsNetwork({
    keyStore: store('server.pem'),
    trustStore: store('authority.pem'),
    clientAuth: 'need',
    ...options,
  })
  const port = await echoPort(network)
  closing.push(() => port.listener.close())
  return { network, ...port }
}

/** Connects a client that trusts the server. */
function dial(port: number, options: ConnectionOptions): TLSSocket {
  const socket = connectTls({
    port,
    host: '127.0.0.1',
    ca: pem('authority.pem'),
    checkServerIdentity: () => undefined,
    ...options,
  })
  socket.on('error', () => {})
  closing.push(() => socket.destroy())
  return socket
}

/** The options of a server that asks for certificates. */
const asking = {
  key: pem('server.pem'),
  cert: pem('server.pem'),
  ca: pem('authority.pem'),
  requestCert: true,
}
const alice: ConnectionOptions = { key: pem('alice.pem'), cert: pem('alice.pem') }
const leaf = linkOf('prime256v1')

/** The options of a client that shows a chain of its own. */
const showing = (...above: readonly ChainLink[]): ConnectionOptions => ({
  key: leaf.privateKey!.export({ type: 'pkcs8', format: 'pem' }),
  cert: pemOf(chainOf([leaf, ...above])),
})
const long = showing(...Array.from({ length: 8 }, () => leaf))
const TOO_LONG = /\(EPROTO\): it has shown more than 8 certificates, where one on P-521 counts as 2$/

async function echoed(socket: TLSSocket, text: string): Promise<string> {
  socket.write(text)
  let received = ''
  while (received.length < text.length) received += String(((await once(socket, 'data')) as [Buffer])[0])
  return received
}

const VERSIONS = ['TLSv1.2', 'TLSv1.3'] as const
const atVersion = (version: (typeof VERSIONS)[number]) => ({ minVersion: version, maxVersion: version })

describe.each(VERSIONS)('a chain of certificates over %s', (version) => {
  it.each(['need', 'want'] as const)(
    'of a hundred on P-521 is refused before it is verified, where they are %sed',
    async (clientAuth) => {
      const { publicKey } = linkOf('secp521r1')
      const server = await serve({ clientAuth })
      const options = showing(...Array.from({ length: 99 }, () => ({ publicKey })))
      const socket = dial(server.port, { ...options, ...atVersion(version) })
      expect(await server.next()).toMatch(
        /\(EPROTO\): it has shown certificates of \d+ bytes, and 32768 is the limit$/,
      )
      await new Promise((resolve) => (socket.closed ? resolve(undefined) : socket.once('close', resolve)))
    },
  )

  it('of nine is refused with its address before it is verified, and one of eight is verified', async () => {
    const server = await serve()
    const socket = dial(server.port, { ...long, ...atVersion(version) })
    await once(socket, 'connect')
    const { localPort } = socket
    const reason = await server.next()
    expect(reason).toMatch(TOO_LONG)
    expect(reason).toContain(`127.0.0.1:${localPort}`)
    dial(server.port, { ...showing(...Array.from({ length: 7 }, () => leaf)), ...atVersion(version) })
    expect(await server.next()).toMatch(/127\.0\.0\.1:\d+ failed \(\w+\): its certificate is not trusted/)
  })

  it('that is trusted is accepted, with the addresses of both ends', async () => {
    const server = await serve()
    const socket = dial(server.port, { ...alice, ...atVersion(version) })
    await once(socket, 'secureConnect')
    const accepted = (await server.next()) as Connection
    expect(accepted.remote).toEqual({ host: '127.0.0.1', port: socket.localPort })
    expect(accepted.local).toEqual({ host: '127.0.0.1', port: server.port })
    expect(accepted.tls).toMatchObject({ version })
    expect(accepted.peer?.subject).toMatch('CN=alice')
    const text = 'x'.repeat(3_000_000)
    expect(await echoed(socket, text)).toBe(text)
  })

  it('that is empty is accepted where certificates are wanted', async () => {
    const server = await serve({ clientAuth: 'want' })
    expect(await echoed(dial(server.port, atVersion(version)), 'x')).toBe('x')
    expect(await server.next()).toMatchObject({ peer: undefined })
  })

  it('that arrives in records of 512 bytes is judged', async () => {
    const server = await serve()
    for (const [options, outcome] of [
      [long, expect.stringMatching(TOO_LONG)],
      [alice, expect.objectContaining({ transport: 'tls' })],
    ] as const) {
      const socket = dial(server.port, { ...options, ...atVersion(version) })
      expect(socket.setMaxSendFragment(512)).toBe(true)
      expect(await server.next()).toEqual(outcome)
    }
  })

  it('is judged again when a client resumes its session', async () => {
    const server = await serve({ clientAuth: 'want' })
    const first = dial(server.port, atVersion(version))
    let session: Buffer | undefined
    first.on('session', (issued) => (session = issued))
    await echoed(first, 'x')
    await server.next()
    dial(server.port, { ...long, ...atVersion(version), session: session ?? first.getSession() })
    expect(await server.next()).toMatch(TOO_LONG)
  })

  it('that an address shows which was trusted is verified once, and judged from then on', async () => {
    const server = await serve()
    await once(dial(server.port, { ...alice, ...atVersion(version) }), 'secureConnect')
    await server.next()
    const chain = showing(...Array.from({ length: 30 }, () => leaf))
    dial(server.port, { ...chain, ...atVersion(version) })
    expect(await server.next()).toMatch('its certificate is not trusted')
    dial(server.port, { ...chain, ...atVersion(version) })
    expect(await server.next()).toMatch(TOO_LONG)
  })
})

/** Forwards a connection to a port, with what the client sends changed. */
async function through(port: number, change: (bytes: Buffer, to: Socket) => void): Promise<number> {
  const server = createServer({ noDelay: true }, (socket) => {
    const target = connectPlain({ port, host: '127.0.0.1', noDelay: true }).on('error', () => {})
    socket.on('error', () => {}).on('close', () => target.destroy())
    socket.on('data', (bytes: Buffer) => change(bytes, target))
    target.on('data', (bytes: Buffer) => socket.write(bytes)).on('close', () => socket.destroy())
  }).listen(0, '127.0.0.1')
  closing.push(() => server.close())
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

it('a chain of a client that was asked for a second ClientHello is judged', async () => {
  const server = await serve()
  const hellos: Buffer[] = []
  const port = await through(server.port, (bytes, to) => {
    // Behind the message of middleboxes, a record of one byte.
    const at = bytes[0] === 0x14 ? 6 : 0
    if (bytes[at] === 0x16) hellos.push(bytes)
    to.write(bytes)
  })
  const options = { ecdhCurve: 'ffdhe2048:P-256', minVersion: 'TLSv1.3' } as const
  dial(port, { ...long, ...options })
  expect(await server.next()).toMatch(TOO_LONG)
  expect(await echoed(dial(port, { ...alice, ...options }), 'x')).toBe('x')
  expect(hellos).toHaveLength(4)
})

it('a record that cannot be decrypted is refused', async () => {
  const server = await serve()
  const port = await through(server.port, (bytes, to) => {
    if (bytes[0] !== 0x16) bytes[bytes.length - 1]! ^= 1
    to.write(bytes)
  })
  dial(port, { ...alice, minVersion: 'TLSv1.3' })
  expect(await server.next()).toMatch(/\(EPROTO\): it has sent a record that cannot be decrypted$/)
})

it.each([
  ['a request of HTTP', 'GET / HTTP/1.1\r\n\r\n', 'it sent a plaintext HTTP request where TLS was expected'],
  ['another protocol', '\0\0\0\x2c\0\0\0\0\0\0', 'it sent plaintext where TLS was expected'],
  ['a member without TLS', '\xff\xff\xff\xff\xff\xff\0\0\0\0\0', 'it sent plaintext where TLS was expected'],
  ['a ClientHello of SSLv2', '\x80\x2e\x01\x03\x03\0\x15\0\0\0\x10', 'it has sent a ClientHello of SSLv2'],
  ['a record of an unknown type', '\x16\x03\x01\0\x01\x01\x18\x03\x01\0\x01x', ''],
])('%s is refused with its address, and its name if it has one', async (_, bytes, reason) => {
  const server = await serve()
  const socket = connectPlain(server.port, '127.0.0.1').on('error', () => {})
  closing.push(() => socket.destroy())
  await once(socket, 'connect')
  const { localPort } = socket
  socket.write(bytes, 'latin1')
  expect(await server.next()).toMatch(
    new RegExp(`handshake of 127\\.0\\.0\\.1:${localPort} failed .*: ${reason}`),
  )
})

it('the handshakes of clients that fail in the same turn are refused with the address of each', async () => {
  const server = await serve()
  const ports: number[] = []
  const reasons: string[] = []
  const sockets = Array.from({ length: 20 }, () =>
    connectPlain(server.port, '127.0.0.1').on('error', () => {}),
  )
  for (const socket of sockets)
    await new Promise((resolve) => (socket.connecting ? socket.once('connect', resolve) : resolve(undefined)))
  for (const socket of sockets) {
    ports.push(socket.localPort!)
    socket.write('GET / HTTP/1.1\r\n\r\n')
    closing.push(() => socket.destroy())
  }
  for (const _ of sockets) reasons.push((await server.next()) as string)
  const named = reasons.map((reason) => Number(/127\.0\.0\.1:(\d+) failed/.exec(reason)?.[1]))
  expect(new Set(named)).toEqual(new Set(ports))
})

it.each(VERSIONS)('a connection that was guarded can be half open, over %s', async (version) => {
  const server = await serve()
  const socket = dial(server.port, { ...alice, ...atVersion(version) })
  let received = ''
  socket.on('data', (bytes: Buffer) => (received += String(bytes)))
  await once(socket, 'secureConnect')
  socket.end('first ')
  await once(socket, 'end')
  expect(received).toBe('first last')
})

it('clients that leave while they are guarded, or after it, give their places back and harm no other', async () => {
  const server = await serve({ handshakeLimit: 1 })
  for (const leave of ['end', 'resetAndDestroy'] as const) {
    for (const bytesSent of [10, 300, 600]) {
      let sent = 0
      const left = new Promise<void>((resolve) => {
        void through(server.port, (bytes, to) => {
          to.write(bytes.subarray(0, bytesSent - sent))
          sent += bytes.length
          if (sent < bytesSent) return
          to.once('close', resolve)
          to[leave]()
        }).then((port) => dial(port, alice))
      })
      await left
      await vi.waitFor(() => expect(server.network.handshakes.active).toBe(0))
    }
    const socket = dial(server.port, alice)
    expect(await echoed(socket, 'x')).toBe('x')
    if (leave === 'end') socket.end()
    else socket.destroy()
  }
})

/** Two ends of a connection in memory, whose first end gets the bytes of the other as `pass` has them. */
function pair(pass: (bytes: Buffer, push: (bytes: Buffer) => void) => void): [Duplex, Duplex] {
  const server: Duplex = new Duplex({
    read() {},
    write: (bytes: Buffer, _, done) => {
      client.push(bytes)
      done()
    },
  })
  const client: Duplex = new Duplex({
    read() {},
    write: (bytes: Buffer, _, done) => {
      pass(bytes, (part) => server.push(part))
      done()
    },
  })
  return [server, client]
}

it.each(VERSIONS)('a chain that arrives byte by byte is judged and passed on, over %s', async (version) => {
  for (const [options, outcome] of [
    [alice, 'accepted'],
    [long, 'it has shown more than 8 certificates, where one on P-521 counts as 2'],
  ] as const) {
    const outcomes: string[] = []
    const tls = createTlsServer(asking)
    const guard = new CertificateGuard(tls)
    const waiting: number[] = []
    let push: ((bytes: Buffer) => void) | undefined
    const [below, client] = pair((bytes, to) => {
      push = to
      waiting.push(...bytes)
    })
    const done = new Promise<string>((resolve) => {
      tls.on('secureConnection', () => resolve('accepted'))
      guard.begin(below as Socket, resolve)
    })
    connectTls({
      socket: client,
      ca: pem('authority.pem'),
      checkServerIdentity: () => undefined,
      ...options,
      ...atVersion(version),
    }).on('error', () => {})
    void done.then((reason) => outcomes.push(reason))
    while (outcomes.length === 0) {
      await new Promise((resolve) => setImmediate(resolve))
      const byte = waiting.shift()
      if (byte !== undefined) push!(Buffer.of(byte))
    }
    expect(outcomes).toEqual([outcome])
  }
})

it.each(['at once', 'after it'] as const)(
  'the keys of a handshake that no guard judges and that begins %s are not taken for those of a guarded one',
  async (begins) => {
    const tls = createTlsServer(asking)
    const guard = new CertificateGuard(tls)
    const sockets: Socket[] = []
    const outcomes: unknown[] = []
    const done = new Promise<void>((resolve) => {
      const note = (outcome: unknown): void => {
        if (outcomes.push(outcome) === 2) resolve()
      }
      tls.on('secureConnection', (socket) => note([socket.remotePort, guard.streamBelow(socket)?.remotePort]))
      const server = createServer((socket) =>
        socket.once('readable', () => {
          if (sockets.push(socket) < 2) return
          guard.begin(sockets[0]!, note)
          if (begins === 'at once') tls.emit('connection', sockets[1]!)
          else process.nextTick(() => tls.emit('connection', sockets[1]!))
        }),
      ).listen(0, '127.0.0.1', () => {
        closing.push(() => server.close())
        for (let i = 0; i < 2; i++) dial((server.address() as AddressInfo).port, alice)
      })
    })
    await done
    expect(outcomes).toEqual(
      expect.arrayContaining([
        [undefined, sockets[0]!.remotePort],
        [sockets[1]!.remotePort, undefined],
      ]),
    )
  },
)

it('a client of TLS 1.2 that sends its key in records of one byte is known by its address', async () => {
  const tls = createTlsServer(asking)
  const guard = new CertificateGuard(tls)
  const waiting: Buffer[] = []
  let push: ((bytes: Buffer) => void) | undefined
  let isEncrypted = false
  const [below, client] = pair((bytes, to) => {
    push = to
    for (let at = 0, end = 0; at < bytes.length; at = end) {
      end = at + 5 + bytes.readUInt16BE(at + 3)
      isEncrypted ||= bytes[at] === 0x14
      if (isEncrypted) waiting.push(bytes.subarray(at, end))
      else for (const byte of bytes.subarray(at + 5, end)) waiting.push(Buffer.of(0x16, 3, 3, 0, 1, byte))
    }
  })
  let known: boolean | undefined
  tls.on('secureConnection', (socket) => (known = guard.streamBelow(socket) !== undefined))
  guard.begin(below as Socket, () => {})
  connectTls({
    socket: client,
    ca: pem('authority.pem'),
    checkServerIdentity: () => undefined,
    ...alice,
    ...atVersion('TLSv1.2'),
  }).on('error', () => {})
  while (known === undefined) {
    await new Promise((resolve) => setImmediate(resolve))
    const record = waiting.shift()
    if (record !== undefined) push!(record)
  }
  expect(known).toBe(true)
})

it.each(VERSIONS)(
  'a client that sends more than its server reads is not taken for one that sends records without data, over %s',
  async (version) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    closing.push(() => vi.useRealTimers())
    const server = await serve()
    const socket = dial(server.port, { ...alice, ...atVersion(version) })
    const connection = (await server.next()) as Connection
    connection.pause()
    socket.write(new Uint8Array(16_384))
    while (connection.heldBytes! < 16_384) await new Promise((resolve) => setImmediate(resolve))
    vi.advanceTimersByTime(100)
    socket.write(new Uint8Array(1_000_000))
    // Two reads of 64 KiB wait for TLS, or fewer bytes if the system splits them.
    for (let turns = 0; turns < 1000 && connection.heldBytes! < 140_000; turns++)
      await new Promise((resolve) => setImmediate(resolve))
    vi.advanceTimersByTime(100)
    let received = 0
    socket.on('data', (bytes: Buffer) => (received += bytes.length))
    connection.resume()
    while (received < 1_016_384 && !socket.closed) await new Promise((resolve) => setImmediate(resolve))
    expect(received).toBe(1_016_384)
  },
)

it.each([
  'TLS_AES_128_GCM_SHA256',
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'TLS_AES_128_CCM_SHA256',
  // Newer versions leave it out.
  ...(Number.parseFloat(process.versions.openssl) < 3.2 ? ['TLS_AES_128_CCM_8_SHA256'] : []),
])('a chain that is encrypted by %s is judged', async (suite) => {
  const server = await serve({ ciphers: [suite] })
  dial(server.port, { ...long, ciphers: suite })
  expect(await server.next()).toMatch(TOO_LONG)
  const socket = dial(server.port, { ...alice, ciphers: suite })
  expect(await echoed(socket, 'x')).toBe('x')
  expect(socket.getCipher().standardName).toBe(suite)
})
