// oxlint-disable no-restricted-imports -- certificates are files
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writer } from '@zabra/protocol'
import type { Address, Connection, Logger, Network } from '@zabra/runtime'
import { nodePlatform, tlsNetwork } from '@zabra/runtime/node'
import { createAuthority, issueCertificate } from '@zabra/runtime/node/certificate-authority'
import { EnsembleStats } from '../../connections/ensemble-stats.ts'
import type { ServerId } from '../../core/quorum/index.ts'
import { decodeLearnerInfo, encodeLearnerInfo, PacketType, writePacket } from '../../core/zab/index.ts'
import { defaults, type ServerSettings } from '../../settings/index.ts'
import type { MemberContext } from '../context.ts'
import { ElectionConnections, electionConnectionDefaults } from '../election-connections.ts'
import { MemberSecurity } from '../member-security.ts'
import { createQuorumPort } from '../quorum-port.ts'

/** Returns the host of a member: each has an address of its own on loopback. */
export const hostOf = (id: ServerId): string => `127.0.0.${id}`

export interface StoreOptions {
  readonly hosts?: readonly string[]
  readonly uris?: readonly string[]
  readonly name?: string
  /** The authority: that of the members by default. */
  readonly authority?: ReturnType<typeof createAuthority>
  readonly from?: Date
  readonly days?: number
}

/** Returns the first packet of a follower. */
export function followerInfo(serverId: ServerId): Uint8Array {
  const writer = new Writer()
  const info = encodeLearnerInfo({ serverId, protocolVersion: 0x10000, configVersion: 0 })
  writePacket(writer, PacketType.followerInfo, 0, info)
  return writer.take()
}

/** Collects log lines, and wakes a test that waits for one. */
export class TestLogger implements Logger {
  readonly lines: string[] = []
  readonly #waiting = new Set<() => void>()

  readonly error = (facts: object, sentence: string): void => this.#add('error', facts, sentence)
  readonly warn = (facts: object, sentence: string): void => this.#add('warn', facts, sentence)
  readonly info = (facts: object, sentence: string): void => this.#add('info', facts, sentence)
  readonly debug = (): void => {}

  /** Resolves to the first line that matches. */
  async matching(pattern: RegExp): Promise<string> {
    for (;;) {
      const line = this.lines.find((each) => pattern.test(each))
      if (line !== undefined) return line
      await new Promise<void>((resolve) => this.#waiting.add(resolve))
    }
  }

  #add(level: string, facts: object, sentence: string): void {
    this.lines.push(`${level} ${sentence} ${JSON.stringify(facts)}`)
    for (const wake of this.#waiting) wake()
    this.#waiting.clear()
  }
}

/** Members with certificates in files, on the real network of loopback. */
export class MemberSecurityFixture {
  readonly folder = mkdtempSync(join(tmpdir(), 'zabra-member-security-'))
  readonly authority = createAuthority({ name: 'Members', days: 30 })
  readonly stranger = createAuthority({ name: 'Strangers', days: 30 })
  readonly trusted = this.file('authority.pem', this.authority.certificate)
  readonly #closes: (() => unknown)[] = []

