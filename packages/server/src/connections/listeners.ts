import {
  NetworkError,
  TlsOptionError,
  type Address,
  type Connection,
  type HandshakeStats,
  type Listener,
  type Network,
  type NetworkFactories,
  type OwnCertificate,
  type Platform,
  type TlsNetwork,
  type TlsOptions,
} from '@zabra/runtime'
import type { ServerSettings } from '../settings/index.ts'
import { CertificateReload, storeOf } from './certificates.ts'
import { RefusalLog } from './refusal-log.ts'

/** A port on which a server listens, with the key of its setting. */
export interface ServedPort {
  readonly key: 'clientPort' | 'secureClientPort' | 'webSocketPort'
  readonly address: Address
  /** Whether it speaks TLS. */
  readonly secure: boolean
}

/** A client address of an ensemble's configuration. The host 0.0.0.0 is every address of the machine. */
export interface ClientAddress {
  readonly host: string
  readonly port: number
}

interface PortSpec {
  readonly key: ServedPort['key']
  readonly network: Network
  readonly port: number
  readonly host: string | undefined
  readonly secure: boolean
}

interface OpenPort {
  readonly spec: PortSpec
  readonly served: ServedPort
  readonly listener: Listener
}

/** The ports on which one server listens. All of them serve the same tree. */
export class Listeners {
  readonly #settings: ServerSettings
  readonly #platform: Platform
  readonly #refusals: RefusalLog
  readonly #open: OpenPort[] = []
  #accept: (wire: Connection) => void = (wire) => wire.destroy()
  #tls: TlsNetwork | undefined
  #certificates: CertificateReload | undefined
  #isClosed = false

  constructor(settings: ServerSettings, platform: Platform) {
    this.#settings = settings
    this.#platform = platform
    this.#refusals = new RefusalLog(platform)
  }

  get served(): readonly ServedPort[] {
    return this.#open.map(({ served }) => served)
  }

  /** Counts of TLS handshakes; 0 where no port speaks TLS. */
  get handshakes(): HandshakeStats {
    return this.#tls?.handshakes ?? { active: 0, rejected: 0, failed: 0 }
  }

  /** The certificate of the ports; undefined where no port speaks TLS. */
  get certificate(): OwnCertificate | undefined {
    return this.#tls?.certificate
  }

  /** Returns the port of a key; -1 when it is not served. */
  portOf(key: ServedPort['key']): number {
    return this.served.find((port) => port.key === key)?.address.port ?? -1
  }

