// oxlint-disable no-restricted-imports -- certificates are files
import { readFileSync } from 'node:fs'
import { nodeNetwork, nodePlatform, tlsNetwork } from '@zabra/runtime/node'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { parseConfiguration } from '../core/quorum/index.ts'
import { connectToMaster } from './connect-to-master.ts'
import type { MemberContext } from './context.ts'
import { encodeHello } from './election-hello.ts'
import {
  followerInfo,
  hostOf,
  TestLogger,
  MemberSecurityFixture,
  type StoreOptions,
} from './testing/member-security-fixture.ts'

let fixture: MemberSecurityFixture
beforeEach(() => void (fixture = new MemberSecurityFixture()))
afterEach(() => fixture.close())

type BadCertificate = Pick<StoreOptions, 'from' | 'days'> & { readonly isForeign?: boolean }

const text = (value: string): Uint8Array => new TextEncoder().encode(value)
const hello = (id: number): Uint8Array => encodeHello(id, [{ host: hostOf(id), port: 3888 }], false)

describe('members with sslQuorum', () => {
  it('exchange messages over TLS, and each has proved its id', async () => {
    const one = await fixture.elections(1)
    const two = await fixture.elections(2)
    two.connections.send(1, text('vote of 2'))
    expect(await one.messages(1)).toEqual(['2: vote of 2'])
    one.connections.send(2, text('vote of 1'))
    expect(await two.messages(1)).toEqual(['1: vote of 1'])
    expect([one.authenticated, two.authenticated]).toEqual([new Set([2]), new Set([1])])
  })

  it.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'speak %s alone if it is the only one enabled',
    async (version) => {
      const settings = { quorumEnabledProtocols: [version] }
      const one = await fixture.elections(1, settings)
      const two = await fixture.elections(2, settings)
      two.connections.send(1, text('x'))
      expect(await one.messages(1)).toEqual(['2: x'])
    },
  )

  it('refuse plaintext with one line that says so', async () => {
    const one = await fixture.elections(1)
    const stranger = await fixture.dial(nodeNetwork, one.address, hello(2))
    await stranger.closed
    expect(await one.log.matching(/plaintext/)).toMatch(
      /^warn A connection to the election port was closed .*"address":"127\.0\.0\.1:\d+"/,
    )
    expect([stranger.received, one.received]).toEqual(['', []])
  })

  it('close a handshake that is held open', async () => {
    const one = await fixture.elections(1, { quorumHandshakeTimeoutMs: 50 })
    const beginning = Uint8Array.of(0x16, 3, 1, 2, 0, 1, 0)
    const stranger = await fixture.dial(nodeNetwork, one.address, beginning)
    await stranger.closed
    expect(await one.log.matching(/TLS handshake took more than 50 ms/)).toContain('election port')
  })
})

