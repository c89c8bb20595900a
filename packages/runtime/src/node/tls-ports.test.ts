import { once } from 'node:events'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect as connectPlain, createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { afterEach, describe, expect, it, vi } from 'vitest'
import type { Connection, Listener, Network } from '../network.ts'
import type { TlsOptions } from '../tls.ts'
import { nodeNetwork } from './network.ts'
import { echoPort } from './testing/echo-port.ts'
import { tlsNetwork } from './tls.ts'

const path = (name: string): string => new URL(`../testdata/tls/${name}`, import.meta.url).pathname
const store = (name: string) => ({ path: path(name) })

const listeners: Listener[] = []
const folder = mkdtempSync(join(tmpdir(), 'zabra-tls-'))
afterEach(async () => {
  for (const listener of listeners.splice(0)) await listener.close()
  rmSync(folder, { recursive: true, force: true })
})

async function serve(network: Network) {
  const port = await echoPort(network)
  listeners.push(port.listener)
  return port
}

async function echoOf(network: Network, port: number, text: string): Promise<string> {
  const connection = await network.connect({ host: '127.0.0.1', port })
  const received = await new Promise<string>((resolve) => {
    connection.setHandler({
      data: (chunk) => resolve(new TextDecoder().decode(chunk)),
      drain() {},
      closed: () => resolve('closed'),
    })
    connection.write(new TextEncoder().encode(text))
  })
  connection.destroy()
  return received
}

const serverNetwork = () => tlsNetwork({ keyStore: store('server.pem') })
const client = tlsNetwork({ trustStore: store('authority.pem') })

