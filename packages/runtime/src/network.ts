/** Where a peer is, as the network reports it. */
export interface Address {
  readonly host: string
  readonly port: number
  /** What to connect to instead of the root of `host` and `port`, for a network that knows paths: `wss://host/zabra`. */
  readonly url?: string
}

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

/** The types of subject alternative names that can be written as text (RFC 5280). */
export const AlternativeNameType = { email: 1, dns: 2, directory: 4, uri: 6, ip: 7, registered: 8 } as const

/** What carries the bytes of a connection. */
export type Transport = 'memory' | 'tcp' | 'tls' | 'webSocket'

/**
 * What a connection tells its owner. Calls never nest: one ends before the next begins. They are methods: whoever passes
 * them on calls them on the object.
 */
export interface ConnectionHandler {
  /** Bytes arrived. `chunk` belongs to the receiver for the length of the call only, unless it copies. */
  data(chunk: Uint8Array): void
  /** The write buffer is empty again after `write` returned false. */
  drain(): void
  /**
   * The peer sends nothing more. True keeps the other direction open until the owner ends it, false or no such function
   * closes the connection. A transport that ends both directions at once, as WebSockets do, does not ask.
   */
  ended?(): boolean
  /** The connection is gone; nothing follows. `cause` is set when it broke and absent when it was closed. */
  closed(cause?: Error): void
}

/** One ordered, reliable stream of bytes each way. */
export interface Connection {
  readonly remote: Address
  readonly local: Address
  /** What carries the bytes, as far as it is told. */
  readonly transport?: Transport
  /** Whether nobody on the way can read or change the bytes; not so when it is absent. */
  readonly isSecure?: boolean
  /** The certificates that the peer has shown, in DER: its own, then those that have signed it. Absent when it has shown none. */
  readonly peerCertificates?: readonly Uint8Array[] | undefined
  /** The identity of a client that has shown a certificate. Absent on connections that this side has opened. */
  readonly peer?: PeerIdentity | undefined
  /** Bytes accepted by `write` that the peer has not taken yet. */
  readonly bufferedBytes: number
  /**
   * Whether all that was written has been copied by the system, so that arrays which were handed to `write` may be written to
   * again. Never so when it is absent.
   */
  readonly canReuseBuffers?: boolean
  /** Sets who hears from this connection. Call it before the first turn ends, else bytes may be waiting. */
  setHandler(events: ConnectionHandler): void
  /**
   * Queues bytes, which the connection owns from then on, or until it says that they are `copied`. False asks the caller to wait
   * for `drain`.
   */
  write(bytes: Uint8Array): boolean
  /** Stops and restarts the flow of `data`. That the peer has ended or is gone may be told only when it flows again. */
  pause(): void
  resume(): void
  /** Sends what is queued and ends this direction. The connection is closed once the peer has ended its own. */
  end(): void
  /** Closes at once and drops what is queued. */
  destroy(cause?: Error): void
}

export interface Listener {
  readonly address: Address
  /** Stops accepting. Connections that exist stay. Resolves once the port is free. */
  close(): Promise<void>
}

/** What tells that nobody waits any more: an `AbortSignal`, or something lighter that can do as much. */
export interface AbortSignalLike {
  readonly aborted: boolean
  readonly reason: unknown
  addEventListener(type: 'abort', listener: () => void, options?: { once: boolean }): void
  removeEventListener(type: 'abort', listener: () => void): void
}

export interface Network {
  /**
   * Accepts connections on `host` and `port` (0 picks a free one). With `keepAlive` the system
   * notices peers that are gone. `refused` hears of a client that could not be accepted, for want of descriptors say.
   * Rejects with a `NetworkError` that names the address and what to do when the port is taken or refused.
   */
  listen(
    at: { host?: string; port: number; backlog?: number; keepAlive?: boolean },
    accepted: (connection: Connection) => void,
    refused?: (error: Error) => void,
  ): Promise<Listener>
  /** Opens a connection. Rejects when it cannot be made or when `signal` aborts before it is made. */
  connect(to: Address, options?: { signal?: AbortSignalLike }): Promise<Connection>
}

/** A port that cannot be opened or a peer that cannot be reached. `code` is the system's name, such as EADDRINUSE. */
export class NetworkError extends Error {
  override readonly name = 'NetworkError'
  readonly code: string
  constructor(message: string, code: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}