  async close(): Promise<void> {
    for (const close of this.#closes.splice(0).reverse()) await close()
    rmSync(this.folder, { recursive: true })
  }

  file(name: string, text: string): string {
    const path = join(this.folder, name)
    writeFileSync(path, text)
    return path
  }

  /** Writes a key store, and returns its path. */
  store(name: string, { authority = this.authority, ...options }: StoreOptions = {}): string {
    const { hosts = [], uris = [], from = new Date(Date.now() - 3600_000), days = 20 } = options
    const issued = issueCertificate(authority, { name: options.name ?? name, hosts, uris, from, days })
    return this.file(`${name}.pem`, issued.key + issued.certificate)
  }

  /** Returns the settings of a member, with a certificate for its host. */
  settings(id: ServerId, overrides: Partial<ServerSettings> = {}): ServerSettings {
    if (overrides.sslQuorum === false && overrides.quorumPortUnification !== true)
      return defaults({ dataDir: '/data', serverId: id, ...overrides })
    return defaults({
      dataDir: '/data',
      serverId: id,
      sslQuorum: true,
      quorumKeyStoreLocation:
        overrides.quorumKeyStoreLocation ?? this.store(`server-${id}`, { hosts: [hostOf(id)] }),
      quorumTrustStoreLocation: this.trusted,
      ...overrides,
    })
  }

  security(settings: ServerSettings, logger: Logger = new TestLogger()): MemberSecurity {
    const platform = nodePlatform({ logger, networkFactories: { tls: tlsNetwork } })
    const membership = { addressesOf: (id: ServerId) => this.addressesOf(id) }
    const security = new MemberSecurity(settings, platform, membership, this.stats)
    this.#closes.push(() => security.stop())
    return security
  }

  /** Counts the logins at all members. */
  readonly stats = new EnsembleStats()

  /** The election ports of the started members. */
  readonly ports = new Map<ServerId, number>()

  /** Returns the election address of a member, one of 1 to 5. */
  addressesOf(id: ServerId): Address[] {
    return id >= 1 && id <= 5 ? [{ host: hostOf(id), port: this.ports.get(id) ?? 1 }] : []
  }

  /** Starts the election connections of a member on a free port of its address. */
  async elections(id: ServerId, overrides: Partial<ServerSettings> = {}) {
    const log = new TestLogger()
    const settings = this.settings(id, overrides)
    const security = this.security(settings, log)
    const received: string[] = []
    const authenticated = new Set<ServerId>()
    let wake = (): void => {}
    const { clock } = nodePlatform()
    const connections = new ElectionConnections({
      ...electionConnectionDefaults,
      self: id,
      network: security.network,
      security,
      clock,
      logger: log,
      listenAddresses: () => [{ host: hostOf(id), port: 0 }],
      announcedAddresses: () => [{ host: hostOf(id), port: this.ports.get(id)! }],
      addressesOf: (other) => this.addressesOf(other),
      acceptsUnknownServers: settings.reconfigEnabled,
      received: (from, payload, isAuthenticated) => {
        if (isAuthenticated) authenticated.add(from)
        received.push(`${from}: ${new TextDecoder().decode(payload)}`)
        wake()
      },
    })
    await connections.start()
    this.ports.set(id, connections.addresses[0]!.port)
    this.#closes.push(() => connections.close())
    return {
      connections,
      security,
      log,
      received,
      /** The servers that have proved their ids on the connections of their messages. */
      authenticated,
      address: connections.addresses[0]!,
      /** Resolves when so many messages have arrived. */
      async messages(count: number): Promise<string[]> {
        while (received.length < count) await new Promise<void>((resolve) => (wake = resolve))
        return received
      },
    }
  }

  /** Opens the quorum port of server 1, which closes each connection once it is identified. */
  async quorumPort(settings: ServerSettings, log = new TestLogger()) {
    const identified: { readonly serverId: ServerId; readonly isAuthenticated: boolean }[] = []
    const security = this.security(settings, log)
    const port = createQuorumPort(
      {
        settings,
        platform: nodePlatform({ logger: log }),
        security,
        membership: { member: () => ({}) },
        cluster: { refusalOf: () => undefined },
        features: { refusalOf: () => undefined },
        peerAddresses: { refusal: () => undefined },
      } as unknown as MemberContext,
      [{ host: hostOf(1), port: 0 }],
      {
        learners: () => [],
        identified: ({ data }, connection) => {
          const { serverId } = decodeLearnerInfo(data)
          identified.push({ serverId, isAuthenticated: security.isAuthenticated(connection) })
          connection.destroy()
        },
      },
    )
    await port.open()
    this.#closes.push(() => port.close())
    return { port, log, identified, security }
  }

  /** Opens a connection with the certificate in a store, and collects what happens to it. */
  async dial(network: Pick<Network, 'connect'>, to: { host: string; port: number }, first?: Uint8Array) {
    return new TestConnection(await network.connect(to), first)
  }

  /** Returns a network that shows the certificate in this store, and trusts every member. */
  networkWith(store: string): Network {
    return tlsNetwork({
      keyStore: { path: store },
      trustStore: { path: this.trusted },
      verifyHostName: false,
    })
  }
}

/** A connection of a test. */
export class TestConnection {
  readonly connection: Connection
  readonly closed: Promise<void>
  #received = ''
  #wake = (): void => {}

  constructor(connection: Connection, first?: Uint8Array) {
    this.connection = connection
    this.closed = new Promise((resolve) =>
      connection.setHandler({
        data: (chunk) => {
          this.#received += Buffer.from(chunk).toString('hex')
          this.#wake()
        },
        drain() {},
        closed: () => resolve(),
      }),
    )
    if (first !== undefined) connection.write(first)
  }

  /** Resolves to the received bytes in hexadecimal when there are at least so many. */
  async bytes(count: number): Promise<string> {
    while (this.#received.length < count * 2) await new Promise<void>((resolve) => (this.#wake = resolve))
    return this.#received
  }

  /** The received bytes in hexadecimal. */
  get received(): string {
    return this.#received
  }
}
