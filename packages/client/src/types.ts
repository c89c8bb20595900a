import type { Clock, Connection, Random } from '@zabra/runtime'
import type { ZooKeeperError } from './errors.ts'
import type { DeleteTreeOptions, Visit, WalkOptions } from './tree-types.ts'

/** Opaque bytes, never a Node Buffer. */
export type Bytes = Uint8Array

/**
 * Encodes values to bytes and decodes them. `decode` may throw; the call that read the bytes rejects with its error.
 */
export interface Codec<T> {
  encode(value: T): Bytes
  decode(data: Bytes): T
}

export type CreateMode =
  | 'persistent'
  | 'ephemeral'
  | 'persistentSequential'
  | 'ephemeralSequential'
  | 'container'
  | 'persistentWithTtl'
  | 'persistentSequentialWithTtl'

/**
 * A position in the single sequence of replies, events and state changes of one client. A lower number came first.
 * Promises and streams settle in turns of their own, so code that combines them must compare this number and rely on
 * nothing else.
 */
export interface Ordered {
  readonly order: number
}

/** The Stat of a znode. zxids and the owner are exact 64-bit values. */
export interface Stat {
  /**
   * zxid of the transaction that created the znode. It grows when the znode is deleted and created again, so it can
   * serve as a fencing token.
   */
  readonly czxid: bigint
  readonly mzxid: bigint
  readonly pzxid: bigint
  /** Milliseconds since 1970, by the clock of the leader. */
  readonly ctime: number
  readonly mtime: number
  readonly version: number
  readonly cversion: number
  readonly aversion: number
  /** The session that owns an ephemeral znode, otherwise 0n. */
  readonly ephemeralOwner: bigint
  readonly dataLength: number
  readonly numChildren: number
}

/** One entry of an access control list. */
export interface ACL {
  readonly perms: number
  readonly scheme: string
  readonly id: string
}

export interface RetryPolicy {
  /** Base of the backoff in milliseconds (default 100). */
  readonly base?: number
  /** Growth factor of the backoff (default 2). */
  readonly factor?: number
  /** Maximum backoff in milliseconds (default 10 000). */
  readonly cap?: number
  /** Maximum number of attempts, including the first (default: no limit). */
  readonly maxAttempts?: number
  /** Milliseconds from the call after which no retry begins (default: no limit). */
  readonly maxElapsed?: number
}

export interface CallOptions {
  /** Aborts the call. A request that was sent may still be applied: see `maybeApplied` of the error. */
  readonly signal?: AbortSignal
  /** Milliseconds until the call rejects with an `OperationTimeoutError`. */
  readonly timeout?: number
  /** Overrides the retry policy of the client; false means one attempt. */
  readonly retry?: RetryPolicy | false
  /** On a read-only server, wait for a read-write server instead of rejecting with `NotReadOnlyError`. */
  readonly waitForReadWrite?: boolean
}

export interface SessionCredentials {
  readonly id: bigint
  readonly password: Bytes
}

export interface AuthInfo {
  readonly scheme: string
  readonly auth: Bytes
}

/** A SASL login. Each connection gets a new one. */
export interface SaslMechanism {
  readonly name: string
  /** Returns the token for a challenge; the first call has none. Undefined means that the exchange is complete. */
  step(challenge?: Bytes): Promise<Bytes | undefined>
}

export type ConnectionState =
  | 'connecting'
  | 'connected'
  | 'connectedReadOnly'
  | 'suspended'
  | 'expired'
  | 'authFailed'
  | 'closed'

export interface StateChange extends Ordered {
  readonly state: ConnectionState
  readonly previous: ConnectionState
  /** The server that the change concerns. */
  readonly server?: string
  readonly cause?: Error
  /** Counts the sessions of this client, from 1. */
  readonly sessionGeneration: number
}

export type NodeEventType = 'nodeCreated' | 'nodeDeleted' | 'nodeDataChanged' | 'nodeChildrenChanged'

/** A change of a watched znode. */
export interface NodeEvent extends Ordered {
  readonly type: NodeEventType
  readonly path: string
  /** The zxid of the change, from servers that send it (3.9 and later). */
  readonly zxid?: bigint
}

