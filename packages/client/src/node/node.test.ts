// oxlint-disable no-restricted-imports -- servers on real ports and disks
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { httpUpgrades, nodePlatform, NodeTlsNetwork, tlsNetwork } from '@zabra/runtime/node'
import { webSocketNetwork } from '@zabra/runtime/ws'
import { createServer, defaults, type Server } from '@zabra/server'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bytes, text } from '../testing/manual-world.ts'
import { connect, nodeTransport, OperationTimeoutError, UsageError, type ConnectOptions } from './index.ts'

const certificate = (name: string): string =>
  join(import.meta.dirname, '../../../runtime/src/testdata/tls', name)
const folders: string[] = []
const servers: Server[] = []

async function start(settings: Parameters<typeof defaults>[0]): Promise<Server> {
  const dataDir = mkdtempSync(join(tmpdir(), 'zabra-client-'))
  folders.push(dataDir)
  const ports = nodePlatform({
    networkFactories: {
      tls: tlsNetwork,
      webSocket: (limits, tls) =>
        webSocketNetwork({
          ...limits,
          clock: ports.clock,
          upgrades: httpUpgrades(tls instanceof NodeTlsNetwork ? { tls } : {}),
        }),
    },
  })
  const server = await createServer(defaults({ ...settings, dataDir }), ports)
  servers.push(server)
  return server
}

const portOf = (server: Server, key: string): number =>
  server.listeners.find((listener) => listener.key === key)!.address.port

let plain: Server
let secure: Server
beforeAll(async () => {
  plain = await start({ clientPort: 0, webSocketPort: 0 })
  secure = await start({
    secureClientPort: 0,
    webSocketPort: 0,
    webSocketSecure: true,
    sslKeyStoreLocation: certificate('server.pem'),
    sslTrustStoreLocation: certificate('authority.pem'),
    sslClientAuth: 'need',
  })
})
afterAll(async () => {
  for (const server of servers) await server.close()
  for (const folder of folders) rmSync(folder, { recursive: true })
})

const trusting = nodeTransport({
  tls: { trustStore: { path: certificate('authority.pem') }, keyStore: { path: certificate('alice.pem') } },
})

describe.each([
  ['tcp', () => `127.0.0.1:${portOf(plain, 'clientPort')}`],
  ['tls', () => `tls://localhost:${portOf(secure, 'secureClientPort')}`],
  ['ws', () => `ws://127.0.0.1:${portOf(plain, 'webSocketPort')}/zabra`],
  ['wss', () => `wss://localhost:${portOf(secure, 'webSocketPort')}/zabra`],
])('a client over %s', (scheme, address) => {
  const open = (options: Partial<ConnectOptions> = {}): ReturnType<typeof connect> =>
    connect({
      servers: address(),
      transport: trusting,
      signal: AbortSignal.timeout(10_000),
      ...options,
    })

  it('reads, writes and watches', async () => {
    const client = await open()
    const path = `/${scheme}`
    await client.create(path, { data: bytes('1') })
    const watch = await client.watchOnce(path, 'data')
    await client.setData(path, bytes('2'))
    expect((await watch.fired).type).toBe('nodeDataChanged')
    expect(text((await client.getData(path)).data)).toBe('2')
    const many = await Promise.all(Array.from({ length: 500 }, () => client.getData(path)))
    expect(new Set(many.map(({ data }) => text(data)))).toEqual(new Set(['2']))
    const big = new Uint8Array(1_000_000).fill(7)
    await client.setData(path, big)
    expect(Buffer.compare((await client.getData(path)).data, big)).toBe(0)
    await client.close()
  })

  it('keeps its session on a new connection', async () => {
    const first = await open()
    await first.create(`/${scheme}-e`, { mode: 'ephemeral' })
    const session = await first.detach()
    const second = await open({ session })
    expect((await second.exists(`/${scheme}-e`))!.ephemeralOwner).toBe(session.id)
    await second.close()
  })
})

describe('a client over TLS', () => {
  it('authenticates by its certificate', async () => {
    const client = await connect({
      servers: `tls://localhost:${portOf(secure, 'secureClientPort')}`,
      transport: trusting,
    })
    expect(await client.whoAmI()).toContainEqual({
      scheme: 'x509',
      id: expect.stringContaining('CN=alice'),
    })
    await client.close()
  })

  it('rejects a server whose certificate is not trusted, and says so', async () => {
    const limit = new AbortController()
    const refused = connect({
      servers: `tls://localhost:${portOf(secure, 'secureClientPort')}`,
      transport: nodeTransport({ tls: { keyStore: { path: certificate('alice.pem') } } }),
      signal: limit.signal,
      instrumentation: {
        attempt: () => limit.abort(new DOMException('The deadline passed', 'TimeoutError')),
      },
    })
    await expect(refused).rejects.toThrow(OperationTimeoutError)
    await expect(refused).rejects.toThrow(/the last attempt, to tls:\/\/localhost:\d+, failed: .*SELF_SIGNED/)
  })
})

describe('an address whose scheme has no transport', () => {
  it('is rejected before any connection attempt', async () => {
    const { networkTransport } = await import('../transport.ts')
    const refused = connect({ servers: 'tls://a', transport: networkTransport({ ws: undefined as never }) })
    await expect(refused).rejects.toThrow('Expected addresses with ws://, got tls://a:2281')
    await expect(connect({ servers: 'gopher://a' })).rejects.toThrow(UsageError)
  })
})
