import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { get as getPlain, type IncomingMessage } from 'node:http'
import { get as getSecure, type RequestOptions } from 'node:https'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { nodePlatform, httpServer, tlsNetwork } from '@zabra/runtime/node'
import { afterEach, describe, expect, it, onTestFinished } from 'vitest'
import { createServer } from '../../server.ts'
import { defaults, type ServerSettings } from '../../settings/index.ts'
import { LiveSettings } from '../../settings/live-settings.ts'
import { AdminServer } from './admin-server.ts'

const file = (name: string): string =>
  new URL(`../../../../runtime/src/testdata/tls/${name}`, import.meta.url).pathname
const stores = {
  adminKeyStoreLocation: file('server.pem'),
  adminTrustStoreLocation: file('authority.pem'),
}

let admin: AdminServer

afterEach(() => admin?.close())

async function listen(settings: Partial<ServerSettings>): Promise<void> {
  const all = defaults({ dataDir: '/data', clientPort: 0, adminPort: 0, ...settings })
  admin = new AdminServer(
    new LiveSettings(all),
    nodePlatform({ networkFactories: { http: httpServer, tls: tlsNetwork } }),
  )
  await admin.listen()
}

/** Resolves to the status, or to the code of the error of a connection. */
async function status(get: typeof getPlain, options: RequestOptions = {}): Promise<number | string> {
  const { host, port } = admin.address!
  const request = get({
    host,
    port,
    path: '/livez',
    agent: false,
    rejectUnauthorized: false,
    ...options,
  } as object)
  try {
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    response.resume()
    return response.statusCode!
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? String(error)
  }
}

const client = (name: string): RequestOptions => ({
  key: readFileSync(file(name)),
  cert: readFileSync(file(name)),
})

describe('TLS on the HTTP port', () => {
  it('is the only way in with admin.forceHttps', async () => {
    await listen({ ...stores, adminForceHttps: true })
    expect(await status(getSecure)).toBe(200)
    expect(await status(getPlain)).toBe('ECONNRESET')
  })

  it('is one of two ways in with admin.portUnification', async () => {
    await listen({ ...stores, adminPortUnification: true })
    expect(await status(getSecure)).toBe(200)
    expect(await status(getPlain)).toBe(200)
  })

  it('counts the connections without TLS of a port that takes both', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'zabra-admin-tls-'))
    onTestFinished(() => rmSync(dataDir, { recursive: true }))
    let port = 0
    const http: typeof httpServer = (options) => ({
      async listen(...parameters) {
        const listener = await httpServer(options).listen(...parameters)
        port = listener.address.port
        return listener
      },
    })
    const settings = { dataDir, clientPort: 0, adminPort: 0, adminPortUnification: true, ...stores }
    const platform = nodePlatform({ networkFactories: { http, tls: tlsNetwork } })
    const server = await createServer(defaults(settings), platform)
    onTestFinished(() => server.close())
    const ask = async (get: typeof getPlain): Promise<string> => {
      const to = { host: '127.0.0.1', port, path: '/metrics', agent: false, rejectUnauthorized: false }
      const [response] = (await once(get(to as object), 'response')) as [IncomingMessage]
      const [sample] = /^insecure_admin_count .*$/m.exec(await text(response)) ?? []
      return sample!
    }
    expect(await ask(getSecure)).toBe('insecure_admin_count 0.0')
    expect(await ask(getPlain)).toBe('insecure_admin_count 1.0')
    expect(await ask(getSecure)).toBe('insecure_admin_count 1.0')
  })

  it('lets a probe in while as many connections as there may be have begun no handshake', async () => {
    await listen({ ...stores, adminForceHttps: true, adminMaxConnections: 4 })
    const { host, port } = admin.address!
    const silent = Array.from({ length: 4 }, () => connect({ host, port }))
    await Promise.all(silent.map((socket) => once(socket, 'connect')))
    expect(await status(getSecure)).toBe(200)
    for (const socket of silent) socket.destroy()
  })

  it('demands a trusted certificate with admin.needClientAuth', async () => {
    await listen({ ...stores, adminForceHttps: true, adminNeedClientAuth: true })
    expect(await status(getSecure, client('alice.pem'))).toBe(200)
    expect(await status(getSecure)).not.toBe(200)
    expect(await status(getSecure, client('stranger.pem'))).not.toBe(200)
  })

  it('uses the store of members where it has none of its own', async () => {
    await listen({ quorumKeyStoreLocation: stores.adminKeyStoreLocation, adminForceHttps: true })
    expect(await status(getSecure)).toBe(200)
  })

  it('is refused without a store', () => {
    expect(() => defaults({ dataDir: '/data', adminForceHttps: true })).toThrow(
      /admin\.ssl\.keyStore\.location/,
    )
  })
})
