import {
  AlternativeNameType,
  NetworkError,
  TlsOptionError,
  type AbortSignalLike,
  type Connection,
  type Network,
  type OwnCertificate,
  type PeerIdentity,
  type Platform,
  type TlsNetwork,
  type TlsOptions,
} from '@zabra/runtime'
import { CertificateReload, storeOf } from '../connections/certificates.ts'
import type { EnsembleStats } from '../connections/ensemble-stats.ts'
import type { ServerId } from '../core/quorum/index.ts'
import { usesQuorumTls, type ServerSettings } from '../settings/index.ts'
import { namesHost, namesOf } from './certificate-names.ts'
import {
  logIn,
  type AcceptedLogin,
  type LoginMethod,
  type LoginReader,
  type LoginTarget,
  type MemberPort,
} from './member-login.ts'
import type { Membership } from './membership.ts'
import { SaslLogin } from './sasl-login.ts'
import { SecretLogin } from './secret-login.ts'

/** Most concurrent TLS handshakes on one port. */
const MAX_HANDSHAKES = 64

/**
 * Secures the connections between members: the network that they use, with TLS where the settings say so, and the check that a
 * connection belongs to the server that it claims to come from, by its certificate and by a login (quorum-protocol 18).
 */
export class MemberSecurity {
  /** Listens and connects for other members. A connection that it returns has a complete handshake. */
  readonly network: Network
  readonly #settings: ServerSettings
  readonly #membership: Pick<Membership, 'addressesOf'>
  readonly #reload: CertificateReload | undefined
  readonly #logger: Platform['logger']
  readonly #login: LoginMethod | undefined
  readonly #stats: LoginStats
  readonly #logins = new WeakMap<Connection, AcceptedLogin>()
  readonly #authenticated = new WeakSet<Connection>()

  constructor(
    settings: ServerSettings,
    platform: Pick<Platform, 'clock' | 'logger' | 'network' | 'networkFactories' | 'random'>,
    membership: Pick<Membership, 'addressesOf'>,
    stats: LoginStats,
  ) {
    this.#settings = settings
    this.#membership = membership
    this.#stats = stats
    this.#logger = platform.logger
    const tlsOptions = memberTlsOptions(settings)
    const tls = tlsOptions === undefined ? undefined : createTls(tlsOptions, platform)
    this.#login = loginMethodOf(settings, platform)
    this.network = tls === undefined ? platform.network : networkOf(settings, platform, tls)
    if (tls !== undefined)
      this.#reload = new CertificateReload(tls, platform, 'The certificates for other members')
  }

  /** Logs how members connect, and checks the certificate files for changes from now on. */
  start(): void {
    if (this.#reload === undefined) return
    const { sslQuorum, quorumPortUnification } = this.#settings
    this.#logger.info(
      { id: 'tls.members', sslQuorum, portUnification: quorumPortUnification },
      `This server connects to other members ${sslQuorum ? 'with' : 'without'} TLS, and accepts ${quorumPortUnification ? 'connections with and without TLS' : 'TLS only'}`,
    )
    this.#reload.start(this.#settings.quorumCertReload)
  }

  /** The certificate for other members; undefined without one. */
  get certificate(): OwnCertificate | undefined {
    return this.#reload?.certificate
  }

  stop(): void {
    this.#reload?.stop()
  }

  /** Reads the certificate files again, and logs the result. */
  async reload(): Promise<void> {
    await this.#reload?.reload()
  }