/** Events may be missing: read the watched state again. */
export interface ResyncEvent extends Ordered {
  readonly type: 'resync'
  readonly reason: 'reconnected' | 'newSession' | 'overflow'
}

export type WatchedEvent = NodeEvent | ResyncEvent

/** The changes of a watched path. Leaving the loop, `close` and disposal remove the watch. */
export interface Watcher extends AsyncIterable<WatchedEvent>, AsyncDisposable {
  readonly path: string
  close(): Promise<void>
}

/** A watch that fires once. Disposal and `close` remove it. */
export interface OneShotWatch extends Ordered, AsyncDisposable {
  /** For kind `data`. */
  readonly data?: Bytes
  /** For kind `children`. */
  readonly children?: readonly string[]
  /** Undefined when an `exists` watch found no znode. */
  readonly stat?: Stat
  /**
   * Resolves with the event. Rejects with `SessionExpiredError` or `ClosedError`; an unhandled rejection is not
   * reported.
   */
  readonly fired: Promise<NodeEvent>
  close(): Promise<void>
}

export type WriteOp =
  | {
      readonly op: 'create'
      readonly path: string
      readonly data?: Bytes | null
      readonly mode?: CreateMode
      readonly acl?: readonly ACL[]
      /** Milliseconds, for the TTL modes. */
      readonly ttl?: number
    }
  | { readonly op: 'delete' | 'check'; readonly path: string; readonly version?: number }
  | { readonly op: 'setData'; readonly path: string; readonly data: Bytes | null; readonly version?: number }
/** Apache's servers return no Stat for a create in a transaction; Zabra servers do. */
export type WriteResult<O> = O extends { op: 'create' }
  ? { path: string; stat?: Stat }
  : O extends { op: 'setData' }
    ? Stat
    : undefined
export interface ReadOp {
  readonly op: 'getData' | 'getChildren'
  readonly path: string
}
export type ReadResult<O> = O extends { op: 'getData' } ? { data: Bytes; stat: Stat } : { children: string[] }

/** The address of a server. */
export interface ServerAddress {
  readonly scheme: 'tcp' | 'tls' | 'ws' | 'wss'
  readonly host: string
  readonly port: number
  /** The complete URL of a WebSocket server. */
  readonly url?: string
}

/** Opens connections to servers. Belongs to one client. */
export interface Transport {
  /** The supported schemes; absent means any. */
  readonly schemes?: readonly string[]
  /** Opens a connection to a server. Rejects when that fails, or when `signal` aborts. */
  open(server: ServerAddress, signal: AbortSignal): Promise<Connection>
  /** Asks whether a server is read-write or read-only. */
  probe?(server: ServerAddress, signal: AbortSignal): Promise<'rw' | 'ro' | 'unknown'>
}

/** Sources of time and randomness, which tests replace. */
export interface Platform {
  readonly clock: Clock
  readonly random: Random
  /**
   * Looks up the SRV records of a name, for servers given as `dns-srv://name`. Absent where the platform has no SRV
   * lookup.
   */
  readonly resolveSrv?: (name: string) => Promise<readonly { readonly host: string; readonly port: number }[]>
}

export interface RequestInfo {
  readonly operation: string
  readonly path?: string
  /** The server that the client is connected to, if any. */
  readonly server?: string
}

/** Called when a request ends, with the lengths in bytes of the request and of its reply, 0 when there was none. */
export type RequestEndCallback = (end: {
  readonly error?: ZooKeeperError
  readonly sent: number
  readonly bytes: number
  readonly zxid?: bigint
}) => void

/**
 * Instrumentation hooks without dependencies. They never receive node data or credentials, and their errors are
 * ignored.
 */
export interface Instrumentation {
  /** Called when a request begins; the returned callback is called when it ends. */
  request?(info: RequestInfo): RequestEndCallback | void
  state?(change: StateChange): void
  /** A connection attempt failed. */
  attempt?(info: { server: string; error: Error }): void
  event?(info: { type: string; path?: string; watchers: number }): void
  recipe?(info: { recipe: string; path: string; phase: string; waitedMs?: number }): void
  /** The event loop was blocked: a timer fired `lateMs` milliseconds late. */
  stall?(lateMs: number): void
}

