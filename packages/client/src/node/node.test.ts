// oxlint-disable no-restricted-imports -- servers on real ports and disks
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer, type GivenServerSettings, type Server } from '@zabra/server'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bytes, text } from '../testing/manual-world.ts'
import { connect, nodeTransport, UsageError, type ConnectOptions } from './index.ts'

const certificate = (name: string): string =>
  join(import.meta.dirname, '../../../runtime/src/testdata/tls', name)
const folders: string[] = []
const servers: Server[] = []

async function start(settings: GivenServerSettings): Promise<Server> {
  const dataDir = mkdtempSync(join(tmpdir(), 'zabra-client-'))
  folders.push(dataDir)
  const server = await createServer({ ...settings, dataDir })
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
    const refused = connect({
      servers: `tls://localhost:${portOf(secure, 'secureClientPort')}`,
      transport: nodeTransport({ tls: { keyStore: { path: certificate('alice.pem') } } }),
    })
    await expect(refused).rejects.toMatchObject({
      code: 'CONNECT_FAILED',
      message: expect.stringMatching(/localhost:\d+: its certificate is not signed by .* tls\.trustStore/),
    })
  })

  it('rejects at once where the addresses, the files or the certificates are wrong, and says what to do', async () => {
    const tls = { trustStore: { path: certificate('authority.pem') } }
    const secureAt = (host: string): string => `tls://${host}:${portOf(secure, 'secureClientPort')}`
    const wrong = [
      {
        servers: secureAt('127.0.0.1'),
        tls,
        message: /its certificate is for other names|requires the certificate of a client/,
      },
      {
        servers: secureAt('localhost'),
        tls,
        message: /requires the certificate of a client.* tls\.keyStore/,
      },
      {
        servers: secureAt('localhost'),
        tls: { trustStore: { path: certificate('none.pem') } },
        message: /Cannot read .*none\.pem/,
      },
      {
        servers: `127.0.0.1:${portOf(plain, 'webSocketPort')}`,
        tls,
        message: /answers with HTTP: .*ws:\/\//,
      },
    ]
    for (const { servers, tls: options, message } of wrong) {
      const refused = connect({ servers, transport: nodeTransport({ tls: options }), connectTimeoutMs: 5000 })
      await expect(refused, servers).rejects.toMatchObject({
        code: 'CONNECT_FAILED',
        message: expect.stringMatching(message),
      })
    }
  })
})

describe('a client that connects with TLS to a port of a server without TLS', () => {
  it('is rejected at once, with that reason', async () => {
    const refused = connect({
      servers: `tls://127.0.0.1:${portOf(plain, 'clientPort')}`,
      connectTimeoutMs: 5000,
    })
    await expect(refused).rejects.toMatchObject({
      code: 'CONNECT_FAILED',
      message: expect.stringMatching(/it answers without TLS .*leave out tls:\/\//),
    })
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
