import type { Network } from './network.ts'

export type TlsVersion = 'TLSv1.2' | 'TLSv1.3'

export type CertificateStoreType = 'PEM' | 'PKCS12' | 'JKS' | 'BCFKS'

/** A file with keys or certificates. */
export interface CertificateStore {
  readonly path: string
  /** The format of the file. By default, determined from its name, else from its first bytes. */
  readonly type?: CertificateStoreType | undefined
  readonly password?: string | undefined
  /** A file that contains the password; takes precedence over `password`. */
  readonly passwordPath?: string | undefined
  /** A PEM file with the private key, when the file at `path` holds certificates only. */
  readonly keyPath?: string | undefined
}

/** Options of a network over TLS. */
export interface TlsOptions {
  /** The private key, its certificate and the certificates that signed it. A listener needs one. */
  readonly keyStore?: CertificateStore | undefined
  /** The trusted authorities. Without it, those that the platform trusts. */
  readonly trustStore?: CertificateStore | undefined
  /**
   * A file with certificate revocation lists, PEM or DER. With it, every authority of a chain needs a list that has not expired,
   * and revoked certificates are refused.
   */
  readonly revocationList?: string | undefined
  /** Protocol versions. By default, both. */
  readonly versions?: readonly TlsVersion[] | undefined
  /** Cipher suites by their names in the RFCs, best first. By default, those of the platform. */
  readonly ciphers?: readonly string[] | undefined
  /** Whether clients are asked for a certificate: `want` refuses an untrusted one, `need` also a missing one. By default, `none`. */
  readonly clientAuth?: 'none' | 'want' | 'need' | undefined
  /** Whether `connect` verifies the host name in the server's certificate. By default, true. */
  readonly verifyHostName?: boolean | undefined
  /** Whether `connect` reads the identity in the server's certificate, for `Connection.peer`. By default, false. */
  readonly identifiesServer?: boolean | undefined
  /**
   * Most concurrent handshakes. A further connection replaces one of an address that has more of them than its own, one of an address
   * whose handshake has failed within 30 s if its own has not, or one without a ClientHello after a second, and is refused where there is
   * none. By default, 250; 0 is no limit.
   */
  readonly handshakeLimit?: number | undefined
  /**
   * Whether a connection over `handshakeLimit` is accepted otherwise too, and the oldest handshake of the address with most of them closed,
   * unless the others have shown trusted certificates, or its own has failed and theirs have not: for ports with few clients. By default, false.
   */
  readonly replacesHandshakes?: boolean | undefined
  /** Timeout of a handshake in milliseconds. By default, 10 000. */
  readonly handshakeTimeoutMs?: number | undefined
}

/** Runs the reading of files, so that the caller decides how many there are at once. */
export interface FileReads {
  run<T>(read: () => Promise<T>): Promise<T>
}

/** A network whose certificates can be reloaded. */
export interface TlsNetwork extends Network {
  /**
   * Reads the files again. Resolves to whether they have changed; new connections then use the new contents. Rejects with a
   * `CertificateError` when the files cannot be used, and keeps the previous contents.
   */
  reload(): Promise<boolean>
  /** Returns this network with listeners that also accept plaintext connections, distinguished by their first byte. */
  withPlaintext(): Network
  readonly handshakes: HandshakeStats
  /** The own certificate; undefined before the files are read, and without a key store. */
  readonly certificate: OwnCertificate | undefined
}

/** What metrics report of a network's own certificate. */
export interface OwnCertificate {
  /** When it ends, in milliseconds since 1970. */
  readonly validUntil: number
  /** Tells certificates of different subjects apart: the first 16 hexadecimal digits of the SHA-256 of the subject. */
  readonly subjectHash: string
}

/** Statistics of the handshakes of all listeners. */
export interface HandshakeStats {
  /** Handshakes in progress. */
  readonly active: number
  /** Connections refused because of `handshakeLimit`. */
  readonly rejected: number
  /** Handshakes that failed or timed out. */
  readonly failed: number
}

/** A file with keys or certificates that cannot be used. The message names the file and the remedy. */
export class CertificateError extends Error {
  override readonly name = 'CertificateError'
  readonly path: string
  constructor(message: string, path: string, options?: ErrorOptions) {
    super(message, options)
    this.path = path
  }
}

/** TLS options that are not supported, such as an unknown cipher suite. The message says what was expected. */
export class TlsOptionError extends RangeError {
  override readonly name = 'TlsOptionError'
}

/** Restrictions on accepted WebSockets. */
export interface WebSocketListenOptions {
  /** The only path that is accepted. By default, any. */
  readonly path?: string | undefined
  /**
   * Origins whose pages may connect, such as `https://app.example`; `*` is any. When absent or empty, pages of the host that they
   * connect to, where that is localhost, an address or `hostName`. Clients that send no origin are always accepted.
   */
  readonly origins?: readonly string[] | undefined
  /** The name under which pages connect without `origins`. */
  readonly hostName?: string | undefined
  /** Longest message in bytes. By default, 1 MiB. */
  readonly maxMessageBytes?: number | undefined
  /** Interval of pings in milliseconds; a peer that does not answer one is disconnected. By default, 30 000; 0 sends none. */
  readonly pingIntervalMs?: number | undefined
}