/**
 * When the holder of a lock or of leadership must treat it as lost: when the connection is lost (`connection`), once
 * the session may have expired (`lease`), or when the server reports the expiry (`session`; safe only with fencing
 * tokens).
 */
export type ErrorPolicy =
  | 'connection'
  | 'session'
  | { readonly lease: { readonly margin?: number; readonly renew?: 'commit' | 'passive' } }

export interface ClientOptions {
  /** A connect string such as `a:2181,b:2181/app` or `dns-srv://name/app`, or a list of addresses. */
  readonly servers: string | readonly string[]
  /** How to reach the servers. The entry points of Node and of the web have a default. */
  readonly transport?: Transport
  /** The root of all paths, as an alternative to the chroot in the connect string. */
  readonly chroot?: string
  /** Creates the chroot, as containers, if it is missing. */
  readonly createChroot?: boolean
  /** Requested timeout in milliseconds (default 30 000). The server may grant another. */
  readonly sessionTimeout?: number
  /** Resumes this session instead of opening one. */
  readonly session?: SessionCredentials
  /** What happens after expiry. `renew` (default) opens a new session, with the next generation. */
  readonly sessionExpiry?: 'renew' | 'close'
  /** Accept a read-only server, which has lost its quorum. */
  readonly readOnly?: boolean
  /** Identities that the client sends on each connection before any request. */
  readonly auth?: readonly AuthInfo[]
  /** Returns a SASL login for one connection. */
  readonly sasl?: (server: ServerAddress) => SaslMechanism
  readonly retry?: RetryPolicy
  /** For recipes on this client (default `connection`). */
  readonly errorPolicy?: ErrorPolicy
  /** Maximum number of requests queued while there is no connection (default 10 000; 0 rejects at once). */
  readonly offlineQueue?: number
  /** Update the server list from the configuration of the ensemble. */
  readonly trackEnsemble?: boolean
  /** Maximum length of a reply in bytes (default 4 MiB). A longer one closes the connection. */
  readonly maxFrame?: number
  /** Maximum length of a request in bytes (default 1 MiB less 1 KiB, below the limit of servers). */
  readonly maxRequest?: number
  /**
   * Sends adjacent `getData` calls of one turn as `multiRead` requests of at most `maxReads` reads (2 to 1024,
   * default 64); default false. This costs client and server a fraction of single requests. Each read still has its
   * own result or error, and settles with the slowest of its batch. Batches are sized so that their reply is likely
   * to stay below 256 KiB. For servers from 3.6 on: if the server does not implement `multiRead`, the client
   * reconnects and sends reads one by one for the rest of the session.
   */
  readonly batchReads?: boolean | { readonly maxReads?: number }
  readonly platform?: Partial<Platform>
  readonly instrumentation?: Instrumentation
  /**
   * Adds the caller of a failed call to the stack of its error (default false). Capturing the stack costs about 4 µs
   * of CPU per call.
   */
  readonly callerStacks?: boolean
  /** Redacts paths in everything that observers receive. */
  readonly redactPath?: (path: string) => string
}

export interface CreateOptions extends CallOptions {
  /** Default `persistent`. */
  readonly mode?: CreateMode
  /** Default: everybody may do everything. */
  readonly acl?: readonly ACL[]
  /**
   * Milliseconds without changes or children after which the server removes the znode; for the modes that end in
   * `Ttl`.
   */
  readonly ttl?: number
  /** Create missing parents: as containers for true, or as persistent znodes. */
  readonly parents?: boolean | 'persistent'
  /**
   * Begins the name with a protection prefix, by which the znode can be found when the reply is lost. Default for
   * sequential modes, where a retry would create a second znode. A function returns the prefix for a new UUID, which
   * it must contain; the default is `_c_<uuid>-`, as in Curator.
   */
  readonly protected?: boolean | ((uuid: string) => string)
  /** After a lost reply, an existing znode with equal contents counts as success. */
  readonly idempotent?: boolean
}

