// oxlint-disable no-restricted-imports -- a test of real files and sockets
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  OPEN_ACL_UNSAFE,
  OpCode,
  Perms,
  writeCreateRequest,
  writeGetDataRequest,
  type ACL,
} from '@zabra/protocol'
import {
  ManualClock,
  MemoryDisk,
  MemoryNetwork,
  type Connection,
  type Logger,
  type Network,
  type TlsOptions,
} from '@zabra/runtime'
import { httpUpgrades, nodeClock, nodePlatform, NodeTlsNetwork, tlsNetwork } from '@zabra/runtime/node'
import { createAuthority, issueCertificate } from '@zabra/runtime/node/certificate-authority'
import { webSocketNetwork } from '@zabra/runtime/ws'
import { afterEach, describe, expect, it } from 'vitest'
import { defaults, type ServerSettings } from '../settings/index.ts'
import type { Server } from '../server-types.ts'
import { createServer } from '../server.ts'
import { NetworkClient } from '../testing/network-client.ts'

const path = (name: string): string =>
  new URL(`../../../runtime/src/testdata/tls/${name}`, import.meta.url).pathname
const aliceName = 'CN=alice,OU=Tests,O=Zabra\\, Inc.,C=DE'

const servers: Server[] = []
const callers: { readonly connection: Pick<Connection, 'destroy'> }[] = []
const folders: string[] = []
afterEach(async () => {
  for (const { connection } of callers.splice(0)) connection.destroy()
  for (const server of servers.splice(0)) await server.close()
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true })
})

const local = {
  clientPortAddress: '127.0.0.1',
  secureClientPortAddress: '127.0.0.1',
  webSocketPortAddress: '127.0.0.1',
  fourLetterWords: ['*'],
}
const secure = {
  secureClientPort: 0,
  sslKeyStoreLocation: path('server.pem'),
  sslTrustStoreLocation: path('authority.pem'),
} as const

async function serve(
  settings: Partial<ServerSettings>,
  logger?: Partial<Logger>,
  disk = new MemoryDisk(),
): Promise<Server> {
  const silent = { error() {}, warn() {}, info() {}, debug() {} }
  const server = await createServer(
    defaults({ dataDir: '/data', ...local, ...settings }),
    nodePlatform({
      disk,
      logger: { ...silent, ...logger },
      networkFactories: {
        tls: tlsNetwork,
        webSocket: (limits, tls) =>
          webSocketNetwork({
            ...limits,
            clock: nodeClock,
            upgrades: httpUpgrades(tls instanceof NodeTlsNetwork ? { tls } : {}),
          }),
      },
    }),
  )
  servers.push(server)
  return server
}

/** The members of a TLS network that other networks lack. */
const secureParts = (network: Network, reload: () => Promise<boolean>) => ({
  reload,
  withPlaintext: () => network,
  handshakes: { active: 0, rejected: 0, failed: 0 },
  certificate: undefined,
})

async function call(server: Server, key: string, network: Network): Promise<NetworkClient> {
  const { address } = server.listeners.find((one) => one.key === key)!
  const caller = new NetworkClient(await network.connect(address))
  callers.push(caller)
  return caller
}

/** The same, with a session. */
async function open(server: Server, key: string, network: Network): Promise<NetworkClient> {
  const caller = await call(server, key, network)
  await caller.session()
  return caller
}

/** A TLS network of clients with the certificate of a file, or without one. */
const overTls = (name?: string, options: TlsOptions = {}): Network =>
  tlsNetwork({
    ...(name === undefined ? {} : { keyStore: { path: path(name), password: 'secret' } }),
    trustStore: { path: path('authority.pem') },
    ...options,
  })
const webSockets = webSocketNetwork({ clock: nodeClock })

const create =
  (name: string, acl: readonly ACL[] = OPEN_ACL_UNSAFE) =>
  (w: Parameters<typeof writeCreateRequest>[0]): void =>
    writeCreateRequest(w, { path: name, data: new Uint8Array(3), acl: [...acl], flags: 0 })
const get =
  (name: string) =>
  (w: Parameters<typeof writeGetDataRequest>[0]): void =>
    writeGetDataRequest(w, { path: name, watch: false })
