import {
  NetworkError,
  TlsOptionError,
  type Address,
  type Cancel,
  type Connection,
  type HandshakeStats,
  type Listener,
  type Network,
  type NetworkFactories,
  type Platform,
  type CertificateStore,
  type TlsNetwork,
} from '@zabra/runtime'
import type { ServerSettings } from '../settings/index.ts'

/** How often files with certificates are looked at, in milliseconds. */
const LOOK_MS = 10_000

/** A port on which a server listens, by the key that sets it. */
export interface ServedPort {
  readonly key: 'clientPort' | 'secureClientPort' | 'webSocketPort'
  readonly address: Address
  /** Whether it speaks TLS. */
  readonly secure: boolean
}

/** Where clients are served, as the configuration of an ensemble says it; 0.0.0.0 for every address of the machine. */
export interface ClientAddress {
  readonly host: string
  readonly port: number
}

interface OpenPort {
  readonly wanted: PortSpec
  readonly served: ServedPort
  readonly listener: Listener
}

interface PortSpec {
  readonly key: ServedPort['key']
  readonly network: Network
  readonly port: number
  readonly host: string | undefined
  readonly secure: boolean
}

/** Every port of a server. All of them lead to the same place. */
export class Listeners {
  readonly #settings: ServerSettings
  readonly #ports: Platform
  readonly #open: OpenPort[] = []
  #accepted: (wire: Connection) => void = (wire) => wire.destroy()
  #tls: TlsNetwork | undefined
  /** The last trouble with certificates, so that it is told once. */
  #trouble = ''
  #cancel: Cancel = () => {}
  #isClosed = false

  constructor(settings: ServerSettings, ports: Platform) {
    this.#settings = settings
    this.#ports = ports
  }

  get served(): readonly ServedPort[] {
    return this.#open.map(({ served }) => served)
  }

  /** The port of a key; -1 when it is not served. */
  portOf(key: ServedPort['key']): number {
    return this.served.find((one) => one.key === key)?.address.port ?? -1
  }

