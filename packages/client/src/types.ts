/// <reference lib="esnext.disposable" preserve="true" />
import type { ZooKeeperError } from './errors.ts'

/** Opaque bytes, never a Node Buffer. */
export type Bytes = Uint8Array

/** Bytes that were read, in an `ArrayBuffer` of their own: `Blob`, `fetch` and `crypto.subtle` take no other. */
export type OwnBytes = Uint8Array<ArrayBuffer>

/** The data of a znode to write: bytes, or text, which is stored as UTF-8. Null is stored as null, which differs from empty. */
export type Data = Bytes | string | null

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
  | TtlMode

/** The modes in which the server removes a znode that was unchanged and without children for `ttlMs`. */
export type TtlMode = 'persistentWithTtl' | 'persistentSequentialWithTtl'

/** The mode of a new znode, and the time to live that the modes with one require. */
export type ModeOptions =
  | {
      /** Default `persistent`. */
      readonly mode?: Exclude<CreateMode, TtlMode> | undefined
      readonly ttlMs?: undefined
    }
  | {
      readonly mode: TtlMode
      /** Milliseconds without changes or children after which the server removes the znode. */
      readonly ttlMs: number
    }

/**
 * A position in the single sequence of replies, events and state changes of one client. A lower number came first.
 * Promises and streams settle in turns of their own, so code that combines them must compare this number and rely on
 * nothing else.
 */
export interface Ordered {
  readonly order: number
}

declare const zxidBrand: unique symbol

/**
 * The id of a transaction. Zxids are ordered: a later transaction has a higher one, so they are compared with `<` and `===`.
 * The type keeps ids of sessions and other numbers apart; a number that was stored as text becomes one by
 * `BigInt(text) as Zxid`.
 */
export type Zxid = bigint & { readonly [zxidBrand]: 'Zxid' }

/** The Stat of a znode. Zxids and the owner are exact 64-bit values. */
export interface Stat {
  /**
   * zxid of the transaction that created the znode. It grows when the znode is deleted and created again, so it can
   * serve as a fencing token.
   */
  readonly czxid: Zxid
  readonly mzxid: Zxid
  readonly pzxid: Zxid
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
  readonly baseMs?: number | undefined
  /** Growth factor of the backoff (default 2). */
  readonly factor?: number | undefined
  /** Maximum backoff in milliseconds (default 10 000). */
  readonly capMs?: number | undefined
  /** Maximum number of attempts, including the first (default: no limit). */
  readonly maxAttempts?: number | undefined
  /** Milliseconds from the call after which no retry begins (default: no limit). */
  readonly maxElapsedMs?: number | undefined
}

/**
 * Decides on the next attempt of a request that failed and may be sent again. Returns the milliseconds to wait, or false to
 * reject with `error`; `attempt` is the number of attempts so far. After a connection loss the next attempt waits for the
 * next connection, however short the time. A function that throws ends the retries.
 */
export type RetryFunction = (error: ZooKeeperError, attempt: number) => number | false

export interface CallOptions {
  /** Aborts the call. A request that was sent may still be applied: see `maybeApplied` of the error. */
  readonly signal?: AbortSignal | undefined
  /** Milliseconds until the call rejects with an `OperationTimeoutError`. */
  readonly timeoutMs?: number | undefined
  /** Overrides the retries of the client; false means one attempt. */
  readonly retry?: RetryPolicy | RetryFunction | false | undefined
  /**
   * On a read-only server, wait for a read-write server instead of rejecting with `NotReadOnlyError`. Only `signal` and
   * `timeoutMs` limit this wait, not `retry`.
   */
  readonly waitForReadWrite?: boolean | undefined
}

export interface SessionCredentials {
  readonly id: bigint
  readonly password: Bytes
}

export interface AuthInfo {
  readonly scheme: string
  /** Credentials, such as `user:password` for the scheme `digest`. */
  readonly auth: Bytes | string
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
  readonly server?: string | undefined
  readonly cause?: Error | undefined
  /** Counts the sessions of this client, from 1. */
  readonly sessionGeneration: number
}

export type NodeEventType = 'nodeCreated' | 'nodeDeleted' | 'nodeDataChanged' | 'nodeChildrenChanged'

/** A change of a watched znode. */
export interface NodeEvent extends Ordered {
  readonly type: NodeEventType
  readonly path: string
  /** The zxid of the change, from servers that send it (3.9 and later). */
  readonly zxid?: Zxid | undefined
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
  readonly data?: OwnBytes | undefined
  /** For kind `children`. */
  readonly children?: readonly string[] | undefined
  /** Undefined when an `exists` watch found no znode. */
  readonly stat?: Stat | undefined
  /**
   * Resolves with the event. Rejects with `SessionExpiredError` or `ClosedError`; an unhandled rejection is not
   * reported.
   */
  readonly fired: Promise<NodeEvent>
  close(): Promise<void>
}