const x509 = (id: string): ACL[] => [{ perms: Perms.ALL, id: { scheme: 'x509', id } }]
const PERSISTENT_RECURSIVE = 1
const NO_AUTH = -102
const INVALID_ACL = -114

describe('a server with every transport', () => {
  it('serves one tree on all of them, and lists its ports', async () => {
    const server = await serve({ clientPort: 0, ...secure, webSocketPort: 0 })
    expect(server.listeners.map(({ key, secure }) => [key, secure])).toEqual([
      ['clientPort', false],
      ['secureClientPort', true],
      ['webSocketPort', false],
    ])
    const [plain, tls, web] = await Promise.all([
      call(server, 'clientPort', nodePlatform().network),
      call(server, 'secureClientPort', overTls('alice.p12')),
      call(server, 'webSocketPort', webSockets),
    ])
    for (const caller of [plain!, tls!, web!]) expect(await caller.session()).toBeGreaterThan(0n)
    expect((await plain!.request(1, OpCode.create, create('/seen'))).err).toBe(0)
    for (const caller of [tls!, web!])
      expect((await caller.request(2, OpCode.getData, get('/seen'))).err).toBe(0)
    expect(server.stats().connections).toBe(3)
  })

  it('counts the connections of all of them for maxClientCnxns', async () => {
    const server = await serve({ clientPort: 0, ...secure, webSocketPort: 0, maxClientCnxns: 2 })
    const first = await call(server, 'clientPort', nodePlatform().network)
    const second = await call(server, 'webSocketPort', webSockets)
    expect([await first.session(), await second.session()]).not.toContain(undefined)
    const third = await call(server, 'secureClientPort', overTls('alice.pem'))
    expect(await third.session()).toBeUndefined()
  })

  it('has no plaintext port when only secureClientPort is set', async () => {
    const server = await serve(secure)
    expect(server.listeners.map(({ key }) => key)).toEqual(['secureClientPort'])
    expect(server.addresses.client).toEqual(server.listeners[0]!.address)
  })

  it('answers four-letter commands over TLS, and not over WebSockets', async () => {
    const server = await serve({ ...secure, webSocketPort: 0 })
    const asking = await call(server, 'secureClientPort', overTls('alice.pem'))
    expect(await asking.command('conf')).toMatch(
      new RegExp(`^clientPort=-1\nsecureClientPort=${server.listeners[0]!.address.port}\n`),
    )
    const page = await call(server, 'webSocketPort', webSockets)
    expect(await page.command('ruok')).toBe('')
  })

  it('is not ready while its certificate has ended, and is again with the next one', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'zabra-ended-'))
    folders.push(folder)
    const file = join(folder, 'server.pem')
    const authority = createAuthority({ name: 'Tests', days: 10 })
    const write = (from: Date): void => {
      const { certificate, key } = issueCertificate(authority, {
        name: 'server',
        hosts: ['localhost'],
        days: 1,
        from,
      })
      writeFileSync(file, key + certificate)
    }
    write(new Date(Date.now() - 2 * 86_400_000))
    const server = await serve({ ...secure, sslKeyStoreLocation: file })
    expect(server.ready).toBe(false)
    write(new Date())
    await server.reload()
    expect(server.ready).toBe(true)
  })

  it('frees all its ports when it closes', async () => {
    const server = await serve({ clientPort: 0, ...secure, webSocketPort: 0 })
    await server.close()
    for (const { address } of server.listeners)
      await expect(nodePlatform().network.connect(address)).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  })
})