  /**
   * Opens all ports, or none. `accept` gets the connections. Rejects with a `NetworkError` when a port cannot be opened, and with a
   * `CertificateError` when a key or certificate file cannot be used.
   */
  async open(accept: (wire: Connection) => void): Promise<void> {
    this.#accept = accept
    try {
      // The port without TLS opens last: once a client can connect to it, all others are open.
      for (const spec of this.#portSpecs().toReversed()) this.#open.unshift(await this.#listen(spec))
    } catch (error) {
      await this.close()
      if (error instanceof TlsOptionError)
        throw new TlsOptionError(`ssl.ciphersuites: ${error.message}`, { cause: error })
      throw error
    }
    if (this.#tls === undefined) return
    this.#certificates = new CertificateReload(this.#tls, this.#platform, 'The certificates')
    this.#certificates.start(this.#settings.certReload)
  }

  /**
   * Moves `clientPort` to another address. Opens the new port before it closes the old one, except where only the host differs.
   * Connections stay. Rejects with a `NetworkError` when the new port cannot be opened; then the old one is open.
   */
  async moveClientPort({ host, port }: ClientAddress): Promise<void> {
    const index = this.#open.findIndex(({ served }) => served.key === 'clientPort')
    const old = this.#open[index]
    if (old === undefined || this.#isClosed) return
    const spec = { ...old.spec, port, host: host === '0.0.0.0' ? undefined : host }
    const isSamePort = old.served.address.port === port
    if (isSamePort && spec.host === old.spec.host) return
    if (isSamePort) await old.listener.close()
    try {
      this.#open[index] = await this.#listen(spec)
    } catch (error) {
      if (isSamePort) this.#open[index] = await this.#listen({ ...old.spec, port })
      throw error
    }
    if (!isSamePort) await old.listener.close()
  }

  /** Reads the certificate files again, and logs the result. */
  async reload(): Promise<void> {
    if (this.#certificates !== undefined) await this.#certificates.reload()
    else this.#platform.logger.info({}, 'There are no certificates to read again')
  }

  /** Stops listening. Connections stay. */
  async close(): Promise<void> {
    this.#certificates?.stop()
    this.#isClosed = true
    await Promise.all(this.#open.map(({ listener }) => listener.close()))
  }

  async #listen(spec: PortSpec): Promise<OpenPort> {
    const { key, network, port, host, secure } = spec
    const { clientPortListenBacklog: backlog, clientTcpKeepAlive: keepAlive } = this.#settings
    const listener = await network.listen(
      {
        port,
        keepAlive,
        ...(host === undefined ? {} : { host }),
        ...(backlog > 0 ? { backlog } : {}),
      },
      this.#accept,
      (error) =>
        this.#refusals.note(
          key,
          { port: key, error: error.message },
          'A client could not be accepted',
          error.message,
        ),
    )
    return { spec, served: { key, address: listener.address, secure }, listener }
  }

  #portSpecs(): PortSpec[] {
    const settings = this.#settings
    const { clientPort, secureClientPort, webSocketPort, webSocketSecure } = settings
    const isMixed = clientPort !== undefined && settings.portUnification
    const tlsOptions = clientTlsOptions(settings)
    if (tlsOptions !== undefined) this.#tls = this.#networkFactory('tls')(tlsOptions)
    const specs: PortSpec[] = []
    if (clientPort !== undefined) {
      const network = isMixed ? this.#tls!.withPlaintext() : this.#platform.network
      const host = settings.clientPortAddress
      specs.push({ key: 'clientPort', network, port: clientPort, host, secure: false })
    }
    if (secureClientPort !== undefined) {
      const host = settings.secureClientPortAddress
      specs.push({
        key: 'secureClientPort',
        network: this.#tls!,
        port: secureClientPort,
        host,
        secure: true,
      })
    }
    if (webSocketPort !== undefined) {
      const {
        webSocketPath: path,
        webSocketOrigins: origins,
        webSocketMaxMessage: maxMessageBytes,
      } = settings
      const tls = webSocketSecure ? this.#tls : undefined
      const host = settings.webSocketPortAddress
      const network = this.#networkFactory('webSocket')(
        { path, origins, hostName: host, maxMessageBytes },
        tls,
      )
      specs.push({ key: 'webSocketPort', network, port: webSocketPort, host, secure: webSocketSecure })
    }
    return specs
  }

  #networkFactory<Kind extends keyof NetworkFactories>(kind: Kind): NonNullable<NetworkFactories[Kind]> {
    const factory = this.#platform.networkFactories?.[kind]
    if (factory !== undefined) return factory
    const message = `Cannot listen: this program gave the server no network for ${kind}. Pass one in networkFactories of its platform.`
    throw new NetworkError(message, 'ENOTSUP')
  }
}

/** Returns the options of TLS for clients; undefined when no port for clients uses TLS. */
export function clientTlsOptions(settings: ServerSettings): TlsOptions | undefined {
  const { clientPort, portUnification, secureClientPort, webSocketPort, webSocketSecure } = settings
  const isMixed = clientPort !== undefined && portUnification
  if (!isMixed && secureClientPort === undefined && (webSocketPort === undefined || !webSocketSecure))
    return undefined
  return {
    keyStore: storeOf(settings, 'sslKeyStore'),
    trustStore: storeOf(settings, 'sslTrustStore'),
    revocationList: settings.sslCrl ? settings.sslCrlLocation : undefined,
    versions: settings.sslEnabledProtocols,
    ciphers: settings.sslCipherSuites,
    clientAuth: settings.sslClientAuth,
    handshakeLimit: Math.max(0, settings.tlsHandshakeLimit),
    handshakeTimeoutMs: settings.sessionlessTimeoutMs,
  }
}
