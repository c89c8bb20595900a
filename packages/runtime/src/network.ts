import type { TlsFailure } from './tls-faults.ts'

/** The address of a peer. */
export interface Address {
  readonly host: string
  readonly port: number
  /** URL to connect to instead of `host` and `port`, for WebSockets with a path: `wss://host/zabra`. */
  readonly url?: string | undefined
}

/** Returns a URL for messages and logs: without its user, password and query, which may be secret. */
export const shownUrl = (url: string): string => url.replaceAll(/(?<=:\/\/)[^/?]*@|\?.*/gs, '')

/** The identity that its certificate gives a peer. A trusted authority has signed the certificate. */
export interface PeerIdentity {
  /** The subject in the form of RFC 2253, such as `CN=alice,O=Example`. */
  readonly subject: string
  readonly alternativeNames: readonly AlternativeName[]
}

/** A subject alternative name of a certificate. `type` is its number in RFC 5280. */
export interface AlternativeName {
  readonly type: number
  readonly value: string
}

/** What a TLS handshake has agreed on. */
export interface TlsParameters {
  /** The protocol, such as `TLSv1.3`. */
  readonly version: string
  /** The cipher suite by its name in the register of IANA, such as `TLS_AES_256_GCM_SHA384`. */
  readonly cipher: string
}

/** The types of subject alternative names that can be written as text (RFC 5280). */
export const AlternativeNameType = { email: 1, dns: 2, directory: 4, uri: 6, ip: 7, registered: 8 } as const

/** The transport of a connection. */
export type Transport = 'memory' | 'tcp' | 'tls' | 'webSocket'

/**
 * Receives the events of a connection. Calls never nest. The functions are methods: call them on the object.
 */
export interface ConnectionHandler {
  /** Receives bytes. `chunk` is valid during the call only: copy what must outlive it. */
  data(chunk: Uint8Array): void
  /** Called when bytes arrive that cannot be delivered yet, and are held. */
  held?(): void
  /** Called when the write buffer is empty again after `write` returned false. */
  drain(): void
  /**
   * Called when the peer has ended its direction. Return true to keep the other direction open until the owner ends it; false, or
   * no such method, closes the connection. Not called by transports that end both directions at once, such as WebSockets.
   */
  ended?(): boolean
  /** Called when the connection is closed, as the last event. `cause` is set when it broke. */
  closed(cause?: Error): void
}

/** An ordered, reliable stream of bytes in each direction. */
export interface Connection {
  readonly remote: Address
  readonly local: Address
  /** The transport, where it is known. */
  readonly transport?: Transport | undefined
  /** Whether the transport encrypts and authenticates the bytes. Absent is false. */
  readonly isSecure?: boolean | undefined
  /** What the TLS handshake has agreed on. Absent without TLS, where it is not known, and once the connection is closed. */
  readonly tls?: TlsParameters | undefined
  /** The certificates that the peer has shown, in DER: its own, then those that have signed it. Absent when it has shown none. */
  readonly peerCertificates?: readonly Uint8Array[] | undefined
  /**
   * The identity of a peer that has shown a certificate. On connections that this side has opened, present only where the network was
   * asked for it.
   */
  readonly peer?: PeerIdentity | undefined
  /** Bytes accepted by `write` that are not sent yet. */
  readonly bufferedBytes: number
  /** Memory of bytes that are received and not delivered: of an incomplete message, or from before a pause. Absent is 0. */
  readonly heldBytes?: number
  /**
   * Whether the system has copied all bytes written, so that the arrays passed to `write` may be reused. Absent is false.
   */
  readonly canReuseBuffers?: boolean | undefined
  /** Sets the handler of events. Call it in the turn of the event loop in which the connection is received. */
  setHandler(events: ConnectionHandler): void
  /**
   * Queues bytes. The connection owns the array from then on, or until `canReuseBuffers`. Returns false when the caller should
   * wait for `drain` (backpressure).
   */
  write(bytes: Uint8Array): boolean
  /** Pauses `data`. The end of the peer may be reported only after `resume`. */
  pause(): void
  resume(): void
  /** Sends the queued bytes and ends this direction. The connection closes when the peer has ended its direction too. */
  end(): void
  /** Closes at once and drops the queued bytes; of many that are destroyed together, some in later turns. Delivers only `closed` from then on. */
  destroy(cause?: Error): void
}

export interface Listener {
  readonly address: Address
  /** Stops accepting connections; existing ones stay. Resolves when the port is free. */
  close(): Promise<void>
}

/** An `AbortSignal`, or an object with the same methods that costs less. */
export interface AbortSignalLike {
  readonly aborted: boolean
  readonly reason: unknown
  addEventListener(type: 'abort', listener: () => void, options?: { once: boolean }): void
  removeEventListener(type: 'abort', listener: () => void): void
}

export interface Network {
  /**
   * Accepts connections on `host` and `port` (0 selects a free one). `keepAlive` enables TCP keep-alive. `refused` is called for a
   * client that could not be accepted, for lack of file descriptors for example. Rejects with a `NetworkError` that names the
   * address and the remedy when the port cannot be opened.
   */
  listen(
    at: { host?: string; port: number; backlog?: number; keepAlive?: boolean },
    accepted: (connection: Connection) => void,
    refused?: (error: Error) => void,
  ): Promise<Listener>
  /** Opens a connection. Rejects when it fails, or when `signal` aborts before it is open. */
  connect(to: Address, options?: { signal?: AbortSignalLike }): Promise<Connection>
  /** Resolves to the addresses of a host name. Absent where names are not resolved. Rejects when the name is not known. */
  resolve?(name: string): Promise<readonly string[]>
}

/** A port that cannot be opened, or a peer that cannot be reached. `code` is the error code of the system, such as EADDRINUSE. */
export class NetworkError extends Error {
  override readonly name = 'NetworkError'
  readonly code: string
  /** What has made a TLS handshake fail, if that is known. */
  readonly tlsFailure: TlsFailure | undefined
  /** The client that could not be accepted, if it is known. */
  readonly remote: Address | undefined
  constructor(
    message: string,
    code: string,
    {
      tlsFailure,
      remote,
      ...options
    }: ErrorOptions & {
      readonly tlsFailure?: TlsFailure | undefined
      readonly remote?: Address | undefined
    } = {},
  ) {
    super(message, options)
    this.code = code
    this.tlsFailure = tlsFailure
    this.remote = remote
  }
}