describe('clients with many watch events that do not read', () => {
  // Some 100 MB of events cross the sockets, which is slow on a busy machine.
  it(
    'are disconnected with a reason on every transport, and other clients are served',
    { timeout: 240_000 },
    async () => {
      const reasons: string[] = []
      const info = (_: object, sentence: string): void => {
        if (sentence.includes('not read by')) reasons.push(sentence)
      }
      // No session may expire on a slow machine.
      const longTimeouts = { minSessionTimeoutMs: 300_000, maxSessionTimeoutMs: 300_000 }
      const server = await serve({ clientPort: 0, ...secure, webSocketPort: 0, ...longTimeouts }, { info })
      const slow = await Promise.all([
        call(server, 'clientPort', nodePlatform().network),
        call(server, 'secureClientPort', overTls('alice.pem')),
        call(server, 'webSocketPort', webSockets),
      ])
      for (const caller of slow) {
        // The client sends nothing from here on, and must be disconnected before its session expires.
        await caller.session(40_000)
        const watch = await caller.request(1, OpCode.addWatch, (w) => {
          w.string('/')
          w.int(PERSISTENT_RECURSIVE)
        })
        expect(watch.err).toBe(0)
        caller.connection.pause()
      }
      const busy = await open(server, 'clientPort', nodePlatform().network)
      // Each event has the path, so a long path makes many bytes of few changes.
      const name = `/${'x'.repeat(900_000)}`
      for (let xid = 1; xid < 100; xid += 2) {
        busy.send(xid, OpCode.create, create(name))
        busy.send(xid + 1, OpCode.delete, (w) => {
          w.string(name)
          w.int(-1)
        })
      }
      // Only the connection that writes stays.
      while (server.stats().connections > 1) await new Promise((resolve) => setImmediate(resolve))
      // One line for all three, which have the same address.
      expect(reasons).toEqual([expect.stringMatching(/^Closed: \d{8} bytes are not read by the client$/)])
      const other = await call(server, 'clientPort', nodePlatform().network)
      expect(await other.session()).toBeGreaterThan(0n)
    },
  )
})

describe('the memory for clients', () => {
  it('counts more for a connection with TLS than for one without', async () => {
    const cuts: string[] = []
    const warn = (_: object, sentence: string): void => {
      if (sentence.startsWith('Cut the connection')) cuts.push(sentence)
    }
    const server = await serve({ clientPort: 0, ...secure, clientMemoryBytes: 400_000 }, { warn })
    for (let i = 0; i < 10; i++) await open(server, 'clientPort', nodePlatform().network)
    expect(cuts).toEqual([])
    for (let i = 0; i < 15 && cuts.length === 0; i++)
      await open(server, 'secureClientPort', overTls('alice.pem'))
    expect(cuts[0]).toMatch(/holds most memory, 3\d{4} bytes/)
  })

  it('counts messages over WebSockets that are never completed, and the connections with most of them are cut', async () => {
    const cuts: object[] = []
    const warn = (facts: object, sentence: string): void => {
      if (sentence.startsWith('Cut the connection')) cuts.push(facts)
    }
    const settings = { clientPort: 0, webSocketPort: 0, maxClientCnxns: 0, clientMemoryBytes: 4_000_000 }
    const server = await serve(settings, { warn })
    const honest = await open(server, 'webSocketPort', webSockets)
    const { address } = server.listeners.find(({ key }) => key === 'webSocketPort')!
    const key = btoa('0'.repeat(16))
    const upgrade = `GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n\r\n`
    // The first fragment of a binary message, of a million bytes of which most never come.
    const fragment = new Uint8Array(60_000)
    fragment.set([0x02, 0xff, 0, 0, 0, 0, 0, 0x0f, 0, 0])
    let closed = 0
    await Promise.all(
      Array.from({ length: 100 }, async () => {
        const connection = await nodePlatform().network.connect(address)
        connection.setHandler({ data() {}, drain() {}, closed: () => void closed++ })
        connection.write(new TextEncoder().encode(upgrade))
        connection.write(fragment)
        callers.push({ connection })
      }),
    )
    while (closed < 35) await new Promise((resolve) => setImmediate(resolve))
    for (const cut of cuts as { partial: number; unsent: number }[])
      expect(cut.partial).toBeGreaterThan(59_000)
    expect(cuts.length).toBeGreaterThan(0)
    expect((await honest.request(1, OpCode.getData, get('/'))).err).toBe(0)
  })
})

