import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import type { TlsFault } from '@zabra/runtime'
import { startTlsFault, tlsFaultCases } from '@zabra/testkit/tls-fault-servers'
import { beforeAll, describe, expect, it } from 'vitest'
import { setupStage, stage } from './testing/cli-fixture.ts'

const certificate = (name: string): string =>
  join(import.meta.dirname, '../../../packages/runtime/src/testdata/tls', name)

setupStage({
  secureClientPort: 0,
  sslKeyStoreLocation: certificate('server.pem'),
  sslTrustStoreLocation: certificate('authority.pem'),
  sslClientAuth: 'need',
})
let secure: string
beforeAll(async () => {
  const { port } = stage.server.listeners.find(({ key }) => key === 'secureClientPort')!.address
  secure = `localhost:${port}`
})

const trusting = ['--ca', certificate('authority.pem'), '--cert', certificate('alice.pem')]

describe('over TLS', () => {
  it('commands connect to the server with a client certificate', async () => {
    const { code, out } = await stage.run(['whoami', '--tls', '--server', secure, ...trusting])
    expect(code).toBe(0)
    expect(out).toContain('x509: ')
    const environment = {
      ZABRA_SERVER: secure,
      ZABRA_TLS: '1',
      ZABRA_CA: certificate('authority.pem'),
      ZABRA_CERT: certificate('alice.pem'),
    }
    expect(await stage.run(['ls', '/'], { environment })).toMatchObject({ code: 0, out: 'zookeeper\n' })
  })

  it('a key may be in a separate PEM file, and a PKCS #12 file may hold key and certificate', async () => {
    const pem = readFileSync(certificate('alice.pem'), 'utf8')
    const [key, chain] = [join(stage.folder, 'alice.key'), join(stage.folder, 'alice.crt')]
    writeFileSync(key, pem.slice(0, pem.indexOf('-----BEGIN CERTIFICATE')))
    writeFileSync(chain, pem.slice(pem.indexOf('-----BEGIN CERTIFICATE')))
    const at = ['whoami', '--tls', '--server', secure]
    const trust = ['--ca', certificate('authority.pem')]
    const apart = await stage.run([...at, ...trust, '--cert', chain, '--key', key])
    expect(apart).toMatchObject({ code: 0, out: expect.stringContaining('x509: CN=alice') })
    const environment = { ZABRA_CERT: chain, ZABRA_KEY: key }
    expect(await stage.run([...at, ...trust], { environment })).toMatchObject({ code: 0 })
    const stores = ['--ca', certificate('authority.p12'), '--cert', certificate('alice.p12')]
    const passwords = { ZABRA_CA_PASSWORD: 'secret', ZABRA_CERT_PASSWORD: 'secret' }
    expect(await stage.run([...at, ...stores], { environment: passwords })).toMatchObject({
      code: 0,
      out: expect.stringContaining('x509: CN=alice'),
    })
  })

  it.each([
    [['--key', certificate('alice.pem')], 'got --key alone'],
    [
      ['--cert', certificate('alice.p12'), '--key', certificate('alice.pem')],
      'Leave out the file with the key',
    ],
    [
      ['--cert', certificate('alice.pem'), '--key', certificate('authority.pem')],
      'holds no private key in PEM',
    ],
    [['--cert', certificate('alice.pem'), '--key', certificate('server.pem')], 'none of its certificates'],
    [['--cert', certificate('server.jks')], 'keytool -importkeystore'],
    [['--cert', certificate('alice-locked.pem')], 'set its password'],
  ])('%j is refused with an explanation', async (argv, text) => {
    for (const at of [
      ['--tls', '--server', secure],
      ['--server', `tls://${secure}`],
    ])
      expect(await stage.run(['ls', ...at, ...argv])).toMatchObject({
        code: 2,
        err: expect.stringContaining(text),
      })
  })

  it('a scheme in the address makes --tls unnecessary, and the chroot is kept', async () => {
    await stage.createNodes({ '/sub': null, '/sub/leaf': null })
    const server = `tls://${secure}/sub`
    expect(await stage.run(['ls', '/', '--server', server, ...trusting])).toMatchObject({ out: 'leaf\n' })
    expect((await stage.run(['ls', '/', '--tls', '--server', `${secure}/sub`, ...trusting])).out).toBe(
      'leaf\n',
    )
  })

  it('status queries members over TLS', async () => {
    expect(await stage.run(['status', secure, '--tls', ...trusting])).toMatchObject({
      code: 0,
      out: expect.stringContaining('standalone'),
    })
  })

  it('a port without TLS is reported as such, on one line', async () => {
    const web = createServer((socket) => {
      socket.on('error', () => {}).once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))
    })
    await new Promise<void>((resolve) => web.listen(0, '127.0.0.1', resolve))
    const { port } = web.address() as { port: number }
    expect(await stage.run(['ls', '--tls', '--server', `127.0.0.1:${port}`])).toMatchObject({
      code: 8,
      err: expect.stringMatching(/^zabra: .*it answers without TLS\. This port does not use TLS: .*\n$/),
    })
    web.close()
  })

  it('a port of a server without TLS is reported as such', async () => {
    const { port } = stage.server.addresses.client
    expect(await stage.run(['ls', '--tls', '--server', `127.0.0.1:${port}`])).toMatchObject({
      code: 8,
      err: expect.stringMatching(/it answers without TLS\. .*leave out --tls and tls:\/\/.*\n$/),
    })
  })

  /** What an error has to advise. */
  const advice: Readonly<Record<TlsFault, RegExp>> = {
    expired: /zabra cert renew/,
    notYetValid: /Check the clocks/,
    untrusted: /--ca or ZABRA_CA/,
    wrongHost: /Connect by another name/,
    wrongPurpose: /zabra cert issue/,
    revoked: /zabra cert issue/,
    noRevocationList: /revocation list/,
    damaged: /zabra cert issue/,
    clientCertificate: /--cert or ZABRA_CERT/,
    handshakeFailure: /--cert or ZABRA_CERT/,
    noCommonVersion: /ssl\.protocol/,
    plaintext: /leave out --tls/,
    refused: /log has the reason/,
  }

  // The command line has no options for versions and revocation lists.
  const cases = tlsFaultCases.filter(
    ({ client }) => client.versions === undefined && client.revocationList === undefined,
  )
  it.each(cases.map((one) => [one.name, one] as const))(
    'a command names the fault of a server with %s, on one line, and says what to do',
    async (_name, one) => {
      const { client, reason, fault } = one
      const server = await startTlsFault(one)
      const flags = [
        ...(client.trustStore === undefined ? [] : ['--ca', client.trustStore.path]),
        ...(client.keyStore === undefined ? [] : ['--cert', client.keyStore.path]),
      ]
      try {
        const at = `localhost:${server.port}`
        for (const argv of [
          ['ls', '/', '--tls', '--server', at],
          ['ls', '/', '--server', `wss://${at}/`],
          ['session', 'list', '--admin', `https://${at}`],
        ]) {
          const { code, err } = await stage.run([...argv, ...flags])
          expect({ argv, err, code }).toMatchObject({ code: 8, err: expect.stringMatching(/^zabra: .*\n$/) })
          // A reset has no reason: the server ends the connection before or after the handshake.
          if (fault !== undefined || !argv.includes('--admin')) expect(err).toContain(reason)
          if (fault !== undefined) expect(err).toMatch(advice[fault])
          expect(err).not.toMatch(/error:[\dA-F]{8}|SSL routines|\.c:/)
        }
        const status = await stage.run(['status', at, '--tls', ...flags])
        expect(status.out).toContain(reason)
        expect(status.out).not.toMatch(/error:[\dA-F]{8}|SSL routines|\.c:/)
      } finally {
        await server.close()
      }
    },
  )

  it('an untrusted server exits with 8, and an invalid certificate file with 2', async () => {
    const ca = ['--ca', certificate('stranger-authority.pem'), '--cert', certificate('alice.pem')]
    expect(await stage.run(['ls', '--tls', '--server', secure, ...ca])).toMatchObject({ code: 8 })
    expect(await stage.run(['ls', '--tls', '--server', secure])).toMatchObject({
      code: 8,
      err: expect.stringMatching(
        /^zabra: Cannot connect to \S+ \(\w+\): its certificate is .* --ca or ZABRA_CA, .*\n$/,
      ),
    })
    const none = await stage.run(['ls', '--tls', '--server', secure, '--ca', '/no/such.pem'])
    expect(none).toMatchObject({ code: 2, err: expect.stringContaining('/no/such.pem') })
    expect(await stage.run(['ls', '--server', 'http://localhost:1'])).toMatchObject({ code: 2 })
  })
})
