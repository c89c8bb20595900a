import type { CreateMode, DeleteTreeOptions, Stat, Visit, WalkOptions } from '@zabra/client'
import type { ACL } from '@zabra/protocol'

export type { CreateMode, Stat }

export interface CreateOptions {
  readonly mode?: CreateMode
  readonly acl?: readonly ACL[]
  /** Milliseconds; needed by the modes with a time to live. */
  readonly ttl?: number
  /** Makes the parents that are missing, with the same access list. */
  readonly parents?: boolean
}

/** A part of a transaction. No version means any. */
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

/** What happened to a node. */
export type EventName = 'nodeCreated' | 'nodeDeleted' | 'nodeDataChanged' | 'nodeChildrenChanged'
export interface NodeEvent {
  readonly type: EventName
  readonly path: string
  /** The same for all watches that hear of one change, and higher for each later one. */
  readonly order: number
}
/** Changes may have been missed. */
export interface ResyncEvent {
  readonly type: 'resync'
  readonly reason: string
  readonly order: number
}
export type WatchedEvent = NodeEvent | ResyncEvent

/** A stream of changes that ends when it is left or the session ends. */
export interface Watcher extends AsyncIterable<WatchedEvent> {
  readonly path: string
  close(): Promise<void>
}

/** A watch that tells of one change. `fired` never rejects: it settles with undefined when the watch is gone. */
export interface OneShotWatch {
  readonly fired: Promise<NodeEvent | undefined>
  close(): Promise<void>
}

/** The session as the commands use it. Every call rejects with an error that `exit-codes.ts` can judge. */
export interface ZooKeeper {
  readonly sessionId: bigint
  /** The server that answers, as `host:port`. */
  readonly server: string
  /** Settles with the reason when the session is over; never rejects. */
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
  /** Every node from a path down, parents first, children by name. Nodes that go away meanwhile are left out. */
  visit(path: string, options: WalkOptions): AsyncIterable<Visit>
  /** Deletes a node with all that is below it; gives how many that were. */
  deleteTree(path: string, options: DeleteTreeOptions): Promise<number>
  /** All or nothing. */
  multi(ops: readonly WriteOp[]): Promise<void>
  /** Data, existence or children of a node, watched from before the answer. */
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
  /** Ends the session: its ephemeral nodes go at once. */
  close(): Promise<void>
}