describe('a port that gets the bytes of another protocol', () => {
  const [http, tls, zookeeper] = [
    'GET / HTTP/1.1\r\nhost: a\r\n\r\n',
    '\x16\x03\x01\x00\x05\x01\x00\x00\x01\x03',
    '\0\0\0\x2c\0\0\0\0',
  ].map((text) => Uint8Array.from(text, (letter) => letter.charCodeAt(0))) as [
    Uint8Array,
    Uint8Array,
    Uint8Array,
  ]

  it.each([
    ['secureClientPort', 'HTTP', http, 'a plaintext HTTP request where TLS'],
    ['secureClientPort', 'a ZooKeeper client', zookeeper, 'plaintext where TLS'],
    ['webSocketPort', 'HTTP', http, 'plain HTTP request'],
    ['webSocketPort', 'TLS', tls, 'a TLS handshake'],
    ['webSocketPort', 'a ZooKeeper client', zookeeper, 'the bytes of a ZooKeeper client without WebSocket'],
  ])('is %s and says in the log that it was %s', async (key, _name, bytes, expected) => {
    let noted: (line: string) => void = () => {}
    const line = new Promise<string>((resolve) => (noted = resolve))
    const server = await serve(
      { ...secure, sslClientAuth: 'none', webSocketPort: 0 },
      {
        info: (facts, sentence) =>
          sentence === 'A client could not be accepted' && noted(JSON.stringify(facts)),
      },
    )
    const { address } = server.listeners.find((one) => one.key === key)!
    const connection = await nodePlatform().network.connect(address)
    connection.setHandler({ data() {}, drain() {}, closed() {} })
    connection.write(bytes)
    expect(await line).toContain(expected)
    connection.destroy()
  })
})

