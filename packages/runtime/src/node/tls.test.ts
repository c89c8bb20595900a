import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { connect as connectPlain } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { afterEach, describe, expect, it } from 'vitest'
import type { Connection, Listener, PeerIdentity } from '../network.ts'
import { CertificateError, type CertificateStore, type TlsOptions } from '../tls.ts'
import { identityOf } from './certificate.ts'
import { openSslName } from './cipher-suites.ts'
import { tlsNetwork } from './tls.ts'

const path = (name: string): string => new URL(`../testdata/tls/${name}`, import.meta.url).pathname
const store = (name: string, password?: string): CertificateStore => ({ path: path(name), password })
const trusted = store('authority.pem')

const listeners: Listener[] = []
const connections: Connection[] = []
const folders: string[] = []
afterEach(async () => {
  for (const connection of connections.splice(0)) connection.destroy()
  for (const listener of listeners.splice(0)) await listener.close()
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true })
})

function hold(connection: Connection): Connection {
  connection.setHandler({ data() {}, drain() {}, closed() {} })
  connections.push(connection)
  return connection
}

/** A listener with its accepted connections and its refusals. */
async function serve(options: Partial<TlsOptions> = {}) {
  const network = tlsNetwork({ keyStore: store('server.pem'), ...options })
  const accepted: Connection[] = []
  const refused: string[] = []
  let wake = (): void => {}
  const note = (): void => wake()
  const listener = await network.listen(
    { host: '127.0.0.1', port: 0 },
    (connection) => {
      accepted.push(hold(connection))
      note()
    },
    (error) => {
      refused.push(error.message)
      note()
    },
  )
  listeners.push(listener)
  return {
    network,
    refused,
    address: listener.address,
    /** Resolves to the next accepted connection, or to the reason why a client was refused. */
    async next(): Promise<Connection | string> {
      if (accepted.length + refused.length === 0) await new Promise<void>((resolve) => (wake = resolve))
      return accepted.shift() ?? refused.shift()!
    },
  }
}

async function connect(
  server: { address: { port: number } },
  options: Partial<TlsOptions> = {},
  host = '127.0.0.1',
) {
  const network = tlsNetwork({ trustStore: trusted, ...options })
  return hold(await network.connect({ host, port: server.address.port }))
}

/** The subject of the certificate that the server has shown to a client. */
const serverSubject = ({ peerCertificates }: Connection): string => identityOf(peerCertificates![0]!).subject