/** The one-shot watch of each kind, with what it has read. */
export interface OneShotWatches {
  readonly data: OneShotWatch & { readonly data: OwnBytes; readonly isNull: boolean; readonly stat: Stat }
  readonly children: OneShotWatch & { readonly children: readonly string[]; readonly stat: Stat }
  readonly exists: OneShotWatch & { readonly stat: Stat | undefined }
}

/** `exists` fires on creation, too; the others need a znode. */
export type WatchKind = keyof OneShotWatches

export type WriteOp =
  | ({
      readonly op: 'create'
      readonly path: string
      readonly data?: Data | undefined
      readonly acl?: readonly ACL[] | undefined
    } & ModeOptions)
  | { readonly op: 'delete' | 'check'; readonly path: string; readonly version?: number | undefined }
  | {
      readonly op: 'setData'
      readonly path: string
      readonly data: Data
      readonly version?: number | undefined
    }

/** Apache's servers return no Stat for a create in a transaction; Zabra servers do. */
export type WriteResult<O> = O extends { op: 'create' }
  ? { path: string; stat?: Stat | undefined }
  : O extends { op: 'setData' }
    ? Stat
    : undefined

export interface ReadOp {
  readonly op: 'getData' | 'getChildren'
  readonly path: string
}

export type ReadResult<O> = O extends { op: 'getData' }
  ? { data: OwnBytes; stat: Stat }
  : { children: string[] }

export type CreateOptions = ModeOptions & NewNodeOptions

/** The options of a create whose data are the value of a codec. */
export type ValueOptions = ModeOptions & Omit<NewNodeOptions, 'data'>

/** The options of a create whose result has the path that was asked for: no mode and no protection adds to its name. */
export type NamedNodeOptions = (
  | { readonly mode?: 'persistent' | 'ephemeral' | 'container' | undefined; readonly ttlMs?: undefined }
  | { readonly mode: 'persistentWithTtl'; readonly ttlMs: number }
) &
  Omit<NewNodeOptions, 'data' | 'protected'>

/** The options of a create that do not depend on its mode. */
export interface NewNodeOptions extends CallOptions {
  /** Default empty. */
  readonly data?: Data | undefined
  /** Default: everybody may do everything. */
  readonly acl?: readonly ACL[] | undefined
  /** Create missing parents: as containers for true, or as persistent znodes. */
  readonly parents?: boolean | 'persistent' | undefined
  /**
   * Begins the name with a protection prefix, by which the znode can be found when the reply is lost. Default for
   * sequential modes, where a retry would create a second znode. A function returns the prefix for a new UUID, which
   * it must contain, with or without its hyphens; the default is `_c_<uuid>-`, as in Curator.
   */
  readonly protected?: boolean | ((uuid: string) => string) | undefined
  /** After a lost reply, an existing znode with equal contents counts as success. */
  readonly idempotent?: boolean | undefined
}

export interface CreateResult extends Ordered {
  readonly path: string
  readonly stat: Stat
}

export interface DeleteOptions extends CallOptions {
  /** Default: any version. */
  readonly version?: number | undefined
  /** Retry in the background, even after the caller has given up, until the delete succeeds or the session ends. */
  readonly guaranteed?: boolean | undefined
  /**
   * With a version: after a lost reply, a missing znode counts as success. Declares that no other client deletes or
   * reuses the name.
   */
  readonly idempotent?: boolean | undefined
  /** A missing znode counts as success. */
  readonly missingOk?: boolean | undefined
  /** See `RecursiveDeleteOptions`. */
  readonly recursive?: false | undefined
}

export interface SetDataOptions extends CallOptions {
  /** Default: any version. */
  readonly version?: number | undefined
  /** The value does not depend on what was read, so writing it twice equals writing it once. */
  readonly idempotent?: boolean | undefined
  /** Create the znode and its parents if it is missing. */
  readonly createIfMissing?: boolean | undefined
}

/** Options of a watch. `signal` and `timeoutMs` are those of the call that sets it: `close()` ends the watch. */
export interface WatchOptions extends CallOptions {
  /** `persistent` (default) watches the node and its children, `persistentRecursive` everything below. */
  readonly mode?: 'persistent' | 'persistentRecursive' | undefined
  /** Maximum number of buffered events (default 1024). An overflow replaces them by one `resync` event. */
  readonly buffer?: number | undefined
}

/** A znode that is created if it does not exist. */
export interface MissingNode {
  readonly path: string
  /** Default empty. */
  readonly data?: Data | undefined
  /** Default `persistent`. Missing parents are created in the same mode. */
  readonly mode?: 'container' | 'persistent' | undefined
  /** ACL of the znode and of its missing parents. */
  readonly acl?: readonly ACL[] | undefined
}

/** A reconfiguration: members that join and leave, or the complete list, in the format of the configuration. */
export interface ReconfigChange {
  readonly joining?: string | undefined
  readonly leaving?: string | undefined
  readonly members?: string | undefined
  /** Apply only to this version of the configuration (default: any). */
  readonly version?: bigint | undefined
}
