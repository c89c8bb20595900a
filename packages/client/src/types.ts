import type { Clock, Connection, Random } from '@zabra/runtime'
import type { ZooKeeperError } from './errors.ts'
import type { DeleteTreeOptions, Visit, WalkOptions } from './tree-types.ts'

/** Opaque bytes, never a Buffer of Node. */
export type Bytes = Uint8Array

/** How values become bytes and back. `decode` may throw; the call that read them rejects with what it threw. */
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
 * Position in the single stream of replies, events and state changes of one client. What has the lower number came
 * first. Promises and streams settle in turns of their own, so whoever combines them compares this and nothing else.
 */
export interface Ordered {
  readonly order: number
}

/** What a server tells of a znode. Transaction ids and the owner are exact 64-bit values. */
export interface Stat {
  /** zxid of the transaction that created it. Grows over re-creations: the number to use as a fencing token. */
  readonly czxid: bigint
  readonly mzxid: bigint
  readonly pzxid: bigint
  /** Milliseconds since 1970, by the clock of the leader. */
  readonly ctime: number
  readonly mtime: number
  readonly version: number
  readonly cversion: number
  readonly aversion: number
  /** The session that owns an ephemeral znode, else 0n. */
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
  /** Milliseconds of the first wait (default 100). */
  readonly base?: number
  /** How much longer each wait may be than the last (default 2). */
  readonly factor?: number
  /** Longest wait in milliseconds (default 10 000). */
  readonly cap?: number
  /** Tries in all, the first included (default: no limit). */
  readonly maxAttempts?: number
  /** Milliseconds from the call after which no further try begins (default: no limit). */
  readonly maxElapsed?: number
}