export interface CreateResult extends Ordered {
  readonly path: string
  readonly stat: Stat
}

export interface DeleteOptions extends CallOptions {
  /** Default: any version. */
  readonly version?: number
  /** Retry in the background, even after the caller has given up, until the delete succeeds or the session ends. */
  readonly guaranteed?: boolean
  /**
   * With a version: after a lost reply, a missing znode counts as success. Declares that no other client deletes or
   * reuses the name.
   */
  readonly idempotent?: boolean
  /** Delete everything below the znode, too. */
  readonly recursive?: boolean
  /** A missing znode counts as success. */
  readonly missingOk?: boolean
}

export interface SetDataOptions extends CallOptions {
  /** Default: any version. */
  readonly version?: number
  /** The value does not depend on what was read, so writing it twice equals writing it once. */
  readonly idempotent?: boolean
  /** Create the znode and its parents if it is missing. */
  readonly createIfMissing?: boolean
}

export interface WatchOptions extends CallOptions {
  /** `persistent` (default) watches the node and its children, `persistentRecursive` everything below. */
  readonly mode?: 'persistent' | 'persistentRecursive'
  /** Maximum number of buffered events (default 1024). An overflow replaces them by one `resync` event. */
  readonly buffer?: number
}

export interface MkdirpOptions extends CallOptions {
  /** Default `container`: the server removes it some time after its last child. */
  readonly mode?: 'container' | 'persistent'
  readonly acl?: readonly ACL[]
}

/** A reconfiguration: members that join and leave, or the complete list, in the format of the configuration. */
export interface ReconfigChange {
  readonly joining?: string
  readonly leaving?: string
  readonly members?: string
  /** Apply only to this version of the configuration (default: any). */
  readonly version?: bigint
}

/**
 * A ZooKeeper client for the tree below one chroot. Every call may reject with a `ZooKeeperError`; see `errors.ts`.
 * Calls are executed in the order in which they are made.
 */
export interface Client extends AsyncDisposable {
  readonly state: ConnectionState
  readonly session: SessionCredentials & { readonly timeout: number; readonly generation: number }
  /** Time of `platform.clock.monotonic()` before which the session cannot have expired. */
  readonly leaseHorizon: number
  /**
   * Time of `platform.clock.monotonic()` at which the newest answered request was sent, pings included. The server
   * has heard from the session since then. Correct even right after the process was suspended.
   */
  readonly lastContact: number
  /** The clock and the random source of this client, for code built on it. */
  readonly platform: Platform
  readonly errorPolicy: ErrorPolicy
  readonly instrumentation: Instrumentation | undefined
  /** Yields the current state, then each change. Ends when the client closes. */
  states(): AsyncIterableIterator<StateChange>
  /** Resolves with the reason when the client closes, undefined after `close()`. Never rejects. */
  readonly closed: Promise<Error | undefined>
  /**
   * Returns a client of the same session with another root below this one. Closing it closes the clients derived from
   * it and leaves the session open.
   */
  chroot(path: string): Client
  /** Returns a client of decoded values over the same session. */
  withCodec<T>(codec: Codec<T>): TypedClient<T>

