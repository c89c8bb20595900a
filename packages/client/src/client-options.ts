import type { Instrumentation } from './instrumentation.ts'
import type { Platform, ServerAddress, Transport } from './platform.ts'
import type { AuthInfo, Bytes, RetryFunction, RetryPolicy, SessionCredentials } from './types.ts'

/** A SASL login. Each connection gets a new one. */
export interface SaslMechanism {
  readonly name: string
  /** Returns the token for a challenge; the first call has none. Undefined means that the exchange is complete. */
  step(challenge?: Bytes): Promise<Bytes | undefined>
}

/**
 * When the holder of a lock or of leadership must treat it as lost: when the connection is lost (`connection`), once
 * the session may have expired (`lease`), or when the server reports the expiry (`session`; safe only with fencing
 * tokens).
 */
export type ErrorPolicy =
  | 'connection'
  | 'session'
  | {
      readonly lease: {
        readonly marginMs?: number | undefined
        readonly renew?: 'commit' | 'passive' | undefined
      }
    }

/** A failed attempt to connect to one server. */
export interface ConnectFailure {
  readonly server: string
  readonly error: Error
  /** Attempts that have failed since the client was connected last. */
  readonly attempts: number
}

export interface ClientOptions {
  /** A connect string such as `a:2181,b:2181/app` or `dns-srv://name/app`, or a list of addresses. */
  readonly servers: string | readonly string[]
  /** How to reach the servers. The entry points of Node and of the web have a default. */
  readonly transport?: Transport | undefined
  /** The root of all paths, as an alternative to the chroot in the connect string. */
  readonly chroot?: string | undefined
  /** Creates the chroot, as containers, if it is missing. */
  readonly createChroot?: boolean | undefined
  /** Requested timeout in milliseconds (default 30 000). The server may grant another. */
  readonly sessionTimeoutMs?: number | undefined
  /**
   * Milliseconds after which `connect` rejects when no server has granted a session (default 30 000), the lookup of servers
   * and the creation of the chroot included.
   */
  readonly connectTimeoutMs?: number | undefined
  /** Let `connect` try without limit, except where no attempt can succeed. */
  readonly waitForever?: boolean | undefined
  /** Called after each failed attempt to connect, also after the first connection. Its errors are ignored. */
  readonly onAttemptFailed?: ((failure: ConnectFailure) => void) | undefined
  /** Resumes this session instead of opening one. */
  readonly session?: SessionCredentials | undefined
  /** What happens after expiry. `renew` (default) opens a new session, with the next generation. */
  readonly sessionExpiry?: 'renew' | 'close' | undefined
  /** Accept a read-only server, which has lost its quorum. */
  readonly readOnly?: boolean | undefined
  /** Identities that the client sends on each connection before any request. */
  readonly auth?: readonly AuthInfo[] | undefined
  /** Returns a SASL login for one connection. */
  readonly sasl?: ((server: ServerAddress) => SaslMechanism) | undefined
  /**
   * Milliseconds after which a call without a `timeoutMs` of its own rejects (default: none). Walks, recursive deletes, and
   * `update` and `children` of typed clients apply it to each request.
   */
  readonly timeoutMs?: number | undefined
  /** Limits and backoff of retries, or a function that decides on each (default: no limits). */
  readonly retry?: RetryPolicy | RetryFunction | undefined
  /** For recipes on this client (default `connection`). */
  readonly errorPolicy?: ErrorPolicy | undefined
  /** Maximum number of requests queued while there is no connection (default 10 000; 0 rejects at once). */
  readonly offlineQueue?: number | undefined
  /** Update the server list from the configuration of the ensemble. */
  readonly trackEnsemble?: boolean | undefined
  /** Maximum length of a reply in bytes (default 4 MiB). A longer one closes the connection. */
  readonly maxFrameBytes?: number | undefined
  /** Maximum length of a request in bytes (default 1 MiB less 1 KiB, below the limit of servers). */
  readonly maxRequestBytes?: number | undefined
  /**
   * Sends adjacent `getData` calls of one turn as `multiRead` requests of at most `maxReads` reads (2 to 1024,
   * default 64); default false. This costs client and server a fraction of single requests. Each read still has its
   * own result or error, and settles with the slowest of its batch. Batches are sized so that their reply is likely
   * to stay below 256 KiB. For servers from 3.6 on: if the server does not implement `multiRead`, the client
   * reconnects and sends reads one by one for the rest of the session.
   */
  readonly batchReads?: boolean | { readonly maxReads?: number | undefined } | undefined
  readonly platform?: Partial<Platform> | undefined
  readonly instrumentation?: Instrumentation | undefined
  /**
   * Adds the caller of a failed call to the stack of its error (default false). Capturing the stack costs about 4 µs
   * of CPU per call.
   */
  readonly callerStacks?: boolean | undefined
  /** Redacts paths in everything that observers receive. */
  readonly redactPath?: ((path: string) => string) | undefined
}