export interface CallOptions {
  /** Stops waiting. A request that was sent may still take effect: the error says so in `maybeApplied`. */
  readonly signal?: AbortSignal
  /** Milliseconds until the call fails with an `OperationTimeoutError`. */
  readonly timeout?: number
  /** Overrides the policy of the client; false means one attempt. */
  readonly retry?: RetryPolicy | false
  /** On a read-only server, wait for one that takes writes instead of failing with `NotReadOnlyError`. */
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

/** One SASL login. A new one is made for each connection. */
export interface SaslMechanism {
  readonly name: string
  /** Answers a challenge, the first call without one. Undefined says that nothing is left to send. */
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
  /** The server that the change is about. */
  readonly server?: string
  readonly cause?: Error
  /** One more with every new session of this client. */
  readonly sessionGeneration: number
}

export type NodeEventType = 'nodeCreated' | 'nodeDeleted' | 'nodeDataChanged' | 'nodeChildrenChanged'

/** A change of a znode that was watched. */
export interface NodeEvent extends Ordered {
  readonly type: NodeEventType
  readonly path: string
  /** The transaction behind the change, from servers that tell it (3.9 and later). */
  readonly zxid?: bigint
}

/** Events may be missing: read again what you depend on. */
export interface ResyncEvent extends Ordered {
  readonly type: 'resync'
  readonly reason: 'reconnected' | 'newSession' | 'overflow'
}

export type WatchedEvent = NodeEvent | ResyncEvent

/** The changes below a watched path. Leaving the loop, `close` and disposal remove the watch. */
export interface Watcher extends AsyncIterable<WatchedEvent>, AsyncDisposable {
  readonly path: string
  close(): Promise<void>
}

/** One watch that fires once. Disposal and `close` remove it. */
export interface OneShotWatch extends Ordered, AsyncDisposable {
  /** Of kind `data`. */
  readonly data?: Bytes
  /** Of kind `children`. */
  readonly children?: readonly string[]
  /** Undefined when an `exists` watch found no znode. */
  readonly stat?: Stat
  /** The event. Rejects with `SessionExpiredError` or `ClosedError`; nobody has to listen. */
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
      /** Milliseconds, for the modes with a time to live. */
      readonly ttl?: number
    }
  | { readonly op: 'delete' | 'check'; readonly path: string; readonly version?: number }
  | { readonly op: 'setData'; readonly path: string; readonly data: Bytes | null; readonly version?: number }
/** Apache's servers tell no Stat of what a transaction creates; those of this project do. */
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

/** Where a server is. */
export interface ServerAddress {
  readonly scheme: 'tcp' | 'tls' | 'ws' | 'wss'
  readonly host: string
  readonly port: number
  /** The whole URL of a WebSocket server. */
  readonly url?: string
}

/** How bytes get to servers. One client has one; nothing is shared between clients. */
export interface Transport {
  /** The schemes that it knows; any when it is absent. */
  readonly schemes?: readonly string[]
  /** Opens a stream to a server. Rejects when it cannot, or when `signal` aborts. */
  open(server: ServerAddress, signal: AbortSignal): Promise<Connection>
  /** Whether a server takes writes. */
  probe?(server: ServerAddress, signal: AbortSignal): Promise<'rw' | 'ro' | 'unknown'>
}

/** All that is not deterministic, so that tests can drive it. */
export interface Platform {
  readonly clock: Clock
  readonly random: Random
  /** Where a service is, by SRV records, for servers given as `dns-srv://name`. Absent where the platform cannot tell. */
  readonly resolveSrv?: (name: string) => Promise<readonly { readonly host: string; readonly port: number }[]>
}

export interface RequestInfo {
  readonly operation: string
  readonly path?: string
  /** The server that the client is on, if it is on one. */
  readonly server?: string
}

/** Hears how a request ended: bytes of the request and of its answer, 0 when there was none. */
export type RequestEndCallback = (end: {
  readonly error?: ZooKeeperError
  readonly sent: number
  readonly bytes: number
  readonly zxid?: bigint
}) => void

/** Hooks without dependencies. They never see node data or credentials, and what they throw is ignored. */
export interface Instrumentation {
  /** A call begins; what it returns hears of the end. */
  request?(info: RequestInfo): RequestEndCallback | void
  state?(change: StateChange): void
  /** An attempt to connect has failed. */
  attempt?(info: { server: string; error: Error }): void
  event?(info: { type: string; path?: string; watchers: number }): void
  recipe?(info: { recipe: string; path: string; phase: string; waitedMs?: number }): void
  /** The event loop was blocked: a timer ran `lateMs` milliseconds late. */
  stall?(lateMs: number): void
}

/**
 * When a holder of a lock or of leadership must count it as lost: as soon as the connection is (`connection`), once the
 * session can have expired (`lease`), or when the server says that it has (`session`; only with fencing tokens).
 */
export type ErrorPolicy =
  | 'connection'
  | 'session'
  | { readonly lease: { readonly margin?: number; readonly renew?: 'commit' | 'passive' } }

export interface ClientOptions {
  /** A connect string such as `a:2181,b:2181/app` or `dns-srv://name/app`, or a list of addresses. */
  readonly servers: string | readonly string[]
  /** How to reach them. The entry points of Node and of the web bring one. */
  readonly transport?: Transport
  /** Root of every path, an alternative to the one in the connect string. */
  readonly chroot?: string
  /** Makes the chroot, as containers, when it is missing. */
  readonly createChroot?: boolean
  /** Requested timeout in milliseconds (default 30 000). The server may grant another. */
  readonly sessionTimeout?: number
  /** Re-attach to this session instead of opening one. */
  readonly session?: SessionCredentials
  /** What follows expiry (default `renew`: a new session; its epoch, states and watchers tell). */
  readonly sessionExpiry?: 'renew' | 'close'
  /** Accept a server that has lost its quorum and only answers reads. */
  readonly readOnly?: boolean
  /** Identities, proved on each connection before anything else. */
  readonly auth?: readonly AuthInfo[]
  /** Makes a SASL login for one connection. */
  readonly sasl?: (server: ServerAddress) => SaslMechanism
  readonly retry?: RetryPolicy
  /** For recipes on this client (default `connection`). */
  readonly errorPolicy?: ErrorPolicy
  /** Requests held while there is no connection (default 10 000; 0 rejects at once). */
  readonly offlineQueue?: number
  /** Follow the servers that the ensemble names in its configuration. */
  readonly trackEnsemble?: boolean
  /** Longest answer in bytes (default 4 MiB). A longer one closes the connection. */
  readonly maxFrame?: number
  /** Longest request in bytes (default 1 MiB less 1 KiB, below what a server accepts). */
  readonly maxRequest?: number
  /**
   * Lets `getData` calls of one turn leave together, as `multiRead` requests of `most` reads at most (2 to 1024, default
   * 64), where nothing else was called between them (default false). Many reads cost client and server a fraction then;
   * each still has its own result or error, and comes no sooner than the slowest of its group. Groups are kept so small
   * that their answer is likely to stay below 256 KiB. For servers from 3.6 on: one that answers that it knows no
   * `multiRead` gets them one by one for the rest of the session, on a connection made anew.
   */
  readonly batchReads?: boolean | { readonly most?: number }
  readonly platform?: Partial<Platform>
  readonly instrumentation?: Instrumentation
  /**
   * Lets the stack of an error name who made the call, and not only what read the answer (default false). The stack is
   * taken at each call, which costs about 4 µs of processor time.
   */
  readonly callerStacks?: boolean
  /** What observers see of a path, for paths that name what they must not learn. */
  readonly redactPath?: (path: string) => string
}

export interface CreateOptions extends CallOptions {
  /** Default `persistent`. */
  readonly mode?: CreateMode
  /** Default: anybody may do everything. */
  readonly acl?: readonly ACL[]
  /** Milliseconds without change or children after which the server removes it; for the modes that end in `Ttl`. */
  readonly ttl?: number
  /** Make missing parents, as containers unless told otherwise. */
  readonly parents?: boolean | 'persistent'
  /**
   * Begin the name with a mark, so that the znode can be found again when the reply is lost. Default for sequential
   * modes, whose second try would make a second znode. A function writes the mark from a fresh UUID; without one it is
   * `_c_<uuid>-`, as Curator writes it. The mark must contain the UUID.
   */
  readonly protected?: boolean | ((uuid: string) => string)
  /** After a lost reply, an existing znode that equals what was asked for is success. */
  readonly idempotent?: boolean
}

export interface CreateResult extends Ordered {
  readonly path: string
  readonly stat: Stat
}

export interface DeleteOptions extends CallOptions {
  /** Default: any version. */
  readonly version?: number
  /** Go on in the background, when the caller has gone too, until it is done or the session is over. */
  readonly guaranteed?: boolean
  /** With a version: after a lost reply, a missing znode is success, since nobody else deletes or reuses the name. */
  readonly idempotent?: boolean
  /** With everything below. */
  readonly recursive?: boolean
  /** What is not there is deleted already. */
  readonly missingOk?: boolean
}

export interface SetDataOptions extends CallOptions {
  /** Default: any version. */
  readonly version?: number
  /** The value does not depend on what was read, so that writing it twice is writing it once. */
  readonly idempotent?: boolean
  /** Create it, with its parents, when it is missing. */
  readonly createIfMissing?: boolean
}

export interface WatchOptions extends CallOptions {
  /** Of the node and its children (default), or of everything below. */
  readonly mode?: 'persistent' | 'persistentRecursive'
  /** Events that may wait (default 1024). What overflows becomes one `resync` item. */
  readonly buffer?: number
}

export interface MkdirpOptions extends CallOptions {
  /** Default `container`: the server removes it some time after its last child. */
  readonly mode?: 'container' | 'persistent'
  readonly acl?: readonly ACL[]
}

/** A change of the ensemble: members that come and go, or the whole list, in the words of the configuration. */
export interface ReconfigChange {
  readonly joining?: string
  readonly leaving?: string
  readonly members?: string
  /** The version of the configuration that this is meant for (default: any). */
  readonly version?: bigint
}

/**
 * A view of a tree over one session. Every call may reject with a `ZooKeeperError`; see `errors.ts` for what each means.
 * Calls are carried out in the order in which they are made.
 */
export interface Client extends AsyncDisposable {
  readonly state: ConnectionState
  readonly session: SessionCredentials & { readonly timeout: number; readonly epoch: number }
  /** Time of `ports.clock.monotonic()` before which the session cannot have expired. */
  readonly leaseHorizon: number
  /**
   * Time of `ports.clock.monotonic()` at which the newest request left that was answered, pings included. The server that
   * answered has not counted the session as silent since before then. Right even just after the process stood still.
   */
  readonly lastContact: number
  /** The clock and the chance of this client, for what is built on it. */
  readonly platform: Platform
  readonly errorPolicy: ErrorPolicy
  readonly instrumentation: Instrumentation | undefined
  /** The current state, then each change. Ends with the client. */
  states(): AsyncIterableIterator<StateChange>
  /** Settles once with the reason when the client is finished, undefined when it was closed. Never rejects. */
  readonly closed: Promise<Error | undefined>
  /** The same session, another root below this one. Closing the view closes those made of it and leaves the session. */
  chroot(path: string): Client
  /** The same session, values instead of bytes. */
  withCodec<T>(codec: Codec<T>): TypedClient<T>