  /**
   * Opens all ports, or none. Rejects with a `NetworkError` when one cannot be had, and with a `CertificateError` when a
   * file with keys or certificates cannot be used.
   */
  async open(accepted: (wire: Connection) => void): Promise<void> {
    this.#accepted = accepted
    try {
      // The one that needs no files is the last: whoever gets an answer there finds the others open too.
      for (const wanted of this.#wanted().toReversed()) this.#open.unshift(await this.#listen(wanted))
    } catch (error) {
      await this.close()
      if (error instanceof TlsOptionError)
        throw new TlsOptionError(`ssl.ciphersuites: ${error.message}`, { cause: error })
      throw error
    }
    if (this.#tls !== undefined && this.#settings.certReload) this.#lookLater(this.#tls)
  }

  /**
   * Serves `clientPort` somewhere else. The new port is opened before the old one closes, except where both are the same port at
   * different addresses. Connections stay. Rejects with a `NetworkError` when it cannot be had; the old one is open then.
   */
  async moveClientPort({ host, port }: ClientAddress): Promise<void> {
    const index = this.#open.findIndex(({ served }) => served.key === 'clientPort')
    const old = this.#open[index]
    if (old === undefined || this.#isClosed) return
    const wanted = { ...old.wanted, port, host: host === '0.0.0.0' ? undefined : host }
    const isSamePort = old.served.address.port === port
    if (isSamePort && wanted.host === old.wanted.host) return
    if (isSamePort) await old.listener.close()
    try {
      this.#open[index] = await this.#listen(wanted)
    } catch (error) {
      if (isSamePort) this.#open[index] = await this.#listen({ ...old.wanted, port })
      throw error
    }
    if (!isSamePort) await old.listener.close()
  }

  async #listen(wanted: PortSpec): Promise<OpenPort> {
    const { key, network, port, host, secure } = wanted
    const { clientPortListenBacklog: backlog, clientTcpKeepAlive: keepAlive } = this.#settings
    const listener = await network.listen(
      {
        port,
        keepAlive,
        ...(host === undefined ? {} : { host }),
        ...(backlog > 0 ? { backlog } : {}),
      },
      this.#accepted,
      (error) =>
        this.#ports.logger.warn({ port: key, error: error.message }, 'A client could not be accepted'),
    )
    return { wanted, served: { key, address: listener.address, secure }, listener }
  }

  /** What became of handshakes of TLS; all 0 where nobody speaks it. */
  get handshakes(): HandshakeStats {
    return this.#tls?.handshakes ?? { active: 0, rejected: 0, failed: 0 }
  }

  /** Reads the files with certificates again; what is wrong with them is logged. */
  async reload(): Promise<void> {
    this.#trouble = ''
    if (this.#tls !== undefined) await this.#look(this.#tls, true)
    else this.#ports.logger.info({}, 'There are no certificates to read again')
  }

  /** Stops listening. Connections stay. */
  async close(): Promise<void> {
    this.#cancel()
    this.#isClosed = true
    await Promise.all(this.#open.map(({ listener }) => listener.close()))
  }

  #wanted(): PortSpec[] {
    const settings = this.#settings
    const { clientPort, secureClientPort, webSocketPort, webSocketSecure } = settings
    const isMixed = clientPort !== undefined && settings.portUnification
    if (isMixed || secureClientPort !== undefined || (webSocketPort !== undefined && webSocketSecure))
      this.#tls = this.#network('tls')(tlsOptions(settings))
    const wanted: PortSpec[] = []
    if (clientPort !== undefined) {
      const network = isMixed ? this.#tls!.withPlaintext() : this.#ports.network
      wanted.push({
        key: 'clientPort',
        network,
        port: clientPort,
        host: settings.clientPortAddress,
        secure: false,
      })
    }
    if (secureClientPort !== undefined) {
      const host = settings.secureClientPortAddress
      wanted.push({
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
      const network = this.#network('webSocket')({ path, origins, maxMessageBytes }, tls)
      const host = settings.webSocketPortAddress
      wanted.push({ key: 'webSocketPort', network, port: webSocketPort, host, secure: webSocketSecure })
    }
    return wanted
  }

  #network<Kind extends keyof NetworkFactories>(kind: Kind): NonNullable<NetworkFactories[Kind]> {
    const network = this.#ports.networkFactories?.[kind]
    if (network !== undefined) return network
    const message = `Cannot listen: this program gave the server no network for ${kind}. Pass one in networkFactories of its platform.`
    throw new NetworkError(message, 'ENOTSUP')
  }

  #lookLater(tls: TlsNetwork): void {
    this.#cancel = this.#ports.clock.after(LOOK_MS, 'change of certificates', () => {
      void this.#look(tls).then(() => (this.#isClosed ? undefined : this.#lookLater(tls)))
    })
  }

  async #look(tls: TlsNetwork, isAsked = false): Promise<void> {
    const { logger } = this.#ports
    try {
      if (await tls.reload()) logger.info({}, 'The certificates have changed; new connections use them')
      else if (isAsked) logger.info({}, 'The certificates have not changed')
      this.#trouble = ''
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      if (reason !== this.#trouble)
        logger.error({ reason }, 'The certificates have changed and cannot be used; the old ones stay in use')
      this.#trouble = reason
    }
  }
}

function tlsOptions(settings: ServerSettings): Parameters<NonNullable<NetworkFactories['tls']>>[0] {
  const { sslKeyStoreLocation, sslTrustStoreLocation, sslCipherSuites, sslClientAuth, tlsHandshakeLimit } =
    settings
  return {
    keyStore: store(
      sslKeyStoreLocation,
      settings.sslKeyStoreType,
      settings.sslKeyStorePassword,
      settings.sslKeyStorePasswordPath,
    ),
    trustStore: store(
      sslTrustStoreLocation,
      settings.sslTrustStoreType,
      settings.sslTrustStorePassword,
      settings.sslTrustStorePasswordPath,
    ),
    revocationList: settings.sslCrl ? settings.sslCrlLocation : undefined,
    versions: settings.sslEnabledProtocols,
    ciphers: sslCipherSuites,
    clientAuth: sslClientAuth,
    handshakeLimit: Math.max(0, tlsHandshakeLimit),
    handshakeTimeoutMs: settings.sessionlessTimeoutMs,
  }
}

function store(
  path: string | undefined,
  type: CertificateStore['type'],
  password: string | undefined,
  passwordPath: string | undefined,
): CertificateStore | undefined {
  return path === undefined ? undefined : { path, type, password, passwordPath }
}