describe('a certificate', () => {
  it('of another member is refused: it does not name a host of the claimed server', async () => {
    const one = await fixture.elections(1)
    const store = fixture.store('three', { hosts: [hostOf(3)] })
    const three = await fixture.dial(fixture.networkWith(store), one.address, hello(2))
    await three.closed
    expect(await one.log.matching(/expected the certificate/)).toContain(
      'expected the certificate of server 2 for 127.0.0.2, got one of CN=three for 127.0.0.3',
    )
    expect(one.connections.connected).toEqual([])
  })

  it.each([
    ['of another authority', { isForeign: true }, /SELF_SIGNED|UNABLE_TO/],
    ['that has expired', { from: new Date('2024-01-01'), days: 10 }, /CERT_HAS_EXPIRED/],
    ['that is not valid yet', { from: new Date(Date.now() + 86_400_000), days: 10 }, /CERT_NOT_YET_VALID/],
  ] as const)('%s is refused before any byte is parsed', async (_, options: BadCertificate, reason) => {
    const one = await fixture.elections(1)
    const authority = options.isForeign === true ? fixture.stranger : fixture.authority
    const store = fixture.store('bad', { ...options, hosts: [hostOf(2)], authority })
    const stranger = await fixture.dial(fixture.networkWith(store), one.address, hello(2))
    await stranger.closed
    expect(await one.log.matching(reason)).toContain('election port')
    expect(one.connections.connected).toEqual([])
  })

  it('of another member at the address of a server is not sent any vote', async () => {
    const imposter = await fixture.elections(1, {
      quorumKeyStoreLocation: fixture.store('imposter', { hosts: [hostOf(4)] }),
    })
    const two = await fixture.elections(2)
    two.connections.send(1, text('secret'))
    expect(await two.log.matching(/cannot be reached/)).toMatch(
      /is not server 1: expected the certificate of server 1 for 127\.0\.0\.1, got one of CN=imposter for 127\.0\.0\.4/,
    )
    expect(imposter.received).toEqual([])
  })

  it('of another member is logged, although the server could not be reached at all before', async () => {
    const two = await fixture.elections(2)
    two.connections.connect(1)
    expect(await two.log.matching(/cannot be reached/)).toContain('ECONNREFUSED')
    await fixture.elections(1, { quorumKeyStoreLocation: fixture.store('imposter', { hosts: [hostOf(4)] }) })
    expect(await two.log.matching(/is not server 1/)).toContain('Another server cannot be reached')
  })

  it('of another member keeps a learner from its leader', async () => {
    await fixture.elections(1, {
      quorumKeyStoreLocation: fixture.store('imposter', { hosts: [hostOf(4)] }),
    })
    const settings = fixture.settings(2, { connectToLearnerMasterLimit: 1, tickTimeMs: 20_000 })
    const context = {
      settings,
      platform: nodePlatform(),
      security: fixture.security(settings),
      membership: fixture,
    } as unknown as MemberContext
    const { signal } = new AbortController()
    const connecting = connectToMaster(context, { leader: 1, isObserver: false, signal })
    await expect(connecting).rejects.toThrow(/expected the certificate of server 1 for 127\.0\.0\.1/)
  })

  it('of another member keeps an observer from a follower, and says so', async () => {
    const imposter = await fixture.elections(1, {
      quorumKeyStoreLocation: fixture.store('imposter', { hosts: [hostOf(4)] }),
    })
    const settings = fixture.settings(2, { observerMasterPort: imposter.address.port, tickTimeMs: 2000 })
    const log = new TestLogger()
    const context = {
      settings,
      platform: nodePlatform({ logger: log }),
      security: fixture.security(settings),
      membership: {
        active: parseConfiguration(
          [1, 3].map((id) => `server.${id}=${hostOf(id)}:1:2:participant`).join('\n'),
        ),
        addressesOf: (id: number) => [{ host: hostOf(id), port: 1 }],
      },
    } as unknown as MemberContext
    const { signal } = new AbortController()
    const connecting = connectToMaster(context, { leader: 3, isObserver: true, signal })
    await expect(connecting).rejects.toThrow(/at 127\.0\.0\.3:1: .*ECONNREFUSED/)
    expect(await log.matching(/No follower accepts this observer/)).toContain(
      'expected the certificate of server 1 for 127.0.0.1, got one of CN=imposter for 127.0.0.4',
    )
    expect(imposter.received).toEqual([])
  })

  it('of another member is refused on the quorum port too', async () => {
    const { port, log, identified } = await fixture.quorumPort(fixture.settings(1))
    const [address] = port.addresses
    const packet = followerInfo(2)
    const [right, wrong] = [
      fixture.store('two', { hosts: [hostOf(2)] }),
      fixture.store('three', { hosts: [hostOf(3)] }),
    ]
    const stranger = await fixture.dial(fixture.networkWith(wrong), address!, packet)
    await stranger.closed
    expect(await log.matching(/quorum port/)).toContain('expected the certificate of server 2 for 127.0.0.2')
    expect(identified).toEqual([])
    const two = await fixture.dial(fixture.networkWith(right), address!, packet)
    await two.closed
    expect(identified).toEqual([{ serverId: 2, isAuthenticated: true }])
  })

  it('names a host by a common name only: it is refused', async () => {
    const one = await fixture.elections(1)
    const store = fixture.store('two', { name: hostOf(2) })
    const two = await fixture.dial(fixture.networkWith(store), one.address, hello(2))
    await two.closed
    expect(await one.log.matching(/expected the certificate/)).toContain(
      'got one of CN=127.0.0.2 for no host',
    )
  })
})

/** Returns a file of the certificates for tests. */
const testdata = (name: string): string =>
  new URL(`../../../runtime/src/testdata/tls/${name}`, import.meta.url).pathname