describe('a client certificate', () => {
  it('is an identity of the scheme x509, which ACLs can name', async () => {
    const server = await serve({ clientPort: 0, ...secure })
    const alice = await open(server, 'secureClientPort', overTls('alice.p12'))
    const odd = await open(server, 'secureClientPort', overTls('odd.pem'))
    const plain = await open(server, 'clientPort', nodePlatform().network)
    expect(await alice.whoAmI()).toEqual(['ip:127.0.0.1', `x509:${aliceName}`])
    expect((await alice.request(2, OpCode.create, create('/hers', x509(aliceName)))).err).toBe(0)
    expect((await alice.request(3, OpCode.getData, get('/hers'))).err).toBe(0)
    for (const caller of [odd, plain])
      expect((await caller.request(4, OpCode.getData, get('/hers'))).err).toBe(NO_AUTH)
    expect((await plain.request(5, OpCode.create, create('/bad', x509('alice')))).err).toBe(INVALID_ACL)
  })

  it('is the identity of the scheme auth in an ACL', async () => {
    const server = await serve(secure)
    const alice = await open(server, 'secureClientPort', overTls('alice.p12'))
    const auth: ACL[] = [{ perms: Perms.ALL, id: { scheme: 'auth', id: '' } }]
    expect((await alice.request(1, OpCode.create, create('/own', auth))).err).toBe(0)
    const { body } = await alice.request(2, OpCode.getACL, (w) => w.string('/own'))
    expect([body.int(), body.int(), body.string(), body.string()]).toEqual([1, Perms.ALL, 'x509', aliceName])
  })

  it('makes a super user of its client when x509SuperUser names its subject', async () => {
    const server = await serve({ ...secure, x509SuperUser: aliceName })
    const odd = await open(server, 'secureClientPort', overTls('odd.pem'))
    const alice = await open(server, 'secureClientPort', overTls('alice.p12'))
    expect((await odd.request(1, OpCode.create, create('/odd', x509('CN=nobody')))).err).toBe(0)
    expect((await odd.request(2, OpCode.getData, get('/odd'))).err).toBe(NO_AUTH)
    expect((await alice.request(2, OpCode.getData, get('/odd'))).err).toBe(0)
  })

  it('gives an identity from its alternative name when the settings say so', async () => {
    const server = await serve({ ...secure, x509IdType: 'SAN', x509SanExtract: '\\((.+);', x509SanGroup: 1 })
    const alice = await open(server, 'secureClientPort', overTls('alice.p12'))
    expect(await alice.whoAmI()).toEqual(['ip:127.0.0.1', 'x509:alice'])
  })

  it('satisfies enforce.auth.schemes, and a client without one is refused', async () => {
    const server = await serve({
      ...secure,
      sslClientAuth: 'want',
      enforceAuthEnabled: true,
      enforceAuthSchemes: ['x509'],
    })
    const alice = await open(server, 'secureClientPort', overTls('alice.p12'))
    const anonymous = await open(server, 'secureClientPort', overTls())
    expect((await alice.request(1, OpCode.create, create('/a'))).err).toBe(0)
    expect((await anonymous.request(1, OpCode.create, create('/b'))).err).toBe(-124)
    await anonymous.closed()
  })

  it('is needed to resume a session that was opened with it, after a restart too', async () => {
    const disk = new MemoryDisk()
    const settings = { clientPort: 0, ...secure, sslClientAuth: 'want' } as const
    let server = await serve(settings, undefined, disk)
    const alice = await call(server, 'secureClientPort', overTls('alice.p12'))
    const session = (await alice.handshake(undefined, 40_000))!
    const resumedBy = async (key: string, network: Network): Promise<boolean> => {
      const { sessionId } = (await (await call(server, key, network)).handshake(session, 40_000))!
      return sessionId === session.sessionId
    }
    const expectOnlyAlice = async (): Promise<void> => {
      expect(await resumedBy('secureClientPort', overTls('odd.pem'))).toBe(false)
      expect(await resumedBy('secureClientPort', overTls())).toBe(false)
      expect(await resumedBy('clientPort', nodePlatform().network)).toBe(false)
      if (server === servers[0]) expect((await alice.request(1, OpCode.exists, get('/'))).err).toBe(0)
      // The same certificate from another file.
      expect(await resumedBy('secureClientPort', overTls('alice.pem'))).toBe(true)
    }
    await expectOnlyAlice()
    await server.close()
    server = await serve(settings, undefined, disk)
    await expectOnlyAlice()
  })

  it('can be presented again in an auth packet, which fails without a certificate', async () => {
    const server = await serve({ ...secure, sslClientAuth: 'want' })
    const offer = (w: Parameters<typeof writeGetDataRequest>[0]): void => {
      w.int(0)
      w.string('x509')
      w.buffer(null)
    }
    const alice = await open(server, 'secureClientPort', overTls('alice.p12'))
    const anonymous = await open(server, 'secureClientPort', overTls())
    expect((await alice.request(-4, OpCode.auth, offer)).err).toBe(0)
    expect((await alice.whoAmI()).length).toBe(2)
    expect((await anonymous.request(-4, OpCode.auth, offer)).err).toBe(-115)
    await anonymous.closed()
  })

  it('is an identity over WebSockets with TLS too', async () => {
    const server = await serve({ ...secure, webSocketPort: 0, webSocketSecure: true })
    const { readFileSync } = await import('node:fs')
    const pem = readFileSync(path('alice.pem'))
    const network = webSocketNetwork({
      clock: nodeClock,
      client: { ca: readFileSync(path('authority.pem')), cert: pem, key: pem },
    })
    const { address } = server.listeners.find(({ key }) => key === 'webSocketPort')!
    const url = `wss://localhost:${address.port}/`
    const alice = new NetworkClient(await network.connect({ ...address, url }))
    callers.push(alice)
    await alice.session()
    expect(await alice.whoAmI()).toEqual(['ip:127.0.0.1', `x509:${aliceName}`])
  })

  it('is an identity on the in-memory network too', async () => {
    const clock = new ManualClock()
    const network = new MemoryNetwork(clock)
    const looked: TlsOptions[] = []
    const tls = (options: TlsOptions) => {
      looked.push(options)
      return Object.assign(
        network,
        secureParts(network, () => Promise.resolve(false)),
      )
    }
    const ports = nodePlatform({ disk: new MemoryDisk(), clock, network, networkFactories: { tls } })
    const server = await createServer(defaults({ dataDir: '/data', ...secure, sslClientAuth: 'want' }), ports)
    const peer = { subject: aliceName, alternativeNames: [] }
    const alice = new NetworkClient(await network.connect(server.addresses.client, { peer }))
    const identities = alice.session().then(() => alice.whoAmI())
    await clock.untilIdle()
    await clock.untilIdle()
    expect(await identities).toContain(`x509:${aliceName}`)
    expect(looked).toMatchObject([{ clientAuth: 'want', handshakeLimit: 250, handshakeTimeoutMs: 10_000 }])
    const closed = server.close()
    await clock.untilIdle()
    await closed
  })

  it('is of no use on a server without TLS, which does not know the scheme x509', async () => {
    const server = await serve({ clientPort: 0 })
    const plain = await open(server, 'clientPort', nodePlatform().network)
    expect((await plain.request(1, OpCode.create, create('/a', x509(aliceName)))).err).toBe(INVALID_ACL)
  })
})