  /** Returns the reader of the login with which an accepted connection begins; undefined where none is asked for. */
  acceptLogin(connection: Connection, port: MemberPort): LoginReader | undefined {
    const reader = this.#login?.accept(connection, port)
    return reader && { push: (chunk) => this.#readLogin(connection, reader, chunk) }
  }

  /** Returns why an accepted connection, after its login, may not belong to a server; undefined when it may. */
  refusalOfAccepted(connection: Connection, id: ServerId): string | undefined {
    const login = this.#logins.get(connection)
    const reason =
      this.#refusalOf(connection, id, this.#settings.quorumVerifiesClientHostNames, [
        connection.remote.host,
      ]) ?? login?.refusalOf(id)
    if (reason === undefined && login?.isAuthenticated === true) this.#authenticated.add(connection)
    if (login !== undefined) this.#countLogin(login, reason)
    return reason
  }

  #countLogin({ isAuthenticated }: AcceptedLogin, refusal: string | undefined): void {
    if (refusal !== undefined) this.#stats.loginsRefused++
    else if (isAuthenticated) this.#stats.loginsProved++
    else this.#stats.loginsSkipped++
  }

  /**
   * Makes sure that a connection that this server has opened leads to the server: checks its certificate, sends the hello and logs in.
   * Resolves to the bytes after the login; the caller sets the handler in the same turn. Rejects with a `NetworkError`, and destroys
   * the connection.
   */
  async open(
    connection: Connection,
    { id, port, host, hello }: OpenTarget,
    signal: AbortSignalLike,
  ): Promise<Uint8Array> {
    const reason = this.#refusalOf(connection, id, true, [host])
    if (reason !== undefined) {
      connection.setHandler({ data() {}, drain() {}, closed() {} })
      connection.destroy()
      throw new NetworkError(`${host} is not server ${id}: ${reason}`, 'EACCES')
    }
    if (hello !== undefined) connection.write(hello)
    if (this.#login === undefined) return new Uint8Array(0)
    const { isAuthenticated, rest } = await logIn(this.#login, connection, { id, port }, signal)
    if (isAuthenticated) this.#authenticated.add(connection)
    return rest
  }

  /** Whether the other side has proved which member it is. */
  isAuthenticated(connection: Connection): boolean {
    return this.#authenticated.has(connection)
  }

  #readLogin(connection: Connection, reader: LoginReader, chunk: Uint8Array): AcceptedLogin | undefined {
    try {
      const login = reader.push(chunk)
      if (login === undefined) return undefined
      this.#logins.set(connection, login)
      return login
    } catch (error) {
      this.#stats.loginsRefused++
      throw error
    }
  }

  /** `unknownHosts` are the hosts that stand for those of a server which no configuration names. */
  #refusalOf(
    connection: Connection,
    id: ServerId,
    isVerified: boolean,
    unknownHosts: readonly string[],
  ): string | undefined {
    const { peer } = connection
    // The port has accepted it without TLS, or without a certificate, because the settings allow both.
    if (peer === undefined) return undefined
    const reason = this.#mismatch(peer, id, isVerified, unknownHosts)
    if (reason === undefined && this.#provesId(id, isVerified)) this.#authenticated.add(connection)
    return reason
  }

  /** Whether a certificate that fits an id proves that id. One for a host proves none where no configuration names the server. */
  #provesId(id: ServerId, isVerified: boolean): boolean {
    const { quorumAllowedSubjects, quorumCertificateUri, quorumVerifiesHostNames } = this.#settings
    const patterns = [quorumAllowedSubjects, quorumCertificateUri].filter((pattern) => pattern !== undefined)
    return patterns.length > 0
      ? patterns.every((pattern) => pattern.includes('{id}'))
      : quorumVerifiesHostNames && isVerified && this.#hostsOf(id).length > 0
  }

  #mismatch(
    peer: PeerIdentity,
    id: ServerId,
    isVerified: boolean,
    unknownHosts: readonly string[],
  ): string | undefined {
    const { quorumAllowedSubjects, quorumCertificateUri, quorumVerifiesHostNames } = this.#settings
    if (quorumAllowedSubjects !== undefined || quorumCertificateUri !== undefined) {
      const wanted = [quorumAllowedSubjects, quorumCertificateUri].flatMap((pattern) =>
        pattern === undefined ? [] : [pattern.replaceAll('{id}', String(id))],
      )
      if (this.#isAllowed(peer, id)) return undefined
      return `expected the certificate of server ${id} with ${wanted.join(' or ')}, got one of ${describe(peer)}`
    }
    if (!quorumVerifiesHostNames || !isVerified) return undefined
    const known = this.#hostsOf(id)
    // A server that joins has no hosts yet. Its certificate has to name the address that it comes from: those of clients name none.
    const hosts = known.length > 0 ? known : unknownHosts
    if (namesHost(peer, hosts)) return undefined
    return `expected the certificate of server ${id} for ${hosts.join(' or ')}, got one of ${describe(peer)}`
  }

  #isAllowed({ subject, alternativeNames }: PeerIdentity, id: ServerId): boolean {
    const { quorumAllowedSubjects, quorumCertificateUri } = this.#settings
    const uri = quorumCertificateUri?.replaceAll('{id}', String(id))
    return (
      (uri !== undefined &&
        alternativeNames.some(({ type, value }) => type === AlternativeNameType.uri && value === uri)) ||
      (quorumAllowedSubjects !== undefined &&
        new RegExp(`^(?:${quorumAllowedSubjects.replaceAll('{id}', String(id))})$`).test(subject))
    )
  }

  #hostsOf(id: ServerId): readonly string[] {
    return [...new Set(this.#membership.addressesOf(id, 'quorumPort').map(({ host }) => host))]
  }
}

