import type { ErrorPolicy } from './client-options.ts'
import type { ZooKeeperError } from './errors.ts'
import type { Instrumentation } from './instrumentation.ts'
import type { Platform } from './platform.ts'
import type { RecursiveDeleteOptions, Visit, WalkOptions } from './tree-types.ts'
import type {
  ACL,
  Bytes,
  CallOptions,
  Codec,
  ConnectionState,
  CreateOptions,
  CreateResult,
  Data,
  DeleteOptions,
  MissingNode,
  NamedNodeOptions,
  OneShotWatches,
  Ordered,
  OwnBytes,
  ReadOp,
  ReadResult,
  ReconfigChange,
  SessionCredentials,
  SetDataOptions,
  Stat,
  StateChange,
  ValueOptions,
  WatchKind,
  WatchOptions,
  Watcher,
  WriteOp,
  WriteResult,
  Zxid,
} from './types.ts'

/** Counts since `connect`; the clients of one session share them. Pings are not counted as requests. */
export interface ClientStats {
  /** Requests whose replies have not arrived. */
  readonly inFlight: number
  /** Requests that wait for a connection, for a read-write server or for their next attempt. */
  readonly waiting: number
  /** Requests sent, retries included. A batch of reads counts as one. */
  readonly sent: number
  /** Replies received. */
  readonly received: number
  readonly sentBytes: number
  readonly receivedBytes: number
  /** Connections established after the first. */
  readonly reconnects: number
  /** Milliseconds from a request to its reply, averaged over about the last 8; undefined before the first reply. */
  readonly latencyMs: number | undefined
}

/**
 * A ZooKeeper client for the tree below one chroot. Every call may reject with a `ZooKeeperError`; see `errors.ts`.
 * Calls are executed in the order in which they are made, and no write is applied after one before it has failed with
 * its connection.
 */
export interface Client extends AsyncDisposable {
  readonly state: ConnectionState
  /** The connected server, as in `tcp://127.0.0.1:2181`, a URL without its secrets; undefined without a connection. */
  readonly server: string | undefined
  readonly session: SessionCredentials & { readonly timeoutMs: number; readonly generation: number }
  /** Time of `platform.clock.monotonic()` before which the session cannot have expired. */
  readonly leaseHorizon: number
  /** Returns the milliseconds for which the session cannot expire: those until `leaseHorizon`, 0 once it has passed. */
  leaseRemaining(): number
  stats(): ClientStats
  /**
   * Time of `platform.clock.monotonic()` at which the newest answered request was sent, pings included. The
   * session was alive on the server then. Correct even right after the process was suspended.
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
  /**
   * Returns this client for writes that do not depend on each other: a write that fails with a connection does not fail
   * those behind it. Each is retried by the rules of its own operation. Closing it closes this client.
   */
  unordered(): Client
  /** Returns a client of decoded values over the same session. */
  withCodec<T>(codec: Codec<T>): TypedClient<T>
  /**
   * Returns a handle of one znode, which need not exist: its calls are those of this client without the path. With a
   * codec its values are decoded. Throws a `UsageError` for an invalid path.
   */
  node<T>(path: string, codec: Codec<T>): NodeHandle<T>
  node(path: string): NodeHandle<OwnBytes, Data>