describe('the certificates of a server', () => {
  it('stop its start when they cannot be read, with an error that names the file and the remedy', async () => {
    const failed = serve({ ...secure, sslKeyStoreLocation: path('server.jks') })
    await expect(failed).rejects.toMatchObject({ name: 'CertificateError' })
    await expect(failed).rejects.toThrow(/server\.jks is a JKS file.*keytool -importkeystore/)
  })

  it('need a TLS network factory of the platform', async () => {
    const ports = { ...nodePlatform({ disk: new MemoryDisk() }), networkFactories: {} }
    const failed = createServer(defaults({ dataDir: '/data', ...local, ...secure }), ports)
    await expect(failed).rejects.toThrow(/gave the server no network for tls/)
  })

  it('change while it runs: new connections get the new ones, old connections stay', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'zabra-server-tls-'))
    folders.push(folder)
    const file = join(folder, 'server.pem')
    copyFileSync(path('server.pem'), file)
    let look = (): void => {}
    const lines: string[] = []
    let noted = (): void => {}
    const note = (_: object, sentence: string): void => {
      lines.push(sentence)
      noted()
    }
    const clock = {
      ...nodeClock,
      after: (ms: number, name: string, action: () => void) => {
        if (name !== 'change of certificates') return nodeClock.after(ms, name, action)
        look = action
        noted()
        return () => {}
      },
    }
    const server = await createServer(
      defaults({ dataDir: '/data', ...local, ...secure, sslKeyStoreLocation: file }),
      nodePlatform({
        disk: new MemoryDisk(),
        clock,
        logger: { error: note, warn() {}, info: note, debug() {} },
      }),
    )
    servers.push(server)
    const before = await open(server, 'secureClientPort', overTls('alice.p12'))
    const lookNow = async (): Promise<void> => {
      const again = new Promise<void>((resolve) => {
        const current = look
        noted = () => (look === current ? undefined : resolve())
      })
      look()
      await again
    }
    copyFileSync(path('alice-locked.pem'), file)
    await lookNow()
    await lookNow()
    expect(lines.filter((line) => line.includes('cannot be used'))).toHaveLength(1)
    copyFileSync(path('server-next.pem'), file)
    await lookNow()
    expect(lines.at(-1)).toMatch(/have changed; new connections use them/)
    const after = await call(server, 'secureClientPort', overTls('alice.p12'))
    const [old, fresh] = [before, after].map(({ connection }) => connection.peerCertificates![0]!)
    expect(Buffer.compare(old!, fresh!)).not.toBe(0)
    expect((await before.request(1, OpCode.create, create('/still'))).err).toBe(0)
  })
})

describe('client.portUnification', () => {
  const mixed = {
    clientPort: 0,
    portUnification: true,
    sslKeyStoreLocation: path('server.pem'),
    sslTrustStoreLocation: path('authority.pem'),
  } as const

  it('serves clients with and without TLS on one port', async () => {
    const server = await serve(mixed)
    const plain = await open(server, 'clientPort', nodePlatform().network)
    const alice = await open(server, 'clientPort', overTls('alice.p12'))
    expect(await plain.whoAmI()).toEqual(['ip:127.0.0.1'])
    expect(await alice.whoAmI()).toEqual(['ip:127.0.0.1', `x509:${aliceName}`])
  })

  it('requires a key store', () => {
    expect(() => defaults({ dataDir: '/data', portUnification: true })).toThrow(
      /needs ssl\.keyStore\.location/,
    )
  })
})