describe('ssl.quorum files', () => {
  const unverified = { quorumVerifiesHostNames: false }

  it('with a list of revoked certificates keep those out', async () => {
    const one = await fixture.elections(1, {
      ...unverified,
      quorumKeyStoreLocation: testdata('kept.pem'),
      quorumTrustStoreLocation: testdata('revoking-authority.pem'),
      quorumCrl: true,
      quorumCrlLocation: testdata('revoking.crl'),
    })
    const network = tlsNetwork({
      keyStore: { path: testdata('revoked.pem') },
      trustStore: { path: testdata('revoking-authority.pem') },
      verifyHostName: false,
    })
    const revoked = await fixture.dial(network, one.address, hello(2))
    await revoked.closed
    expect(await one.log.matching(/CERT_REVOKED/)).toContain('election port')
  })

  it('with a list of revoked certificates are read again while a server runs, for each port and in both directions', async () => {
    const list = fixture.file('revoked.crl', readFileSync(testdata('empty.crl'), 'utf8'))
    const settings = {
      ...unverified,
      quorumTrustStoreLocation: testdata('revoking-authority.pem'),
      quorumCrl: true,
      quorumCrlLocation: list,
    }
    const kept = { ...settings, quorumKeyStoreLocation: testdata('kept.pem') }
    const one = await fixture.elections(1, kept)
    const { port, log, identified, security } = await fixture.quorumPort(fixture.settings(1, kept))
    const revoked = { ...settings, quorumKeyStoreLocation: testdata('revoked.pem') }
    const two = await fixture.elections(2, { ...revoked, quorumCrl: false })
    const network = tlsNetwork({
      keyStore: { path: testdata('revoked.pem') },
      trustStore: { path: testdata('revoking-authority.pem') },
      verifyHostName: false,
    })
    const follow = async (): Promise<void> =>
      (await fixture.dial(network, port.addresses[0]!, followerInfo(2))).closed
    await follow()
    one.connections.send(2, text('x'))
    expect([await two.messages(1), identified]).toEqual([['1: x'], [{ serverId: 2, isAuthenticated: false }]])

    fixture.file('revoked.crl', readFileSync(testdata('revoking.crl'), 'utf8'))
    for (const member of [one.security, security]) await member.reload()
    await follow()
    expect(await log.matching(/CERT_REVOKED/)).toContain('quorum port')
    expect(identified).toHaveLength(1)
    await (
      await fixture.dial(network, one.address, hello(3))
    ).closed
    expect(await one.log.matching(/CERT_REVOKED/)).toContain('election port')
    await expect(one.security.network.connect(two.address)).rejects.toThrow(/revoked/i)
  })

  it('may be PKCS #12, with the password in a file', async () => {
    const settings = {
      ...unverified,
      quorumKeyStoreLocation: testdata('server.p12'),
      quorumKeyStorePasswordPath: fixture.file('password', 'secret\n'),
      quorumTrustStoreLocation: testdata('authority.p12'),
      quorumTrustStorePassword: 'secret',
    }
    const one = await fixture.elections(1, settings)
    const two = await fixture.elections(2, settings)
    two.connections.send(1, text('x'))
    expect(await one.messages(1)).toEqual(['2: x'])
  })

  it('in the format JKS, and unknown cipher suites, are refused at the start with the remedy', async () => {
    const jks = { quorumKeyStoreLocation: testdata('server.jks') }
    await expect(fixture.elections(1, jks)).rejects.toThrow(/keytool -importkeystore/)
    const ciphers = { quorumCipherSuites: ['TLS_FOO'] }
    await expect(fixture.elections(2, ciphers)).rejects.toThrow(
      /^ssl\.quorum\.ciphersuites: Expected cipher suites/,
    )
  })
})

