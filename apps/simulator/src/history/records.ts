import { ErrorCode, type Stat } from '@zabra/protocol'
import type { AclKind } from './acl.ts'

/** A znode's Stat with numbers for zxids and times. */
export interface PlainStat {
  readonly czxid: number
  readonly mzxid: number
  readonly ctime: number
  readonly mtime: number
  readonly pzxid: number
  readonly version: number
  readonly cversion: number
  readonly aversion: number
  readonly owner: bigint
  readonly dataLength: number
  readonly children: number
}

export type NodeMode = 'persistent' | 'ephemeral' | 'sequential' | 'ephemeralSequential' | 'container' | 'ttl'

/** An operation of a multi. */
export type MultiPart =
  | {
      readonly op: 'create'
      readonly path: string
      readonly data: string
      readonly mode: NodeMode
      /** Open to everyone by default. */
      readonly acl?: AclKind
    }
  | { readonly op: 'delete'; readonly path: string; readonly version: number }
  | { readonly op: 'set'; readonly path: string; readonly data: string; readonly version: number }
  | { readonly op: 'check'; readonly path: string; readonly version: number }

/** One read of a multiRead; all reads of it see one state. */
export interface ReadPart {
  readonly op: 'get' | 'children'
  readonly path: string
}

/** Which watches of a path are queried or removed. */
export type WatchKind = 'any' | 'data' | 'children' | 'persistent' | 'recursive'

/** A request of a client. */
export type Request =
  | MultiPart
  | { readonly op: 'multi'; readonly parts: readonly MultiPart[] }
  | { readonly op: 'get' | 'exists' | 'children'; readonly path: string; readonly watch: boolean }
  | { readonly op: 'setAcl'; readonly path: string; readonly acl: AclKind; readonly version: number }
  /**
   * The access list of a node; the paths of the session's ephemeral nodes below a path; the number of nodes below a
   * path.
   */
  | { readonly op: 'getAcl' | 'ephemerals' | 'count'; readonly path: string }
  | { readonly op: 'addWatch'; readonly path: string; readonly recursive: boolean }
  | { readonly op: 'removeWatches' | 'checkWatches'; readonly path: string; readonly watches: WatchKind }
  | { readonly op: 'multiRead'; readonly parts: readonly ReadPart[] }
  /** The identities of the client, as the server knows them. */
  | { readonly op: 'whoAmI' }
  | { readonly op: 'sync'; readonly path: string }
  | { readonly op: 'close' }
  | {
      readonly op: 'reconfig'
      readonly joining: string
      readonly leaving: string
      /** The whole membership, instead of incremental changes. */
      readonly members?: string
      readonly from: number
    }

/** The result of an operation; fields are present where the reply has them. */
export interface Result {
  readonly err: number
  readonly path?: string
  readonly stat?: PlainStat
  readonly data?: string
  /** Names of children, or paths of ephemeral nodes. */
  readonly children?: readonly string[]
  readonly acl?: readonly string[]
  /** Identities as `scheme:name`. */
  readonly identities?: readonly string[]
  readonly count?: number
}

/** `unknown`: the request was sent and the connection broke before the reply. */
export type Outcome = 'pending' | 'answered' | 'unknown'

/** A request with its result. Times are world times in milliseconds. */
export interface Operation {
  readonly kind: 'operation'
  readonly id: number
  readonly client: string
  /** The session id in hexadecimal. */
  readonly session: string
  /** Number of the connection, unique over all clients. */
  readonly connection: number
  /** The server that received it. */
  readonly server: string
  readonly xid: number
  /** The authenticated user; empty without authentication. */
  readonly user: string
  readonly request: Request
  readonly invoked: number
  returned: number
  outcome: Outcome
  /** The zxid in the header of the reply. */
  zxid: number
  result: Result
  /** The results of a multi or multiRead. */
  results: readonly Result[]
  /** Whether the server had announced itself as read-only. */
  readonly isReadOnly?: boolean
  /** Whether it closed a local session, which no transaction records. */
  isLocal?: boolean
}

/** A session was attached to a server, for the first time or again. */
export interface SessionAttached {
  readonly kind: 'attached'
  readonly client: string
  readonly session: string
  readonly connection: number
  readonly server: string
  readonly at: number
  readonly timeoutMs: number
  readonly isNew: boolean
  /** The last zxid that the client had seen. */
  readonly seen: number
  /** Whether the server announced itself as read-only. */
  readonly isReadOnly?: boolean
}

/** Kinds of one-shot watches, as clients register them. */
export type OneShotWatch = 'data' | 'exist' | 'child'

/** A client reset its watches, with the zxid of the reply. */
export interface WatchesReset {
  readonly kind: 'rearmed'
  readonly client: string
  readonly session: string
  readonly connection: number
  readonly at: number
  /** The relative zxid of the request: the last one that the client had seen. */
  readonly since: number
  /** The paths of the one-shot watches in the request. */
  readonly requested: Readonly<Record<OneShotWatch, readonly string[]>>
  readonly zxid: number
}