describe('the TLS metrics', () => {
  it('count failed handshakes, handshakes above the limit, and connections without TLS', async () => {
    const server = await serve({ clientPort: 0, ...secure, tlsHandshakeLimit: 1, sessionlessTimeoutMs: 300 })
    const network = nodePlatform().network
    const figures = async (): Promise<ReadonlyMap<string, string>> => {
      const caller = await call(server, 'clientPort', network)
      return new Map(
        (await caller.command('mntr')).split('\n').map((line) => line.split('\t') as [string, string]),
      )
    }
    const silent = await call(server, 'secureClientPort', network)
    await expect.poll(async () => (await figures()).get('zk_outstanding_tls_handshake')).toBe('1')
    const second = await call(server, 'secureClientPort', network)
    await second.closed()
    expect((await figures()).get('zk_tls_handshake_exceeded')).toBe('1')
    await (await call(server, 'clientPort', nodePlatform().network)).command('srst')
    expect((await figures()).get('zk_tls_handshake_exceeded')).toBe('0')
    // The handshake of the silent client times out.
    await silent.closed()
    await expect.poll(async () => (await figures()).get('zk_outstanding_tls_handshake')).toBe('0')
    const wrong = await call(server, 'secureClientPort', network)
    wrong.connection.write(new TextEncoder().encode('GET / HTTP/1.1'))
    await wrong.closed()
    const last = await figures()
    expect(last.get('zk_unsuccessful_handshake')).toBe('2')
    expect(Number(last.get('zk_non_mtls_local_conn_count'))).toBeGreaterThan(2)
    expect(last.get('zk_non_mtls_remote_conn_count')).toBe('0')
  })
})

it('a server does not start with an unknown cipher suite, and names the setting', async () => {
  await expect(serve({ ...secure, sslCipherSuites: ['TLS_NONSENSE'] })).rejects.toThrow(
    /^ssl\.ciphersuites: Expected cipher suites .*, got "TLS_NONSENSE"\. TLS_AES/,
  )
})

describe('ssl.crl', () => {
  const revoking = {
    ...secure,
    sslTrustStoreLocation: path('revoking-authority.pem'),
    sslCrl: true,
    sslCrlLocation: path('revoking.crl'),
  }

  it('refuses clients with a revoked certificate', async () => {
    const lines: string[] = []
    const server = await serve(revoking, { info: (facts) => void lines.push(JSON.stringify(facts)) })
    const kept = await open(server, 'secureClientPort', overTls('kept.pem'))
    expect(await kept.whoAmI()).toEqual(['ip:127.0.0.1', 'x509:CN=kept,O=Zabra'])
    const revoked = await call(server, 'secureClientPort', overTls('revoked.pem')).catch(() => undefined)
    await revoked?.closed()
    expect(lines.join()).toContain('CERT_REVOKED')
  })

  it('requires ssl.crl.location', () => {
    const settings = { dataDir: '/data', ...revoking, sslCrlLocation: undefined }
    expect(() => defaults(settings)).toThrow(/needs ssl\.crl\.location/)
  })
})

describe('Server.reload', () => {
  it('reads the certificates again and logs the result', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'zabra-reload-'))
    folders.push(folder)
    const file = join(folder, 'server.pem')
    copyFileSync(path('server.pem'), file)
    const lines: string[] = []
    const note = (_: object, sentence: string): void => void lines.push(sentence)
    const server = await serve(
      { ...secure, sslKeyStoreLocation: file, sslClientAuth: 'none' },
      { info: note },
    )
    await server.reload()
    copyFileSync(path('server-next.pem'), file)
    await server.reload()
    expect(lines.slice(-2)).toEqual([
      'The certificates have not changed',
      'The certificates have changed; new connections use them',
    ])
  })
})

it('a server opens its plaintext port after all other ports', async () => {
  const { network } = nodePlatform()
  const opened: string[] = []
  const recording = (name: string, inner: Network): Network => ({
    connect: (to, options) => inner.connect(to, options),
    async listen(at, accepted, refused) {
      const listener = await inner.listen(at, accepted, refused)
      opened.push(name)
      return listener
    },
  })
  const server = await createServer(
    defaults({ dataDir: '/data', clientPort: 0, ...local, ...secure }),
    nodePlatform({
      disk: new MemoryDisk(),
      network: recording('plain', network),
      networkFactories: {
        tls: (options) => {
          const tls = tlsNetwork(options)
          return { ...recording('tls', tls), ...secureParts(tls, () => tls.reload()) }
        },
      },
    }),
  )
  servers.push(server)
  expect(opened).toEqual(['tls', 'plain'])
  expect(server.listeners.map(({ key }) => key)).toEqual(['clientPort', 'secureClientPort'])
})