  /** Data of null is kept as null, which is not the same as empty; most programs have no use for it. */
  create(path: string, data?: Bytes | null, options?: CreateOptions): Promise<CreateResult>
  delete(path: string, options?: DeleteOptions): Promise<void>
  exists(path: string, options?: CallOptions): Promise<(Stat & Ordered) | undefined>
  /** Data of null are empty here, and `isNull` says so. */
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
  /** How many znodes lie below a path. */
  getAllChildrenNumber(path: string, options?: CallOptions): Promise<number>
  /** The ephemeral znodes of this session whose paths begin with `prefix`. */
  getEphemerals(prefix?: string, options?: CallOptions): Promise<string[]>
  /** Waits until the connected server has caught up with its leader. */
  sync(path: string, options?: CallOptions): Promise<void>
  /** Commits a transaction without effect and gives its zxid: later reads see all that was committed before. */
  syncCommitted(options?: CallOptions): Promise<bigint>
  /** All or nothing; results have the positions and types of the operations. */
  multi<const T extends readonly WriteOp[]>(
    operations: T,
    options?: CallOptions,
  ): Promise<{ [K in keyof T]: WriteResult<T[K]> }>
  /** Reads of one moment; each succeeds or fails by itself. */
  multiRead<const T extends readonly ReadOp[]>(
    operations: T,
    options?: CallOptions,
  ): Promise<{ [K in keyof T]: ReadResult<T[K]> | ZooKeeperError }>
  /** Reads and watches in one request; `exists` also waits for creation. */
  watchOnce(path: string, kind: 'data' | 'exists' | 'children', options?: CallOptions): Promise<OneShotWatch>
  /** Survives reconnects and new sessions; leaving the loop removes it. */
  watch(path: string, options?: WatchOptions): Promise<Watcher>
  /** Proves an identity, now and on every later connection. A refusal ends the client. */
  addAuth(scheme: string, auth: Bytes, options?: CallOptions): Promise<void>
  whoAmI(options?: CallOptions): Promise<{ scheme: string; user: string }[]>
  /** The configuration of the ensemble; its path is outside every root. */
  getConfig(options?: CallOptions): Promise<{ data: Bytes; stat: Stat } & Ordered>
  reconfig(change: ReconfigChange, options?: CallOptions): Promise<{ data: Bytes; stat: Stat } & Ordered>
  /** Makes a path and what is missing above it. `/` makes the chroot. */
  mkdirp(path: string, options?: MkdirpOptions): Promise<void>
  /** The paths of a tree, each before those below it. Znodes that vanish meanwhile are left out. */
  walk(path: string, options?: WalkOptions): AsyncIterableIterator<string>
  /** The same with what is known of each znode. Requests run ahead of who reads. */
  visit(path: string, options?: WalkOptions): AsyncIterableIterator<Visit>
  /**
   * Deletes a znode with all that is below it, in transactions of many, and resolves to how many there were. It is what
   * `delete` with `recursive` does, for those who want to see how far it is.
   */
  deleteTree(path: string, options?: DeleteTreeOptions): Promise<number>
  /** Takes a new list of servers; true if this client is moving, by the rule that spreads clients evenly. */
  updateServerList(servers: string | readonly string[]): Promise<boolean>
  /** Ends the session; its ephemeral znodes go. Without a connection it resolves at once and the session runs out. */
  close(options?: { signal?: AbortSignal }): Promise<void>
  /** Leaves the session alive for a successor. */
  detach(): Promise<SessionCredentials>
}

export interface TypedClient<T> {
  readonly client: Client
  create(path: string, value: T, options?: CreateOptions): Promise<CreateResult>
  get(path: string, options?: CallOptions): Promise<{ value: T; stat: Stat } & Ordered>
  set(path: string, value: T, options?: SetDataOptions): Promise<Stat & Ordered>
  /** Reads, changes and writes until nobody came between. `change` may run more than once. */
  update(
    path: string,
    change: (value: T) => T,
    options?: CallOptions,
  ): Promise<{ value: T; stat: Stat & Ordered }>
}
