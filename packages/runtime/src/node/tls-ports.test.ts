import { once } from 'node:events'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect as connectPlain } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it, vi } from 'vitest'
import type { Connection, Listener, Network } from '../network.ts'
import type { TlsOptions } from '../tls.ts'
import { nodeNetwork } from './network.ts'
import { tlsNetwork } from './tls.ts'

const path = (name: string): string => new URL(`../testdata/tls/${name}`, import.meta.url).pathname
const store = (name: string) => ({ path: path(name) })

const listeners: Listener[] = []
const folder = mkdtempSync(join(tmpdir(), 'zabra-tls-'))
afterEach(async () => {
  for (const listener of listeners.splice(0)) await listener.close()
  rmSync(folder, { recursive: true, force: true })
})

/** A listener, and what becomes of the next client: its connection, or why it is refused. */
async function serve(network: Network) {
  const outcomes: (Connection | string)[] = []
  let wake = (): void => {}
  const note = (outcome: Connection | string): void => {
    outcomes.push(outcome)
    wake()
  }
  const listener = await network.listen(
    { host: '127.0.0.1', port: 0 },
    (connection) => {
      // Whoever gets a connection listens at once.
      connection.setHandler({ data: (chunk) => connection.write(chunk.slice()), drain() {}, closed() {} })
      note(connection)
    },
    (error) => note(error.message),
  )
  listeners.push(listener)
  return {
    port: listener.address.port,
    async next(): Promise<Connection | string> {
      if (outcomes.length === 0) await new Promise<void>((resolve) => (wake = resolve))
      return outcomes.shift()!
    },
  }
}

async function echoOf(network: Network, port: number, text: string): Promise<string> {
  const connection = await network.connect({ host: '127.0.0.1', port })
  const heard = await new Promise<string>((resolve) => {
    connection.setHandler({
      data: (chunk) => resolve(new TextDecoder().decode(chunk)),
      drain() {},
      closed: () => resolve('closed'),
    })
    connection.write(new TextEncoder().encode(text))
  })
  connection.destroy()
  return heard
}

const client = tlsNetwork({ trustStore: store('authority.pem') })

describe('a port for both', () => {
  const both = (options: Partial<TlsOptions> = {}) => {
    const network = tlsNetwork({ keyStore: store('server.pem'), ...options })
    return { network, mixed: network.withPlaintext() }
  }
  it('takes peers with TLS and without, and knows which is which', async () => {
    const server = await serve(both().mixed)
    expect(await echoOf(client, server.port, 'secret')).toBe('secret')
    expect(await server.next()).toMatchObject({ transport: 'tls', isSecure: true })
    expect(await echoOf(nodeNetwork, server.port, 'srvr')).toBe('srvr')
    expect(await server.next()).toMatchObject({ transport: 'tcp', isSecure: false })
  })

  it('asks those with TLS for a certificate as a port of its own does', async () => {
    const { mixed } = both({ clientAuth: 'need', trustStore: store('authority.pem') })
    const server = await serve(mixed)
    await echoOf(client, server.port, 'x').catch(() => 'refused')
    expect(await server.next()).toMatch(/TLS handshake of .* failed/)
    const alice = tlsNetwork({ trustStore: store('authority.pem'), keyStore: store('alice.pem') })
    expect(await echoOf(alice, server.port, 'x')).toBe('x')
    expect(await server.next()).toMatchObject({ peer: { subject: expect.stringContaining('CN=alice') } })
  })

  it('closes those that say nothing, and survives those that leave without a word', async () => {
    const { mixed } = both({ handshakeTimeoutMs: 50 })
    const server = await serve(mixed)
    for (const leave of ['end', 'resetAndDestroy'] as const) {
      const socket = connectPlain(server.port, '127.0.0.1')
      await once(socket, 'connect')
      socket[leave]()
    }
    const silent = connectPlain(server.port, '127.0.0.1')
    let outcome = await server.next()
    // One that has left may be told of first; only the silent one takes too long.
    while (typeof outcome === 'string' && !outcome.includes('took more than')) outcome = await server.next()
    expect(outcome).toMatch(/its first byte took more than 50 ms/)
    silent.destroy()
    expect(await echoOf(nodeNetwork, server.port, 'x')).toBe('x')
  })

  it('takes a first byte that comes alone', async () => {
    const server = await serve(both().mixed)
    const socket = connectPlain({ port: server.port, host: '127.0.0.1', noDelay: true })
    socket.write('s')
    await server.next()
    socket.write('rvr')
    let text = ''
    while (text.length < 4) text += String(((await once(socket, 'data')) as [Buffer])[0])
    expect(text).toBe('srvr')
    socket.destroy()
  })
})

