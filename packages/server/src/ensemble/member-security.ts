import {
  AlternativeNameType,
  NetworkError,
  TlsOptionError,
  type Connection,
  type Network,
  type PeerIdentity,
  type Platform,
  type TlsNetwork,
  type TlsOptions,
} from '@zabra/runtime'
import { CertificateReload, storeOf } from '../connections/certificates.ts'
import type { ServerId } from '../core/quorum/index.ts'
import { usesQuorumTls, type ServerSettings } from '../settings/index.ts'
import { namesHost, namesOf } from './certificate-names.ts'
import type { Membership } from './membership.ts'

/** Most concurrent TLS handshakes on one port; further connections are closed. */
const MAX_HANDSHAKES = 64

/**
 * Secures the connections between members: the network that they use, with TLS where the settings say so, and the check that a
 * connection belongs to the server that it claims to come from (quorum-protocol 18.2).
 */
export class MemberSecurity {
  /** Listens and connects for other members. A connection that it returns has a complete handshake. */
  readonly network: Network
  readonly #settings: ServerSettings
  readonly #membership: Pick<Membership, 'addressesOf'>
  readonly #reload: CertificateReload | undefined
  readonly #logger: Platform['logger']
  readonly #authenticated = new WeakSet<Connection>()

  constructor(
    settings: ServerSettings,
    platform: Pick<Platform, 'clock' | 'logger' | 'network' | 'networkFactories'>,
    membership: Pick<Membership, 'addressesOf'>,
  ) {
    this.#settings = settings
    this.#membership = membership
    this.#logger = platform.logger
    const tls = usesQuorumTls(settings) ? createTls(settings, platform) : undefined
    this.network = tls === undefined ? platform.network : networkOf(settings, platform, tls)
    if (tls !== undefined)
      this.#reload = new CertificateReload(tls, platform, 'The certificates for other members')
  }

  /** Logs how members connect, and checks the certificate files for changes from now on. */
  start(): void {
    if (this.#reload === undefined) return
    const { sslQuorum, quorumPortUnification } = this.#settings
    this.#logger.info(
      { sslQuorum, portUnification: quorumPortUnification },
      `This server connects to other members ${sslQuorum ? 'with' : 'without'} TLS, and accepts ${quorumPortUnification ? 'connections with and without TLS' : 'TLS only'}`,
    )
    if (this.#settings.quorumCertReload) this.#reload.start()
  }

  stop(): void {
    this.#reload?.stop()
  }

  /** Reads the certificate files again, and logs the result. */
  async reload(): Promise<void> {
    await this.#reload?.reload()
  }

  /** Returns why an accepted connection may not belong to a server; undefined when it may. */
  refusalOfAccepted(connection: Connection, id: ServerId): string | undefined {
    return this.#refusalOf(connection, id, this.#settings.quorumVerifiesClientHostNames, [])
  }

  /** Returns why a connection that this server has opened may not lead to a server; undefined when it may. `host` was dialed. */
  refusalOfDialed(connection: Connection, id: ServerId, host: string): string | undefined {
    return this.#refusalOf(connection, id, true, [host])
  }

  /** Whether the other side has proved which member it is. */
  isAuthenticated(connection: Connection): boolean {
    return this.#authenticated.has(connection)
  }

  /** `unknownHosts` are the hosts of a server that no configuration names. */
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
    if (reason === undefined && this.#hostsOf(id).length > 0) this.#authenticated.add(connection)
    return reason
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
    const hosts = known.length > 0 ? known : unknownHosts
    // A server that joins has no hosts yet. It has no vote either.
    if (hosts.length === 0 || namesHost(peer, hosts)) return undefined
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

const describe = (peer: PeerIdentity): string =>
  `${peer.subject.slice(0, 200)} for ${namesOf(peer).join(', ') || 'no host'}`

function createTls(
  settings: ServerSettings,
  { networkFactories }: Pick<Platform, 'networkFactories'>,
): TlsNetwork {
  if (networkFactories?.tls === undefined)
    throw new NetworkError(
      'Members cannot use TLS: this program gave the server no network for it. Pass one in networkFactories of its platform.',
      'ENOTSUP',
    )
  return networkFactories.tls(tlsOptionsOf(settings))
}

const tlsOptionsOf = (settings: ServerSettings): TlsOptions => ({
  keyStore: storeOf(
    settings.quorumKeyStoreLocation,
    settings.quorumKeyStoreType,
    settings.quorumKeyStorePassword,
    settings.quorumKeyStorePasswordPath,
  ),
  trustStore: storeOf(
    settings.quorumTrustStoreLocation,
    settings.quorumTrustStoreType,
    settings.quorumTrustStorePassword,
    settings.quorumTrustStorePasswordPath,
  ),
  revocationList: settings.quorumCrl ? settings.quorumCrlLocation : undefined,
  versions: settings.quorumEnabledProtocols,
  ciphers: settings.quorumCipherSuites,
  clientAuth: settings.quorumClientAuth,
  // Names are compared with the configured hosts of the member, which may differ from the address that is dialed.
  verifyHostName: false,
  identifiesServer: true,
  handshakeLimit: MAX_HANDSHAKES,
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