describe('a key store', () => {
  it.each([
    ['server.pem', undefined],
    ['server.p12', 'secret'],
    ['server-3des.p12', 'secret'],
  ])('is loaded from %s', async (name, password) => {
    const server = await serve({ keyStore: store(name, password) })
    const client = await connect(server)
    expect(serverSubject(client)).toBe('CN=localhost,O=Zabra')
    expect(client.peerCertificates?.length).toBe(2)
  })

  it('is read where its reads are run, also when it is read again', async () => {
    let reads = 0
    const run = <T>(read: () => Promise<T>): Promise<T> => (reads++, read())
    const network = tlsNetwork({ keyStore: store('server.pem'), trustStore: trusted }, { run })
    expect(await network.reload()).toBe(false)
    expect(reads).toBe(2)
    const stuck = tlsNetwork({ keyStore: store('server.pem') }, { run: () => new Promise(() => {}) })
    const read = stuck.reload().then(() => 'read')
    expect(await Promise.race([read, tlsNetwork({ keyStore: store('server.pem') }).reload()])).toBe(false)
  })

  it('uses the password of passwordPath before password, without its line end', async () => {
    const folder = scratch()
    writeFileSync(join(folder, 'password'), 'secret\n')
    const keyStore = { ...store('alice-locked.pem', 'wrong'), passwordPath: join(folder, 'password') }
    const server = await serve({ keyStore })
    const client = await connect(server, { verifyHostName: false })
    expect(serverSubject(client)).toMatch(/^CN=alice,/)
  })

  it('has its format detected from its first bytes when its name has no extension', async () => {
    const folder = scratch()
    copyFileSync(path('server.p12'), join(folder, 'tls'))
    copyFileSync(path('server.jks'), join(folder, 'java'))
    await serve({ keyStore: { path: join(folder, 'tls'), password: 'secret' } })
    await expect(serve({ keyStore: { path: join(folder, 'java') } })).rejects.toThrow(/is a JKS file/)
  })

  it.each<[string, CertificateStore, RegExp]>([
    ['that is not there', store('none.pem'), /none\.pem \(ENOENT\)\. There is no such file/],
    ['that is a folder', { path: path('.') }, /EISDIR/],
    [
      'whose password is wrong',
      store('server.p12', 'wrong'),
      /server\.p12 cannot be used: the password is wrong/,
    ],
    ['whose password is missing', store('alice-locked.pem'), /its private key is locked.*set its password/],
    ['whose key does not open', store('alice-locked.pem', 'wrong'), /cannot be unlocked. Check the password/],
    ['without a key', trusted, /authority\.pem cannot be used: it holds no private key/],
    ['without a key in PKCS #12', store('authority.p12', 'secret'), /holds no private key. Export it again/],
    [
      'with an old cipher',
      store('server-rc2.p12', 'secret'),
      /no longer supported, such as RC2.*openssl or keytool/,
    ],
    [
      'of Java',
      store('server.jks'),
      /keytool -importkeystore -srckeystore \S*server\.jks -destkeystore \S*server\.p12 -deststoretype PKCS12/,
    ],
    ['of Bouncy Castle', { path: path('server.jks'), type: 'BCFKS' }, /is a BCFKS file/],
    ['that is something else', { path: path('make.sh'), type: 'PKCS12' }, /damaged, or no PKCS #12 file/],
  ])(
    '%s is refused with an error of one line that has its path and the remedy',
    async (_, keyStore, line) => {
      const failed = serve({ keyStore })
      await expect(failed).rejects.toMatchObject({ name: 'CertificateError', path: keyStore.path })
      await expect(failed).rejects.toThrow(line)
      const { message } = await failed.then(
        () => new Error('it was not refused'),
        (error: Error) => error,
      )
      expect(message).not.toMatch(/\n|secret|wrong"/)
    },
  )

  it('whose certificate belongs to another key is refused', async () => {
    const folder = scratch()
    const mixed = join(folder, 'mixed.pem')
    const { readFileSync } = await import('node:fs')
    const [key] = /-----BEGIN PRIVATE KEY-----[^-]*-----END PRIVATE KEY-----\n/.exec(
      readFileSync(path('alice.pem'), 'utf8'),
    )!
    writeFileSync(mixed, key + readFileSync(path('authority.pem'), 'utf8'))
    await expect(serve({ keyStore: { path: mixed } })).rejects.toThrow(
      /none of its certificates belongs to its private key/,
    )
  })

  it('is required by a listener', async () => {
    await expect(tlsNetwork({}).listen({ port: 0 }, () => {})).rejects.toThrow(/needs a key store/)
  })
})

describe('TLS clients with client authentication', () => {
  const alice = store('alice.p12', 'secret')
  const verifying = { trustStore: trusted }

  it.each(['need', 'want'] as const)(
    'are identified by their certificate with clientAuth %s',
    async (clientAuth) => {
      const server = await serve({ ...verifying, clientAuth })
      await connect(server, { keyStore: alice })
      const { peer, isSecure, transport } = (await server.next()) as Connection
      expect({ isSecure, transport, subject: peer?.subject }).toEqual({
        isSecure: true,
        transport: 'tls',
        subject: 'CN=alice,OU=Tests,O=Zabra\\, Inc.,C=DE',
      })
      expect((peer as PeerIdentity).alternativeNames).toContainEqual({ type: 2, value: 'alice.example' })
    },
  )

  it('are trusted by an authority in a PKCS #12 trust store of keytool', async () => {
    const server = await serve({ trustStore: store('authority.p12', 'secret'), clientAuth: 'need' })
    await connect(server, { keyStore: alice })
    expect(((await server.next()) as Connection).peerCertificates?.length).toBe(2)
  })

  it('without a certificate are accepted with want and refused with need', async () => {
    const wanting = await serve({ ...verifying, clientAuth: 'want' })
    await connect(wanting)
    expect(((await wanting.next()) as Connection).peer).toBeUndefined()
    const needing = await serve({ ...verifying, clientAuth: 'need' })
    await connect(needing).catch(() => {})
    expect(await needing.next()).toMatch(
      /^The TLS handshake of 127\.0\.0\.1:\d+ failed .*did not return a certificate/,
    )
  })

  it.each(['want', 'need'] as const)('with an untrusted certificate are refused: %s', async (clientAuth) => {
    const server = await serve({ ...verifying, clientAuth })
    await connect(server, { keyStore: store('stranger.pem') }).catch(() => {})
    expect(await server.next()).toMatch(/^The TLS handshake of .* failed/)
  })

  it('show no certificate when they are not asked', async () => {
    const server = await serve({ clientAuth: 'none' })
    await connect(server, { keyStore: alice })
    expect(((await server.next()) as Connection).peer).toBeUndefined()
  })

  it('are not trusted by an authority in the key store of the server', async () => {
    const server = await serve({
      keyStore: store('server.p12', 'secret'),
      trustStore: store('stranger-authority.pem'),
      clientAuth: 'need',
    })
    await connect(server, { keyStore: alice }).catch(() => {})
    expect(await server.next()).toMatch(/failed/)
  })
})

describe('a TLS client', () => {
  it('refuses a server with another host name, unless verifyHostName is false', async () => {
    const server = await serve({ keyStore: store('elsewhere.pem') })
    await expect(connect(server)).rejects.toMatchObject({
      name: 'NetworkError',
      code: 'ERR_TLS_CERT_ALTNAME_INVALID',
    })
    await connect(server, { verifyHostName: false })
    await connect(await serve(), {}, 'localhost')
  })

  it('refuses a server with an untrusted certificate', async () => {
    const server = await serve()
    const refused = connect(server, { trustStore: store('stranger-authority.pem') })
    await expect(refused).rejects.toMatchObject({ name: 'NetworkError' })
    await expect(refused).rejects.toThrow(/Cannot connect to 127\.0\.0\.1:\d+/)
  })
})

describe('versions and cipher suites', () => {
  it('without a common version fail the handshake', async () => {
    const server = await serve({ versions: ['TLSv1.3'] })
    await expect(connect(server, { versions: ['TLSv1.2'] })).rejects.toMatchObject({ name: 'NetworkError' })
    expect(await server.next()).toMatch(/failed/)
    await connect(server, { versions: ['TLSv1.3'] })
  })

  it('are configured by their names in the RFCs', async () => {
    const suite = 'TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384'
    const server = await serve({ ciphers: [suite] })
    const socket = connectTls({ port: server.address.port, host: '127.0.0.1', rejectUnauthorized: false })
    await once(socket, 'secureConnect')
    expect(socket.getCipher().standardName).toBe(suite)
    const accepted = (await server.next()) as Connection
    expect(accepted.tls).toEqual({ version: 'TLSv1.2', cipher: suite })
    socket.destroy()
    await expect(serve({ ciphers: ['TLS_NONSENSE'] })).rejects.toThrow(/got "TLS_NONSENSE"/)
    const none = serve({ ciphers: [suite], versions: ['TLSv1.3'] })
    await expect(none).rejects.toThrow(/Expected a cipher suite for TLSv1\.3, got TLS_ECDHE/)
  })

  it.each([
    ['TLS_AES_128_GCM_SHA256', 'TLS_AES_128_GCM_SHA256'],
    ['TLS_CHACHA20_POLY1305_SHA256', 'TLS_CHACHA20_POLY1305_SHA256'],
    ['TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256', 'ECDHE-RSA-AES128-GCM-SHA256'],
    ['TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384', 'ECDHE-RSA-AES256-SHA384'],
    ['TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA', 'ECDHE-ECDSA-AES128-SHA'],
    ['TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256', 'ECDHE-ECDSA-CHACHA20-POLY1305'],
    ['TLS_DHE_RSA_WITH_AES_256_GCM_SHA384', 'DHE-RSA-AES256-GCM-SHA384'],
    ['TLS_RSA_WITH_AES_128_CBC_SHA256', 'AES128-SHA256'],
    ['TLS_RSA_WITH_RC4_128_MD5', undefined],
    ['ECDHE-RSA-AES128-GCM-SHA256', undefined],
  ])('%s is named %s by OpenSSL', (suite, name) => {
    expect(openSslName(suite)).toBe(name)
  })
})

describe('the own certificate', () => {
  it('is reported as its end and a hash of its subject, without its key', async () => {
    const { network } = await serve()
    expect(network.certificate).toEqual({
      validUntil: expect.any(Number) as number,
      subjectHash: expect.stringMatching(/^[\da-f]{16}$/) as string,
    })
    const [next, other] = [
      await serve({ keyStore: store('server-next.pem') }),
      await serve({ keyStore: store('elsewhere.pem') }),
    ]
    expect(next.network.certificate!.subjectHash).toBe(network.certificate!.subjectHash)
    expect(other.network.certificate!.subjectHash).not.toBe(network.certificate!.subjectHash)
    expect(tlsNetwork({ trustStore: trusted }).certificate).toBeUndefined()
  })
})

describe('reloading certificates', () => {
  it('applies to new connections, and existing ones continue', async () => {
    const folder = scratch()
    const file = join(folder, 'server.pem')
    copyFileSync(path('server.pem'), file)
    const server = await serve({ keyStore: { path: file } })
    const before = await connect(server)
    expect(await server.network.reload()).toBe(false)
    copyFileSync(path('server-next.pem'), file)
    expect(await server.network.reload()).toBe(true)
    const after = await connect(server)
    const [old, fresh] = [before, after].map(({ peerCertificates }) =>
      Buffer.from(peerCertificates![0]!).toString('hex'),
    )
    expect(fresh).not.toBe(old)
    expect(before.bufferedBytes).toBe(0)
  })

  it('rejects unusable files and keeps the previous certificates', async () => {
    const folder = scratch()
    const file = join(folder, 'server.pem')
    copyFileSync(path('server.pem'), file)
    const server = await serve({ keyStore: { path: file } })
    writeFileSync(file, 'half a file')
    await expect(server.network.reload()).rejects.toThrow(
      /server\.pem cannot be used: it holds no private key/,
    )
    await connect(server)
    copyFileSync(path('server-next.pem'), file)
    expect(await server.network.reload()).toBe(true)
  })

  const cases: readonly (readonly [string, (file: string) => void])[] = [
    ['garbage', (file) => writeFileSync(file, Buffer.alloc(5000, 'geheim\n\xff'))],
    ['blocks without ends', (file) => writeFileSync(file, '-----BEGIN CERTIFICATE-----\n'.repeat(100_000))],
    ['nothing', (file) => writeFileSync(file, '')],
    ['half of it', (file) => truncateSync(file, Math.floor(statSync(file).size / 2))],
    ['no file', (file) => unlinkSync(file)],
    ['a symbolic link to nowhere', (file) => replaceBy(file, () => symlinkSync('nowhere', file))],
    ['a symbolic link to itself', (file) => replaceBy(file, () => symlinkSync(file, file))],
    ['a folder', (file) => replaceBy(file, () => mkdirSync(file))],
    ['a file of 1 GB', (file) => truncateSync(file, 1e9)],
    ['a pipe without a writer', (file) => replaceBy(file, () => execFileSync('mkfifo', [file]))],
    ['a device without end', (file) => replaceBy(file, () => symlinkSync('/dev/zero', file))],
  ]
  const replaceBy = (file: string, make: () => void): void => {
    unlinkSync(file)
    make()
  }

  describe.skipIf(process.platform === 'win32')('keeps the previous ones, and repeats nothing of', () => {
    it.each(cases)('%s in place of a file', async (_, spoil) => {
      for (const which of ['keyStore', 'passwordPath', 'trustStore', 'revocationList'] as const) {
        const folder = scratch()
        const names = ['keyStore.p12', 'passwordPath', 'trustStore.pem', 'revocationList'] as const
        const [keyPath, passwordPath, trustPath, revocationList] = names.map((name) => join(folder, name))
        copyFileSync(path('server.p12'), keyPath!)
        writeFileSync(passwordPath!, 'secret')
        copyFileSync(path('revoking-authority.pem'), trustPath!)
        copyFileSync(path('revoking.crl'), revocationList!)
        const server = await serve({
          keyStore: { path: keyPath!, passwordPath: passwordPath! },
          trustStore: { path: trustPath! },
          revocationList: revocationList!,
          clientAuth: 'need',
        })
        const target = join(
          folder,
          names.find((name) => name.startsWith(which))!,
        )
        spoil(target)
        const errors = await Promise.all(
          [1, 2].map(() => server.network.reload().then(String, (error: Error) => error)),
        )
        for (const error of errors) {
          expect(error).toBeInstanceOf(CertificateError)
          expect((error as Error).message).toContain(folder)
          expect((error as Error).message).not.toMatch(/geheim/)
        }
        await connect(server, { keyStore: store('kept.pem') })
        expect(await server.next()).not.toBeTypeOf('string')
        await connect(server, { keyStore: store('revoked.pem') }).catch(() => {})
        expect(await server.next()).toMatch(/CERT_REVOKED/)
      }
    })
  })

  it('parses files that cannot be used once, until they change', async () => {
    const file = join(scratch(), 'server.pem')
    copyFileSync(path('server.pem'), file)
    const server = await serve({ keyStore: { path: file } })
    writeFileSync(file, 'half a file')
    const failed = () => server.network.reload().catch((error: unknown) => error)
    expect(await failed()).toBe(await failed())
    copyFileSync(path('server.pem'), file)
    expect(await server.network.reload()).toBe(false)
  })

  it('removes the trust in clients', async () => {
    const folder = scratch()
    const file = join(folder, 'trusted.pem')
    copyFileSync(path('authority.pem'), file)
    const server = await serve({ trustStore: { path: file }, clientAuth: 'need' })
    await connect(server, { keyStore: store('alice.pem') })
    expect(await server.next()).not.toBeTypeOf('string')
    copyFileSync(path('stranger-authority.pem'), file)
    await server.network.reload()
    await connect(server, { keyStore: store('alice.pem') }).catch(() => {})
    expect(await server.next()).toMatch(/failed/)
  })
})

describe('TLS handshakes', () => {
  it('that time out are closed, and bytes that are not TLS are refused', async () => {
    const server = await serve({ handshakeTimeoutMs: 1 })
    const silent = connectPlain(server.address.port, '127.0.0.1')
    expect(await server.next()).toMatch(/a TLS handshake took more than 1 ms/)
    silent.destroy()
    const other = await serve()
    const plain = connectPlain(other.address.port, '127.0.0.1')
    plain.end('GET / HTTP/1.1\r\n\r\n')
    expect(await other.next()).toMatch(/TLS handshake of .* failed/)
  })

  it('that a client abandons are not reported as refused, and are no longer counted', async () => {
    const server = await serve({ handshakeLimit: 1 })
    const probe = connectPlain(server.address.port, '127.0.0.1')
    await once(probe, 'connect')
    probe.resetAndDestroy()
    // Counted until the server has seen the reset; until then other clients are refused.
    let outcome: Connection | string
    do {
      await connect(server).catch(() => {})
      outcome = await server.next()
    } while (typeof outcome === 'string' && outcome.includes('still at a TLS handshake'))
    expect(outcome).not.toBeTypeOf('string')
  })

  it('are limited in number', async () => {
    const server = await serve({ handshakeLimit: 1 })
    const first = connectPlain(server.address.port, '127.0.0.1')
    await once(first, 'connect')
    const second = connectPlain(server.address.port, '127.0.0.1')
    expect(await server.next()).toMatch(/is refused: 1 others are still at a TLS handshake/)
    first.destroy()
    second.destroy()
  })
})

function scratch(): string {
  const folder = mkdtempSync(join(tmpdir(), 'zabra-tls-'))
  folders.push(folder)
  return folder
}
