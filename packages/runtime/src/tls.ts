import type { Network } from './network.ts'

export type TlsVersion = 'TLSv1.2' | 'TLSv1.3'

export type CertificateStoreType = 'PEM' | 'PKCS12' | 'JKS' | 'BCFKS'

/** A file with keys or certificates. */
export interface CertificateStore {
  readonly path: string
  /** What it holds; without it the name of the file tells, else its first bytes. */
  readonly type?: CertificateStoreType | undefined
  readonly password?: string | undefined
  /** A file whose text is the password; it counts before `password`. */
  readonly passwordPath?: string | undefined
  /** A PEM file with the private key, where that of `path` holds certificates only. */
  readonly keyPath?: string | undefined
}

/** What a network over TLS is made of. */
export interface TlsOptions {
  /** The private key with its certificate and those that sign it. A listener needs one. */
  readonly keyStore?: CertificateStore | undefined
  /** Whom to trust. Without it, the authorities that the platform trusts. */
  readonly trustStore?: CertificateStore | undefined
  /**
   * A file with the lists of revoked certificates, PEM or DER. With it, every authority of a chain needs a list that has
   * not run out, and certificates on a list are refused.
   */
  readonly revocationList?: string | undefined
  /** Versions that are spoken. Both when it is absent. */
  readonly versions?: readonly TlsVersion[] | undefined
  /** Cipher suites by their names in the RFCs, best first. The platform's own when it is absent. */
  readonly ciphers?: readonly string[] | undefined
  /** Whether clients show a certificate: `want` refuses a bad one, `need` also none. `none` when it is absent. */
  readonly clientAuth?: 'none' | 'want' | 'need' | undefined
  /** Whether `connect` compares the name of the server with its certificate. True when it is absent. */
  readonly verifyHostName?: boolean | undefined
  /** Handshakes at a time; further connections are refused. 250 when it is absent, 0 is no limit. */
  readonly handshakeLimit?: number | undefined
  /** How long a handshake may take, in milliseconds. 10 000 when it is absent. */
  readonly handshakeTimeoutMs?: number | undefined
}

/** A network whose certificates can change while it runs. */
export interface TlsNetwork extends Network {
  /**
   * Reads the files again. Resolves to whether they have changed; new connections then use what they hold now.
   * Rejects with a `CertificateError` when they cannot be used, and goes on with what it has.
   */
  reload(): Promise<boolean>
  /** The same network, whose listeners also take peers that speak without TLS: the first byte of each tells. */
  withPlaintext(): Network
  readonly handshakes: HandshakeStats
}

/** What became of the handshakes of all listeners. */
export interface HandshakeStats {
  /** Under way now. */
  readonly active: number
  /** Refused because too many were under way. */
  readonly rejected: number
  /** Failed, or took too long. */
  readonly failed: number
}

/** A file with keys or certificates that cannot be used. The message names the file and says what to do. */
export class CertificateError extends Error {
  override readonly name = 'CertificateError'
  readonly path: string
  constructor(message: string, path: string, options?: ErrorOptions) {
    super(message, options)
    this.path = path
  }
}

/** Options of TLS that cannot be met, such as a cipher suite that nobody knows. The message says what was expected. */
export class TlsOptionError extends RangeError {
  override readonly name = 'TlsOptionError'
}

/** What WebSockets that are listened for must keep to. */
export interface WebSocketListenOptions {
  /** The only path that is served. Any when it is absent. */
  readonly path?: string | undefined
  /**
   * Origins whose pages may connect, such as `https://app.example`; `*` is any. When it is absent or empty, the host that
   * the page connects to. Programs that send no origin are always let in.
   */
  readonly origins?: readonly string[] | undefined
  /** Longest message that is read, in bytes. 1 MiB when it is absent. */
  readonly maxMessageBytes?: number | undefined
  /** Time between two pings; a peer that leaves one unanswered is cut. 30 000 when it is absent, 0 sends none. */
  readonly pingIntervalMs?: number | undefined
}