describe('the check of certificates', () => {
  it.each([
    ['ssl.quorum.id', { quorumCertificateUri: 'spiffe://zabra/member/{id}' }],
    ['ssl.quorum.allowedSubjects', { quorumAllowedSubjects: 'CN=zk-{id}' }],
  ])('by %s replaces that of hosts', async (_, settings) => {
    const one = await fixture.elections(1, {
      ...settings,
      quorumKeyStoreLocation: fixture.store('zk-1', { uris: ['spiffe://zabra/member/1'] }),
    })
    const right = fixture.store('zk-2', { uris: ['spiffe://zabra/member/2'] })
    const wrong = fixture.store('zk-3', { hosts: [hostOf(2)], uris: ['spiffe://zabra/member/3'] })
    const stranger = await fixture.dial(fixture.networkWith(wrong), one.address, hello(2))
    await stranger.closed
    expect(await one.log.matching(/expected the certificate of server 2 with/)).toContain('CN=zk-3')
    const two = await fixture.elections(2, { ...settings, quorumKeyStoreLocation: right })
    two.connections.send(1, text('x'))
    expect(await one.messages(1)).toEqual(['2: x'])
  })

  it.each([
    ['hostnameVerification', { quorumVerifiesHostNames: false }],
    ['clientHostnameVerification', { quorumVerifiesClientHostNames: false }],
  ])('is off with %s=false', async (_, settings) => {
    const one = await fixture.elections(1, settings)
    const two = await fixture.elections(2, {
      quorumKeyStoreLocation: fixture.store('two', { hosts: ['elsewhere.example'] }),
    })
    two.connections.send(1, text('x'))
    expect(await one.messages(1)).toEqual(['2: x'])
    expect([...one.authenticated]).toEqual([])
  })

  it('of a server that no configuration names has to name the address that it comes from', async () => {
    const one = await fixture.elections(1, { reconfigEnabled: true })
    const client = fixture.networkWith(fixture.store('client'))
    const refused = await fixture.dial(client, one.address, hello(9))
    await refused.closed
    expect(await one.log.matching(/expected the certificate/)).toContain(
      'expected the certificate of server 9 for 127.0.0.1, got one of CN=client for no host',
    )
    const server = fixture.networkWith(fixture.store('nine', { hosts: ['127.0.0.1'] }))
    const joining = await fixture.dial(server, one.address, hello(9))
    expect(await one.log.matching(/Connected for elections/)).toContain('"peer":9')
    expect([...one.authenticated]).toEqual([])
    joining.connection.destroy()
  })

  it('with a URI proves the id of a server that no configuration names', async () => {
    const one = await fixture.elections(1, {
      reconfigEnabled: true,
      quorumCertificateUri: 'spiffe://zabra/member/{id}',
    })
    const networkOf = (id: number) =>
      fixture.networkWith(fixture.store(`uri-${id}`, { uris: [`spiffe://zabra/member/${id}`] }))
    await (
      await fixture.dial(networkOf(8), one.address, hello(9))
    ).closed
    expect(await one.log.matching(/expected the certificate/)).toContain('spiffe://zabra/member/9')
    const vote = text('x')
    const frame = Uint8Array.of(0, 0, 0, vote.length, ...vote)
    const bytes = Uint8Array.of(...hello(9), ...frame)
    const joining = await fixture.dial(networkOf(9), one.address, bytes)
    expect(await one.messages(1)).toEqual(['9: x'])
    expect([...one.authenticated]).toEqual([9])
    joining.connection.destroy()
  })

  it.each([
    ['a subject that all members share', 'CN=.*', []],
    ['a subject with the id', 'CN=two-{id}.*', [2]],
  ])('by %s proves an id only if it names one', async (_, quorumAllowedSubjects, proved) => {
    const one = await fixture.elections(1, { quorumAllowedSubjects })
    const two = await fixture.elections(2, { quorumKeyStoreLocation: fixture.store('two-2') })
    two.connections.send(1, text('x'))
    expect(await one.messages(1)).toEqual(['2: x'])
    expect([...one.authenticated]).toEqual(proved)
  })

  it('is impossible with clientAuth=none: members connect without a certificate', async () => {
    const one = await fixture.elections(1, { quorumClientAuth: 'none' })
    const bare = tlsNetwork({ trustStore: { path: fixture.trusted }, verifyHostName: false })
    const two = await fixture.dial(bare, one.address, hello(2))
    expect(await one.log.matching(/Connected for elections/)).toContain('"peer":2')
    two.connection.destroy()
  })
})

describe('the change from plaintext to TLS', () => {
  const plain = { sslQuorum: false }
  const both = { sslQuorum: false, quorumPortUnification: true }
  const secure = { sslQuorum: true, quorumPortUnification: true }
  const last = { sslQuorum: true }

  it.each([
    ['plain', 'portUnification', plain, both],
    ['portUnification', 'both', both, secure],
    ['both', 'sslQuorum alone', secure, last],
  ])('lets members with %s and %s talk in both directions', async (_, __, before, after) => {
    const one = await fixture.elections(1, before)
    const two = await fixture.elections(2, after)
    two.connections.send(1, text('x'))
    expect(await one.messages(1)).toEqual(['2: x'])
    const four = await fixture.elections(4, before)
    four.connections.send(2, text('y'))
    expect(await two.messages(1)).toEqual(['4: y'])
  })

  it('closes a connection that sends no first byte', async () => {
    const one = await fixture.elections(1, { ...both, quorumHandshakeTimeoutMs: 50 })
    const stranger = await fixture.dial(nodeNetwork, one.address)
    await stranger.closed
    expect(await one.log.matching(/first byte took more than 50 ms/)).toContain('election port')
  })
})

it('a member uses a renewed certificate without a restart, and keeps the old one while the new file is damaged', async () => {
  const one = await fixture.elections(1)
  fixture.file('server-1.pem', 'half a file')
  await one.security.reload()
  expect(await one.log.matching(/cannot be used; the old ones stay in use/)).toContain(
    'certificates for other members',
  )
  fixture.store('server-1', { name: 'renewed', hosts: [hostOf(1)] })
  await one.security.reload()
  await one.log.matching(/have changed; new connections use them/)
  const two = await fixture.elections(2)
  const connection = await two.security.network.connect(one.address)
  expect(connection.peer?.subject).toBe('CN=renewed')
  connection.setHandler({ data() {}, drain() {}, closed() {} })
  connection.destroy()
})