describe('a listener of withPlaintext', () => {
  const both = (options: Partial<TlsOptions> = {}) => {
    const network = tlsNetwork({ keyStore: store('server.pem'), ...options })
    return { network, mixed: network.withPlaintext() }
  }
  it('accepts connections with and without TLS, and distinguishes them', async () => {
    const server = await serve(both().mixed)
    expect(await echoOf(client, server.port, 'secret')).toBe('secret')
    expect(await server.next()).toMatchObject({ transport: 'tls', isSecure: true })
    expect(await echoOf(nodeNetwork, server.port, 'srvr')).toBe('srvr')
    expect(await server.next()).toMatchObject({ transport: 'tcp', isSecure: false })
  })

  it('asks TLS clients for a certificate', async () => {
    const { mixed } = both({ clientAuth: 'need', trustStore: store('authority.pem') })
    const server = await serve(mixed)
    await echoOf(client, server.port, 'x').catch(() => 'refused')
    expect(await server.next()).toMatch(/TLS handshake of .* failed/)
    const alice = tlsNetwork({ trustStore: store('authority.pem'), keyStore: store('alice.pem') })
    expect(await echoOf(alice, server.port, 'x')).toBe('x')
    expect(await server.next()).toMatchObject({ peer: { subject: expect.stringContaining('CN=alice') } })
  })

  it('closes connections that send nothing, and survives those that close without a byte', async () => {
    const { mixed } = both({ handshakeTimeoutMs: 50 })
    const server = await serve(mixed)
    for (const leave of ['end', 'resetAndDestroy'] as const) {
      const socket = connectPlain(server.port, '127.0.0.1')
      await once(socket, 'connect')
      socket[leave]()
    }
    const silent = connectPlain(server.port, '127.0.0.1')
    let outcome = await server.next()
    // The one that closed may be reported first; only the silent one times out.
    while (typeof outcome === 'string' && !outcome.includes('took more than')) outcome = await server.next()
    expect(outcome).toMatch(/its first byte took more than 50 ms/)
    silent.destroy()
    expect(await echoOf(nodeNetwork, server.port, 'x')).toBe('x')
  })

  it('accepts a first byte that arrives alone', async () => {
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

describe('a TLS handshake', () => {
  it.each(['end', 'resetAndDestroy'] as const)(
    'that the client abandons with %s is no longer counted at once',
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

  it('with groups over finite fields is refused, since one takes 95 ms, and goes on with another group of the client', async () => {
    for (const listening of [serverNetwork(), serverNetwork().withPlaintext()]) {
      const server = await serve(listening)
      const outcomes: (Connection | string)[] = []
      for (const ecdhCurve of ['ffdhe8192', 'ffdhe2048:P-256']) {
        const ca = readFileSync(path('authority.pem'))
        const socket = connectTls({ port: server.port, host: '127.0.0.1', ca, ecdhCurve })
        socket.on('error', () => {})
        outcomes.push(await server.next())
        socket.destroy()
      }
      expect(outcomes).toEqual([
        expect.stringMatching(/TLS handshake of .* failed/),
        expect.objectContaining({ isSecure: true }),
      ])
    }
  })

  it('whose ClientHello does not end is refused after 16 KiB', async () => {
    for (const listening of [serverNetwork(), serverNetwork().withPlaintext()]) {
      const server = await serve(listening)
      const socket = connectPlain(server.port, '127.0.0.1')
      socket.on('error', () => {})
      // A message of 16 MiB in records of 16 KiB.
      const record = Buffer.alloc(5 + 16_384, 7)
      record.set([0x16, 3, 1, 0x40, 0, 1, 255, 255, 255])
      socket.write(Buffer.concat([record, record]))
      expect(await server.next()).toMatch(/EMSGSIZE.*its ClientHello is longer than 16384 bytes/)
      socket.destroy()
    }
  })

  it('whose ClientHello arrives byte by byte is completed', async () => {
    const server = await serve(serverNetwork())
    const through = createServer((socket) => {
      const target = connectPlain({ port: server.port, host: '127.0.0.1', noDelay: true })
      socket.on('data', (bytes: Buffer) => {
        for (const byte of bytes) target.write(Uint8Array.of(byte))
      })
      target.on('data', (bytes: Buffer) => socket.write(bytes))
      socket.on('close', () => target.destroy())
    }).listen(0, '127.0.0.1')
    await once(through, 'listening')
    expect(await echoOf(client, (through.address() as AddressInfo).port, 'x')).toBe('x')
    through.close()
  })

  it.each(['need', 'want'] as const)(
    'in which an unknown address may show a certificate waits for another of its address, for a second at most, where they are %sed',
    async (clientAuth) => {
      const server = await serve(
        tlsNetwork({ keyStore: store('server.pem'), trustStore: store('authority.pem'), clientAuth }),
      )
      const through = createServer((socket) => {
        const target = connectPlain(server.port, '127.0.0.1').on('error', () => {})
        socket.once('data', (hello: Buffer) => target.write(hello))
        target.on('data', () => through.emit('begun'))
        socket.on('close', () => target.destroy())
      }).listen(0, '127.0.0.1')
      await once(through, 'listening')
      const held = connectTls((through.address() as AddressInfo).port).on('error', () => {})
      await once(through, 'begun')
      const pem = readFileSync(path('stranger.pem'), 'latin1')
      const cert = pem.slice(pem.indexOf('-----BEGIN CERTIFICATE')).repeat(20)
      const socket = connectTls({ port: server.port, key: pem, cert, rejectUnauthorized: false })
      socket.on('error', () => {})
      const reasons = [await server.next(), await server.next()]
      expect(reasons).toEqual(
        expect.arrayContaining([
          expect.stringContaining('others wait, and its TLS handshake took more than 1000 ms'),
          expect.stringContaining('it has shown more than 8 certificates'),
        ]),
      )
      for (const one of [held, socket]) one.destroy()
      through.close()
    },
  )

  it.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'of a client with an untrusted certificate fails with its address, over %s',
    async (version) => {
      const options = { keyStore: store('server.pem'), trustStore: store('authority.pem') }
      const server = await serve(tlsNetwork({ ...options, clientAuth: 'need' }))
      const pem = readFileSync(path('stranger.pem'))
      const socket = connectTls({
        port: server.port,
        host: '127.0.0.1',
        rejectUnauthorized: false,
        key: pem,
        cert: pem,
        minVersion: version,
        maxVersion: version,
      })
      socket.on('error', () => {})
      await once(socket, 'connect')
      const { localPort } = socket
      expect(await server.next()).toMatch(
        new RegExp(`handshake of 127\\.0\\.0\\.1:${localPort} failed .*its certificate is not trusted`),
      )
      socket.destroy()
    },
  )

  it('yields a connection that can be half open, as without TLS', async () => {
    const server = await serve(serverNetwork())
    const connection = await client.connect({ host: '127.0.0.1', port: server.port })
    let received = ''
    await new Promise<void>((resolve) => {
      connection.setHandler({
        data: (chunk) => (received += new TextDecoder().decode(chunk)),
        drain() {},
        closed: () => resolve(),
        ended: () => true,
      })
      connection.write(new TextEncoder().encode('first '))
      connection.end()
    })
    expect(received).toBe('first last')
  })
})

describe('certificate revocation lists', () => {
  const demanding = (revocationList: string) =>
    tlsNetwork({
      keyStore: store('server.pem'),
      trustStore: store('revoking-authority.pem'),
      clientAuth: 'need',
      revocationList,
    })
  const as = (name: string) => tlsNetwork({ trustStore: store('authority.pem'), keyStore: store(name) })

  it('refuse clients with revoked certificates and no others', async () => {
    const network = demanding(path('revoking.crl'))
    const server = await serve(network)
    expect(await echoOf(as('kept.pem'), server.port, 'x')).toBe('x')
    await server.next()
    await echoOf(as('revoked.pem'), server.port, 'x').catch(() => 'refused')
    expect(await server.next()).toMatch(/CERT_REVOKED.*not trusted/)
    expect(network.handshakes).toEqual({ active: 0, rejected: 0, failed: 1 })
  })

  it('are read in DER too', async () => {
    const file = join(mkdtempSync(join(tmpdir(), 'zabra-tls-')), 'list.crl')
    const pem = readFileSync(path('revoking.crl'), 'utf8').replace(/-----.*-----|\s/g, '')
    writeFileSync(file, Buffer.from(pem, 'base64'))
    const server = await serve(demanding(file))
    await echoOf(as('revoked.pem'), server.port, 'x').catch(() => 'refused')
    expect(await server.next()).toMatch(/CERT_REVOKED/)
    rmSync(join(file, '..'), { recursive: true })
  })

  it('that have expired refuse every client', async () => {
    const server = await serve(demanding(path('over.crl')))
    await echoOf(as('kept.pem'), server.port, 'x').catch(() => 'refused')
    expect(await server.next()).toMatch(/CRL_HAS_EXPIRED/)
  })

  it('are reloaded', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'zabra-tls-'))
    const file = join(folder, 'list.crl')
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
    rmSync(folder, { recursive: true })
  })

  it.each([
    ['authority.pem', /holds no list of revoked certificates/],
    ['none.crl', /Cannot read .*none\.crl \(ENOENT\)/],
  ])('that cannot be used give an error: %s', async (name, message) => {
    await expect(serve(demanding(path(name)))).rejects.toThrow(message)
  })
})
