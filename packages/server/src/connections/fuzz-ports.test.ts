// oxlint-disable no-restricted-imports -- a test of real sockets
import { once } from 'node:events'
import { connect, createServer as createTcpServer, type AddressInfo } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { Writer, writeConnectRequest } from '@zabra/protocol'
import { MemoryDisk, SeededRandom, silentLogger } from '@zabra/runtime'
import { httpServer, httpUpgrades, nodeClock, nodePlatform, tlsNetwork } from '@zabra/runtime/node'
import { webSocketNetwork } from '@zabra/runtime/ws'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { defaults } from '../settings/index.ts'
import type { Server } from '../server-types.ts'
import { createServer } from '../server.ts'
import { chunksOf, damaged, FUZZ_INPUTS } from '../testing/fuzz.ts'

/** A connection costs much more than an input of a decoder. */
const CONNECTIONS = Math.ceil(FUZZ_INPUTS / 50)
const AT_ONCE = 20

const path = (name: string): string =>
  new URL(`../../../runtime/src/testdata/tls/${name}`, import.meta.url).pathname
const text = (value: string): Uint8Array => new TextEncoder().encode(value)

/** Returns the first bytes that a TLS client sends. */
async function tlsHello(): Promise<Uint8Array> {
  const server = createTcpServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const accepted = once(server, 'connection')
  const client = connectTls({ port: (server.address() as AddressInfo).port, host: '127.0.0.1' })
  client.on('error', () => {})
  const [socket] = (await accepted) as [ReturnType<typeof connect>]
  const [chunk] = (await once(socket, 'data')) as [Buffer]
  socket.destroy()
  client.destroy()
  server.close()
  return new Uint8Array(chunk)
}

function handshake(): Uint8Array {
  const writer = new Writer()
  const mark = writer.beginFrame()
  const passwd = new Uint8Array(16)
  writeConnectRequest(writer, { protocolVersion: 0, lastZxidSeen: 0n, timeOut: 4000, sessionId: 0n, passwd })
  writer.endFrame(mark)
  return writer.take()
}

/** Sends bytes to a port, then the end, and resolves when the other side has closed the connection. */
async function attack(port: number, chunks: Iterable<Uint8Array>): Promise<void> {
  const socket = connect(port, '127.0.0.1')
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  socket.on('error', () => {})
  socket.resume()
  for (const chunk of chunks) socket.write(chunk)
  socket.end()
  await closed
}

async function ruok(port: number): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  socket.write('ruok')
  const [chunk] = (await once(socket, 'data')) as [Buffer]
  socket.destroy()
  return chunk.toString()
}

describe('a server whose ports receive random and damaged bytes', () => {
  let server: Server
  let samples: Uint8Array[]
  let ports: Record<string, number>

  beforeAll(async () => {
    const local = '127.0.0.1'
    ports = {}
    server = await createServer(
      defaults({
        dataDir: '/data',
        clientPort: 0,
        clientPortAddress: local,
        portUnification: true,
        secureClientPort: 0,
        secureClientPortAddress: local,
        webSocketPort: 0,
        webSocketPortAddress: local,
        adminPort: 0,
        adminAddress: local,
        sslKeyStoreLocation: path('server.pem'),
        sslTrustStoreLocation: path('authority.pem'),
        maxClientCnxns: 0,
        fourLetterWords: ['*'],
      }),
      nodePlatform({
        disk: new MemoryDisk(),
        logger: silentLogger,
        networkFactories: {
          tls: tlsNetwork,
          http: (options) => ({
            listen: async (...given) => {
              const listener = await httpServer(options).listen(...given)
              ports['http'] = listener.address.port
              return listener
            },
          }),
          webSocket: (limits) =>
            webSocketNetwork({ ...limits, clock: nodeClock, upgrades: httpUpgrades({}) }),
        },
      }),
    )
    for (const { key, address } of server.listeners) ports[key] = address.port
    samples = [
      await tlsHello(),
      handshake(),
      text('mntr'),
      text(
        'GET /commands/stat?session=0x1 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic YTpi\r\nContent-Length: 3\r\n\r\nabc',
      ),
      text(
        'GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n\u0002\u0005abcde',
      ),
    ]
  })

  afterAll(() => server.close())

  it.each(['clientPort', 'secureClientPort', 'webSocketPort', 'http'])(
    'on %s closes each of these connections and serves on',
    { timeout: 60_000 + CONNECTIONS * 100 },
    async (name) => {
      const random = new SeededRandom(31)
      for (let sent = 0; sent < CONNECTIONS; sent += AT_ONCE)
        await Promise.all(
          Array.from({ length: AT_ONCE }, () =>
            attack(ports[name]!, chunksOf(random, damaged(random, samples))),
          ),
        )
      expect(await ruok(ports['clientPort']!)).toBe('imok')
    },
  )
})