  /** Creates a znode. Null data is stored as null, which differs from empty; most programs do not need it. */
  create(path: string, data?: Bytes | null, options?: CreateOptions): Promise<CreateResult>
  delete(path: string, options?: DeleteOptions): Promise<void>
  exists(path: string, options?: CallOptions): Promise<(Stat & Ordered) | undefined>
  /** Reads the data and the stat. Null data is returned as empty with `isNull` true. */
  getData(
    path: string,
    options?: CallOptions,
  ): Promise<{ data: Bytes; isNull: boolean; stat: Stat } & Ordered>
  setData(path: string, data: Bytes | null, options?: SetDataOptions): Promise<Stat & Ordered>
  getChildren(path: string, options?: CallOptions): Promise<{ children: string[]; stat: Stat } & Ordered>
  getACL(path: string, options?: CallOptions): Promise<{ acl: ACL[]; stat: Stat }>
  setACL(
    path: string,
    acl: readonly ACL[],
    options?: CallOptions & { version?: number },
  ): Promise<Stat & Ordered>
  /** Counts the znodes below a path. */
  getAllChildrenNumber(path: string, options?: CallOptions): Promise<number>
  /** Lists the ephemeral znodes of this session whose paths begin with `prefix`. */
  getEphemerals(prefix?: string, options?: CallOptions): Promise<string[]>
  /** Waits until the connected server has caught up with its leader. */
  sync(path: string, options?: CallOptions): Promise<void>
  /** Commits a transaction without effect and returns its zxid: later reads see everything committed before. */
  syncCommitted(options?: CallOptions): Promise<bigint>
  /** Executes a transaction: all or nothing. Results have the positions and types of the operations. */
  multi<const T extends readonly WriteOp[]>(
    operations: T,
    options?: CallOptions,
  ): Promise<{ [K in keyof T]: WriteResult<T[K]> }>
  /** Reads several znodes at one point in time; each read succeeds or fails on its own. */
  multiRead<const T extends readonly ReadOp[]>(
    operations: T,
    options?: CallOptions,
  ): Promise<{ [K in keyof T]: ReadResult<T[K]> | ZooKeeperError }>
  /** Reads and sets a watch in one request; `exists` also waits for creation. */
  watchOnce(path: string, kind: 'data' | 'exists' | 'children', options?: CallOptions): Promise<OneShotWatch>
  /** Sets a persistent watch, which survives reconnects and new sessions; leaving the loop removes it. */
  watch(path: string, options?: WatchOptions): Promise<Watcher>
  /** Authenticates now and on every later connection. A rejection closes the client. */
  addAuth(scheme: string, auth: Bytes, options?: CallOptions): Promise<void>
  whoAmI(options?: CallOptions): Promise<{ scheme: string; user: string }[]>
  /** Reads the configuration of the ensemble; its path is outside of every chroot. */
  getConfig(options?: CallOptions): Promise<{ data: Bytes; stat: Stat } & Ordered>
  reconfig(change: ReconfigChange, options?: CallOptions): Promise<{ data: Bytes; stat: Stat } & Ordered>
  /** Creates a path and its missing parents. `/` creates the chroot. */
  mkdirp(path: string, options?: MkdirpOptions): Promise<void>
  /** Yields the paths of a tree, parents first. Skips znodes that vanish meanwhile. */
  walk(path: string, options?: WalkOptions): AsyncIterableIterator<string>
  /** Yields each znode of a tree with its stat and children. Prefetches while the consumer works. */
  visit(path: string, options?: WalkOptions): AsyncIterableIterator<Visit>
  /**
   * Deletes a znode and everything below it, in transactions of many znodes, and resolves to the number deleted.
   * Equals `delete` with `recursive`, with progress callbacks.
   */
  deleteTree(path: string, options?: DeleteTreeOptions): Promise<number>
  /**
   * Takes a new server list. Resolves to true if this client moves to another server, by the rule that balances
   * clients.
   */
  updateServerList(servers: string | readonly string[]): Promise<boolean>
  /**
   * Ends the session; its ephemeral znodes are removed. Without a connection it resolves at once and the session
   * expires on the servers.
   */
  close(options?: { signal?: AbortSignal }): Promise<void>
  /** Closes the client and leaves the session alive for another client. */
  detach(): Promise<SessionCredentials>
}

export interface TypedClient<T> {
  readonly client: Client
  create(path: string, value: T, options?: CreateOptions): Promise<CreateResult>
  get(path: string, options?: CallOptions): Promise<{ value: T; stat: Stat } & Ordered>
  set(path: string, value: T, options?: SetDataOptions): Promise<Stat & Ordered>
  /** Reads, changes and writes the value until no other write interferes. `change` may run more than once. */
  update(
    path: string,
    change: (value: T) => T,
    options?: CallOptions,
  ): Promise<{ value: T; stat: Stat & Ordered }>
}