/** A watch fired. */
export interface WatchNotification {
  readonly kind: 'notice'
  readonly client: string
  readonly session: string
  readonly connection: number
  readonly at: number
  readonly type: number
  readonly path: string
}

/** A server refused to resume a session because it has ended. */
export interface SessionExpired {
  readonly kind: 'ended'
  readonly client: string
  readonly session: string
  readonly server: string
  readonly at: number
}

/** What one session observed, in order of arrival. */
export type ClientEvent = Operation | SessionAttached | WatchesReset | WatchNotification | SessionExpired

/** A ping that a server has answered. */
export interface AnsweredPing {
  readonly session: string
  /** When the client sent it. */
  readonly sent: number
}

/** Everything that clients sent and received. */
export class History {
  /** All requests, in the order in which they were sent. */
  readonly operations: Operation[] = []
  /** Everything received by clients, over all sessions. Operations are added when they are answered. */
  readonly events: ClientEvent[] = []
  /** In the order of their answers. */
  readonly pings: AnsweredPing[] = []
  /** Protocol violations that clients detect at once: replies out of order, unreadable frames. */
  readonly violations: string[] = []
  #bySession: ReadonlyMap<string, readonly ClientEvent[]> | undefined

  begin(
    operation: Omit<
      Operation,
      'kind' | 'id' | 'user' | 'isReadOnly' | 'returned' | 'outcome' | 'zxid' | 'result' | 'results'
    > &
      Partial<Pick<Operation, 'user' | 'isReadOnly'>>,
  ): Operation {
    const { client, session, connection, server, xid, user = '', request, invoked } = operation
    // Fields one by one: spread objects cost several times as much, and runs begin many operations.
    const begun: Operation = {
      kind: 'operation',
      id: this.operations.length,
      client,
      session,
      connection,
      server,
      xid,
      user,
      request,
      invoked,
      isReadOnly: operation.isReadOnly === true,
      returned: Infinity,
      outcome: 'pending',
      zxid: -1,
      result: { err: 0 },
      results: [],
    }
    this.operations.push(begun)
    return begun
  }

  complete(
    operation: Operation,
    at: number,
    zxid: number,
    result: Result,
    results: readonly Result[] = [],
  ): void {
    operation.outcome = 'answered'
    operation.returned = at
    operation.zxid = zxid
    operation.result = result
    operation.results = results
    this.events.push(operation)
  }

  /** Returns the events of each session. The groups are formed once: call it when the history is complete. */
  eventsBySession(): ReadonlyMap<string, readonly ClientEvent[]> {
    return (this.#bySession ??= this.#groupEvents())
  }

  #groupEvents(): ReadonlyMap<string, readonly ClientEvent[]> {
    const sessions = new Map<string, ClientEvent[]>()
    for (const arrival of this.events) {
      const list = sessions.get(arrival.session)
      if (list === undefined) sessions.set(arrival.session, [arrival])
      else list.push(arrival)
    }
    return sessions
  }
}

/** Returns whether a request changes state, so that it takes a zxid. */
export function isWrite({ op }: Request): boolean {
  return !READS.has(op)
}

const READS: ReadonlySet<Request['op']> = new Set([
  'get',
  'exists',
  'children',
  'getAcl',
  'ephemerals',
  'count',
  'addWatch',
  'removeWatches',
  'checkWatches',
  'multiRead',
  'whoAmI',
  'sync',
])

export function plainStat(
  stat: Omit<Stat, 'ctime' | 'mtime'> & { readonly ctime: bigint | number; readonly mtime: bigint | number },
): PlainStat {
  return {
    czxid: Number(stat.czxid),
    mzxid: Number(stat.mzxid),
    ctime: Number(stat.ctime),
    mtime: Number(stat.mtime),
    pzxid: Number(stat.pzxid),
    version: stat.version,
    cversion: stat.cversion,
    aversion: stat.aversion,
    owner: stat.ephemeralOwner,
    dataLength: stat.dataLength,
    children: stat.numChildren,
  }
}

export const hexOf = (session: bigint): string => BigInt.asUintN(64, session).toString(16)

export const formatZxid = (zxid: number): string => `0x${zxid.toString(16)}`

/**
 * Errors of writes that take no zxid: the server refused them before it prepared a transaction, or could not store one.
 */
const WITHOUT_ZXID: ReadonlySet<number> = new Set([
  ErrorCode.SYSTEMERROR,
  ErrorCode.CONNECTIONLOSS,
  ErrorCode.MARSHALLINGERROR,
  ErrorCode.UNIMPLEMENTED,
  ErrorCode.SESSIONEXPIRED,
  ErrorCode.SESSIONMOVED,
  ErrorCode.THROTTLEDOP,
  ErrorCode.NOTREADONLY,
])

/** Returns whether a write has a place in the history: it succeeded, or failed against the state at its zxid. */
export const hasZxid = ({ outcome, zxid, result, request, isLocal }: Operation): boolean =>
  outcome === 'answered' && zxid > 0 && isLocal !== true && isWrite(request) && !WITHOUT_ZXID.has(result.err)