describe('a handshake', () => {
  it.each(['end', 'resetAndDestroy'] as const)(
    'that the client leaves with %s frees its place at once',
    async (leave) => {
      const network = tlsNetwork({
        keyStore: store('server.pem'),
        handshakeLimit: 1,
        handshakeTimeoutMs: 600_000,
      })
      for (const listening of [network, network.withPlaintext()]) {
        const server = await serve(listening)
        const socket = connectPlain(server.port, '127.0.0.1')
        socket.on('error', () => {}).write(Uint8Array.of(0x16, 3, 1, 1, 0))
        await vi.waitFor(() => expect(network.handshakes.active).toBe(1))
        socket[leave]()
        await vi.waitFor(() => expect(network.handshakes.active).toBe(0))
        expect(await echoOf(client, server.port, 'x')).toBe('x')
        await server.next()
      }
    },
  )

  it('leaves the connection half open afterwards, as without TLS', async () => {
    const ended: string[] = []
    const listener = await tlsNetwork({ keyStore: store('server.pem') }).listen(
      { host: '127.0.0.1', port: 0 },
      (connection) =>
        connection.setHandler({
          data: (chunk) => ended.push(new TextDecoder().decode(chunk)),
          drain() {},
          closed() {},
          ended: () => {
            connection.write(new TextEncoder().encode('last'))
            connection.end()
            return true
          },
        }),
    )
    listeners.push(listener)
    const connection = await client.connect({ host: '127.0.0.1', port: listener.address.port })
    const heard = new Promise<string>((resolve) =>
      connection.setHandler({
        data: (chunk) => resolve(new TextDecoder().decode(chunk)),
        drain() {},
        closed: () => resolve('closed'),
        ended: () => true,
      }),
    )
    connection.write(new TextEncoder().encode('first'))
    connection.end()
    expect(await heard).toBe('last')
    expect(ended).toEqual(['first'])
    connection.destroy()
  })
})

describe('lists of revoked certificates', () => {
  const demanding = (revocationList: string) =>
    tlsNetwork({
      keyStore: store('server.pem'),
      trustStore: store('revoking-authority.pem'),
      clientAuth: 'need',
      revocationList,
    })
  const as = (name: string) => tlsNetwork({ trustStore: store('authority.pem'), keyStore: store(name) })

  it('keep out who is on them, and nobody else', async () => {
    const network = demanding(path('revoking.crl'))
    const server = await serve(network)
    expect(await echoOf(as('kept.pem'), server.port, 'x')).toBe('x')
    await server.next()
    await echoOf(as('revoked.pem'), server.port, 'x').catch(() => 'refused')
    expect(await server.next()).toMatch(/CERT_REVOKED.*not trusted/)
    expect(network.handshakes).toEqual({ active: 0, rejected: 0, failed: 1 })
  })

  it('are read as DER too', async () => {
    const file = join(mkdtempSync(join(tmpdir(), 'zabra-tls-')), 'list.crl')
    const pem = readFileSync(path('revoking.crl'), 'utf8').replace(/-----.*-----|\s/g, '')
    writeFileSync(file, Buffer.from(pem, 'base64'))
    const server = await serve(demanding(file))
    await echoOf(as('revoked.pem'), server.port, 'x').catch(() => 'refused')
    expect(await server.next()).toMatch(/CERT_REVOKED/)
    rmSync(join(file, '..'), { recursive: true })
  })

  it('that have run out keep everybody out, as it cannot be told who is revoked', async () => {
    const server = await serve(demanding(path('over.crl')))
    await echoOf(as('kept.pem'), server.port, 'x').catch(() => 'refused')
    expect(await server.next()).toMatch(/CRL_HAS_EXPIRED/)
  })

  it('are read again', async () => {
    const place = mkdtempSync(join(tmpdir(), 'zabra-tls-'))
    const file = join(place, 'list.crl')
    copyFileSync(path('empty.crl'), file)
    const network = demanding(file)
    const server = await serve(network)
    expect(await echoOf(as('revoked.pem'), server.port, 'x')).toBe('x')
    await server.next()
    expect(await network.reload()).toBe(false)
    copyFileSync(path('revoking.crl'), file)
    expect(await network.reload()).toBe(true)
    await echoOf(as('revoked.pem'), server.port, 'x').catch(() => 'refused')
    expect(await server.next()).toMatch(/CERT_REVOKED/)
    writeFileSync(file, 'nothing')
    await expect(network.reload()).rejects.toThrow(/holds no list of revoked certificates/)
    rmSync(place, { recursive: true })
  })

  it.each([
    ['authority.pem', /holds no list of revoked certificates/],
    ['none.crl', /Cannot read .*none\.crl \(ENOENT\)/],
  ])('that cannot be used are told: %s', async (name, message) => {
    await expect(serve(demanding(path(name)))).rejects.toThrow(message)
  })
})
