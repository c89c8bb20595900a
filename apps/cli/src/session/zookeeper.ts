import type { CreateMode, DeleteTreeOptions, Stat, Visit, WalkOptions } from '@zabra/client'
import type { ACL } from '@zabra/protocol'

export type { CreateMode, Stat }

export interface CreateOptions {
  readonly mode?: CreateMode
  readonly acl?: readonly ACL[]
  /** Milliseconds; needed by the modes with a time to live. */
  readonly ttl?: number
  /** Creates missing parents, with the same access list. */
  readonly parents?: boolean
}

/** An operation of a transaction. Without a version any version matches. */
export type WriteOp =
  | ({ readonly op: 'create'; readonly path: string; readonly data: Uint8Array | null } & Omit<
      CreateOptions,
      'parents'
    >)
  | { readonly op: 'delete'; readonly path: string; readonly version?: number }
  | {
      readonly op: 'setData'
      readonly path: string
      readonly data: Uint8Array | null
      readonly version?: number
    }
  | { readonly op: 'check'; readonly path: string; readonly version?: number }

/** The kind of a change. */
export type EventName = 'nodeCreated' | 'nodeDeleted' | 'nodeDataChanged' | 'nodeChildrenChanged'
export interface NodeEvent {
  readonly type: EventName
  readonly path: string
  /** Equal for all watches that one change fires, and higher for later changes. */
  readonly order: number
}
/** Events may have been lost. */
export interface ResyncEvent {
  readonly type: 'resync'
  readonly reason: string
  readonly order: number
}
export type WatchedEvent = NodeEvent | ResyncEvent

/** A stream of events that ends when it is closed or the session ends. */
export interface Watcher extends AsyncIterable<WatchedEvent> {
  readonly path: string
  close(): Promise<void>
}

/** A watch for one event. `fired` never rejects: it resolves to undefined when the watch is closed or its session ends. */
export interface OneShotWatch {
  readonly fired: Promise<NodeEvent | undefined>
  close(): Promise<void>
}

/** The session as the commands use it. `toExit` maps the errors of every call to an exit code. */
export interface ZooKeeper {
  readonly sessionId: bigint
  /** The connected server, as `host:port`. */
  readonly server: string
  /** Resolves when the session ends, to the error that ended it or undefined; never rejects. */
  readonly closed: Promise<Error | undefined>
  create(path: string, data: Uint8Array | null, options?: CreateOptions): Promise<string>
  delete(path: string, version?: number): Promise<void>
  exists(path: string): Promise<Stat | undefined>
  getData(path: string): Promise<{ data: Uint8Array | null; stat: Stat }>
  setData(path: string, data: Uint8Array | null, version?: number): Promise<Stat>
  getChildren(path: string): Promise<{ children: string[]; stat: Stat }>
  getACL(path: string): Promise<{ acl: ACL[]; stat: Stat }>
  setACL(path: string, acl: readonly ACL[], version?: number): Promise<Stat>
  getAllChildrenNumber(path: string): Promise<number>
  getEphemerals(prefix: string): Promise<string[]>
  sync(path: string): Promise<void>
  /** Yields a node and its descendants, parents first, children by name. Skips nodes that are deleted meanwhile. */
  visit(path: string, options: WalkOptions): AsyncIterable<Visit>
  /** Deletes a subtree and resolves to the number of deleted nodes. */
  deleteTree(path: string, options: DeleteTreeOptions): Promise<number>
  /** Applies all operations or none. */
  multi(ops: readonly WriteOp[]): Promise<void>
  /** Watches data, existence or children of a node. The watch is set when the promise resolves. */
  watchOnce(path: string, kind: 'data' | 'exists' | 'children'): Promise<OneShotWatch>
  watch(path: string, mode: 'persistent' | 'persistentRecursive'): Promise<Watcher>
  addAuth(scheme: string, auth: Uint8Array): Promise<void>
  whoAmI(): Promise<{ scheme: string; user: string }[]>
  getConfig(): Promise<{ data: Uint8Array | null; stat: Stat }>
  reconfig(change: {
    joining?: string
    leaving?: string
    members?: string
    version?: bigint
  }): Promise<{ data: Uint8Array | null; stat: Stat }>
  /** Closes the session; the server deletes its ephemeral nodes at once. */
  close(): Promise<void>
}