  create(path: string, options?: CreateOptions): Promise<CreateResult>
  /**
   * Deletes a znode and everything below it, in transactions of many znodes, and resolves to the number deleted. Also
   * deletes what other clients create meanwhile, and ignores what they delete.
   */
  delete(path: string, options: RecursiveDeleteOptions): Promise<number>
  delete(path: string, options?: DeleteOptions): Promise<void>
  exists(path: string, options?: CallOptions): Promise<(Stat & Ordered) | undefined>
  /** Reads the data and the stat. Null data is returned as empty with `isNull` true. */
  getData(
    path: string,
    options?: CallOptions,
  ): Promise<{ data: OwnBytes; isNull: boolean; stat: Stat } & Ordered>
  setData(path: string, data: Data, options?: SetDataOptions): Promise<Stat & Ordered>
  getChildren(path: string, options?: CallOptions): Promise<{ children: string[]; stat: Stat } & Ordered>
  getACL(path: string, options?: CallOptions): Promise<{ acl: ACL[]; stat: Stat }>
  setACL(
    path: string,
    acl: readonly ACL[],
    options?: CallOptions & { version?: number | undefined },
  ): Promise<Stat & Ordered>
  /** Counts the znodes below a path. */
  getAllChildrenNumber(path: string, options?: CallOptions): Promise<number>
  /** Lists the ephemeral znodes of this session whose paths begin with `prefix`. */
  getEphemerals(prefix?: string, options?: CallOptions): Promise<string[]>
  /** Waits until the connected server has caught up with its leader. */
  sync(path: string, options?: CallOptions): Promise<void>
  /** Commits a transaction without effect and returns its zxid: later reads see everything committed before. */
  syncCommitted(options?: CallOptions): Promise<Zxid>
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
  watchOnce<K extends WatchKind>(path: string, kind: K, options?: CallOptions): Promise<OneShotWatches[K]>
  /** Sets a persistent watch, which survives reconnects and new sessions; leaving the loop removes it. */
  watch(path: string, options?: WatchOptions): Promise<Watcher>
  /** Authenticates now and on every later connection. A rejection closes the client. */
  addAuth(scheme: string, auth: Bytes | string, options?: CallOptions): Promise<void>
  whoAmI(options?: CallOptions): Promise<{ scheme: string; id: string }[]>
  /** Reads the configuration of the ensemble; its path is outside of every chroot. */
  getConfig(options?: CallOptions): Promise<{ data: OwnBytes; stat: Stat } & Ordered>
  reconfig(change: ReconfigChange, options?: CallOptions): Promise<{ data: OwnBytes; stat: Stat } & Ordered>
  /**
   * Creates those of these znodes that do not exist, in this order, with missing parents; existing ones keep their data.
   * A path alone is an empty persistent znode; `/` creates the chroot. For what an application needs at its start: many
   * clients may do it at once, also after a write before it has failed.
   */
  createMissing(nodes: readonly (string | MissingNode)[], options?: CallOptions): Promise<void>
  /**
   * Yields the paths of a tree, parents first and children by name; with `stats`, each znode with its stat and children.
   * Prefetches while the consumer works, and skips znodes that vanish meanwhile.
   */
  walk(path: string, options: WalkOptions & { readonly stats: true }): AsyncIterableIterator<Visit>
  walk(
    path: string,
    options?: WalkOptions & { readonly stats?: false | undefined },
  ): AsyncIterableIterator<string>
  /**
   * Takes a new server list. Resolves to true if this client moves to another server, by the rule that balances
   * clients.
   */
  updateServerList(servers: string | readonly string[]): Promise<boolean>
  /**
   * Ends the session; its ephemeral znodes are removed. Without a connection it resolves at once and the session
   * expires on the servers.
   */
  close(options?: { signal?: AbortSignal | undefined }): Promise<void>
  /** Closes the client and leaves the session alive for another client. */
  detach(): Promise<SessionCredentials>
}

/** A decoded value and the stat of its znode. */
export interface TypedValue<T> {
  readonly value: T
  readonly stat: Stat
}

/** A handle of one znode. Reads return a `T`, writes take a `W`. */
export interface NodeHandle<T, W = T> {
  readonly path: string
  create(value: W, options?: NamedNodeOptions): Promise<CreateResult>
  get(options?: CallOptions): Promise<TypedValue<T> & Ordered>
  set(value: W, options?: SetDataOptions): Promise<Stat & Ordered>
  /** Reads, changes and writes the value until no other write interferes. `change` may run more than once. */
  update(change: (value: T) => W, options?: CallOptions): Promise<{ value: W; stat: Stat & Ordered }>
  /** Yields the value, and the newest one after each change, as `watch` of a typed client does. */
  watch(options?: {
    readonly signal?: AbortSignal | undefined
  }): AsyncGenerator<TypedValue<T> | undefined, void>
  exists(options?: CallOptions): Promise<(Stat & Ordered) | undefined>
  /** Deletes the znode, with `recursive` also everything below it. */
  delete(options: RecursiveDeleteOptions): Promise<number>
  delete(options?: DeleteOptions): Promise<void>
}

/** A client of decoded values. */
export interface TypedClient<T> {
  readonly client: Client
  create(path: string, value: T, options?: ValueOptions): Promise<CreateResult>
  get(path: string, options?: CallOptions): Promise<TypedValue<T> & Ordered>
  set(path: string, value: T, options?: SetDataOptions): Promise<Stat & Ordered>
  /** Deletes a znode, as the `delete` of the client does. */
  readonly delete: Client['delete']
  /**
   * Returns the children of a znode by name, sorted, with their values. Children that vanish meanwhile are left out;
   * rejects with a `CodecError` for one that cannot be decoded.
   */
  children(path: string, options?: CallOptions): Promise<Map<string, TypedValue<T>>>
  /**
   * Yields the value, and the newest one after each change, until the consumer leaves the loop; undefined while the
   * znode does not exist. Values in between are skipped. Goes on through lost connections and sessions. Throws the error
   * of the codec, and an `AbortedError` when `signal` aborts.
   */
  watch(
    path: string,
    options?: { readonly signal?: AbortSignal | undefined },
  ): AsyncGenerator<TypedValue<T> | undefined, void>
  /** Reads, changes and writes the value until no other write interferes. `change` may run more than once. */
  update(
    path: string,
    change: (value: T) => T,
    options?: CallOptions,
  ): Promise<{ value: T; stat: Stat & Ordered }>
}