/** Counts the logins of members. */
export type LoginStats = Pick<EnsembleStats, 'loginsProved' | 'loginsRefused' | 'loginsSkipped'>

/** A server that a connection has to lead to. */
export interface OpenTarget extends LoginTarget {
  /** The host that was dialed. */
  readonly host: string
  /** Sent before the login. */
  readonly hello?: Uint8Array
}

/** Returns the login that the settings ask for; undefined when they ask for none. */
function loginMethodOf(
  settings: ServerSettings,
  { random }: Pick<Platform, 'random'>,
): LoginMethod | undefined {
  const { quorumSecret: secret, serverId: self } = settings
  if (secret !== undefined) return new SecretLogin({ self, secret, random })
  if (!settings.quorumSaslEnabled) return undefined
  const { quorumSaslUsers, quorumSaslUser, quorumSaslPassword } = settings
  return new SaslLogin({
    users: new Map(Object.entries(quorumSaslUsers)),
    self:
      settings.quorumLearnerRequiresSasl && quorumSaslUser !== undefined && quorumSaslPassword !== undefined
        ? { user: quorumSaslUser, password: quorumSaslPassword }
        : undefined,
    isOptional: !settings.quorumServerRequiresSasl,
    userOf: new Map(Object.entries(settings.quorumUserOf).map(([id, user]) => [Number(id), user])),
    random,
  })
}

const describe = (peer: PeerIdentity): string =>
  `${peer.subject.slice(0, 200)} for ${namesOf(peer).join(', ') || 'no host'}`

function createTls(
  tlsOptions: TlsOptions,
  { networkFactories }: Pick<Platform, 'networkFactories'>,
): TlsNetwork {
  if (networkFactories?.tls === undefined)
    throw new NetworkError(
      'Members cannot use TLS: this program gave the server no network for it. Pass one in networkFactories of its platform.',
      'ENOTSUP',
    )
  return networkFactories.tls(tlsOptions)
}

/** Returns the options of TLS between members; undefined when they do not use it. */
export const memberTlsOptions = (settings: ServerSettings): TlsOptions | undefined =>
  usesQuorumTls(settings) ? tlsOptionsOf(settings) : undefined

const tlsOptionsOf = (settings: ServerSettings): TlsOptions => ({
  keyStore: storeOf(settings, 'quorumKeyStore'),
  trustStore: storeOf(settings, 'quorumTrustStore'),
  revocationList: settings.quorumCrl ? settings.quorumCrlLocation : undefined,
  versions: settings.quorumEnabledProtocols,
  ciphers: settings.quorumCipherSuites,
  clientAuth: settings.quorumClientAuth,
  // Names are compared with the configured hosts of the member, which may differ from the address that is dialed.
  verifyHostName: false,
  identifiesServer: true,
  handshakeLimit: MAX_HANDSHAKES,
  // Connections of strangers must not keep the other members out.
  replacesHandshakes: true,
  handshakeTimeoutMs: settings.quorumHandshakeTimeoutMs,
})

/** Returns the network for the three steps from plaintext to TLS: with `portUnification`, then both, then `sslQuorum` alone. */
function networkOf(
  { sslQuorum, quorumPortUnification }: ServerSettings,
  { network }: Pick<Platform, 'network'>,
  tls: TlsNetwork,
): Network {
  const listening = quorumPortUnification ? tls.withPlaintext() : tls
  const connecting = sslQuorum ? tls : network
  return {
    async listen(at, accepted, refused) {
      try {
        return await listening.listen(at, accepted, refused)
      } catch (error) {
        if (!(error instanceof TlsOptionError)) throw error
        throw new TlsOptionError(`ssl.quorum.ciphersuites: ${error.message}`, { cause: error })
      }
    },
    connect: (to, options) => connecting.connect(to, options),
  }
}
