import { ErrorCode, type Stat } from '@zabra/protocol'
import type { AclKind } from './acl.ts'

/** A znode's Stat with plain numbers for zxids. */
export interface PlainStat {
  readonly czxid: number
  readonly mzxid: number
  readonly pzxid: number
  readonly version: number
  readonly cversion: number
  readonly aversion: number
  readonly owner: bigint
  readonly dataLength: number
  readonly children: number
}

export type NodeMode = 'persistent' | 'ephemeral' | 'sequential' | 'ephemeralSequential' | 'container' | 'ttl'

/** A part of a transaction. */
export type MultiPart =
  | {
      readonly op: 'create'
      readonly path: string
      readonly data: string
      readonly mode: NodeMode
      /** Open for all unless it says so. */
      readonly acl?: AclKind
    }
  | { readonly op: 'delete'; readonly path: string; readonly version: number }
  | { readonly op: 'set'; readonly path: string; readonly data: string; readonly version: number }
  | { readonly op: 'check'; readonly path: string; readonly version: number }

/** A read of several that one state answers. */
export interface ReadPart {
  readonly op: 'get' | 'children'
  readonly path: string
}

/** Which watches at a path are asked for, or removed. */
export type WatchKind = 'any' | 'data' | 'children' | 'persistent' | 'recursive'

/** What a client asks for. */
export type Request =
  | MultiPart
  | { readonly op: 'multi'; readonly parts: readonly MultiPart[] }
  | { readonly op: 'get' | 'exists' | 'children'; readonly path: string; readonly watch: boolean }
  | { readonly op: 'setAcl'; readonly path: string; readonly acl: AclKind; readonly version: number }
  /** The access list of a node, the paths of one's own ephemeral nodes below it, how many nodes are below it. */
  | { readonly op: 'getAcl' | 'ephemerals' | 'count'; readonly path: string }
  | { readonly op: 'addWatch'; readonly path: string; readonly recursive: boolean }
  | { readonly op: 'removeWatches' | 'checkWatches'; readonly path: string; readonly watches: WatchKind }
  | { readonly op: 'multiRead'; readonly parts: readonly ReadPart[] }
  /** Whom the server takes the client for. */
  | { readonly op: 'whoAmI' }
  | { readonly op: 'sync'; readonly path: string }
  | { readonly op: 'close' }
  | {
      readonly op: 'reconfig'
      readonly joining: string
      readonly leaving: string
      /** The whole membership, in place of single changes. */
      readonly members?: string
      readonly from: number
    }

/** What a server answered to a part or a request; fields are present where its reply has them. */
export interface Result {
  readonly err: number
  readonly path?: string
  readonly stat?: PlainStat
  readonly data?: string
  /** Names of children, or paths of ephemeral nodes. */
  readonly children?: readonly string[]
  readonly acl?: readonly string[]
  /** Schemes and names, with a colon between them. */
  readonly identities?: readonly string[]
  readonly count?: number
}

/** `unknown`: it was sent and the connection broke before the answer. */
export type Outcome = 'pending' | 'answered' | 'unknown'

/** A request from its sending to its end. Times are the world's, in milliseconds. */
export interface Operation {
  readonly kind: 'operation'
  readonly id: number
  readonly client: string
  /** The session in hexadecimal. */
  readonly session: string
  /** Counts the connections of all clients. */
  readonly connection: number
  /** The server that it was sent to. */
  readonly server: string
  readonly xid: number
  /** Whom the client has proved to be; empty without a proof. */
  readonly user: string
  readonly request: Request
  readonly invoked: number
  returned: number
  outcome: Outcome
  /** The zxid in the reply's header. */
  zxid: number
  result: Result
  /** The results of a multi or multiRead. */
  results: readonly Result[]
  /** Whether it was sent to a server that said that it is read-only. */
  readonly isReadOnly?: boolean
  /** The end of a session that one server alone knew, so that no transaction tells of it. */
  isLocal?: boolean
}

/** A session is attached to a server, for the first time or again. */
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
  /** Whether the server said that it is read-only. */
  readonly isReadOnly?: boolean
}

/** Watches that tell once, by what they are asked for as. */
export type OneShotWatch = 'data' | 'exist' | 'child'

/** The watches that a client armed again, as answered at a zxid. */
export interface WatchesReset {
  readonly kind: 'rearmed'
  readonly client: string
  readonly session: string
  readonly connection: number
  readonly at: number
  /** The zxid up to which the client says that it knows everything. */
  readonly since: number
  /** The paths that it asked for, of watches that tell once. */
  readonly asked: Readonly<Record<OneShotWatch, readonly string[]>>
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

/** A server refused to go on with a session: it is over. */
export interface SessionExpired {
  readonly kind: 'ended'
  readonly client: string
  readonly session: string
  readonly server: string
  readonly at: number
}

/** What one session saw, in the order in which it arrived. */
export type ClientEvent = Operation | SessionAttached | WatchesReset | WatchNotification | SessionExpired

/** All that clients did and saw. */
export class History {
  /** Every request, by its sending. */
  readonly operations: Operation[] = []
  /** What arrived, over all sessions. Operations are in here once they are answered. */
  readonly events: ClientEvent[] = []
  /** What clients noticed at once: replies out of turn, frames that cannot be read. */
  readonly violations: string[] = []

  begin(
    operation: Omit<
      Operation,
      'kind' | 'id' | 'user' | 'isReadOnly' | 'returned' | 'outcome' | 'zxid' | 'result' | 'results'
    > &
      Partial<Pick<Operation, 'user' | 'isReadOnly'>>,
  ): Operation {
    const begun: Operation = {
      kind: 'operation',
      id: this.operations.length,
      user: '',
      ...operation,
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
    Object.assign(operation, { outcome: 'answered', returned: at, zxid, result, results })
    this.events.push(operation)
  }

  /** What arrived, by session. */
  eventsBySession(): Map<string, ClientEvent[]> {
    const sessions = new Map<string, ClientEvent[]>()
    for (const arrival of this.events) {
      const list = sessions.get(arrival.session)
      if (list === undefined) sessions.set(arrival.session, [arrival])
      else list.push(arrival)
    }
    return sessions
  }
}

/** Whether a request changes something, so that it takes a zxid. */
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

export function plainStat(stat: Stat): PlainStat {
  return {
    czxid: Number(stat.czxid),
    mzxid: Number(stat.mzxid),
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

/** Answers for which a server takes no zxid: it refused before it prepared anything, or could not store it. */
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

/** Whether a write was answered with a place in the history: done, or refused by the state that it met there. */
export const hasZxid = ({ outcome, zxid, result, request, isLocal }: Operation): boolean =>
  outcome === 'answered' && zxid > 0 && isLocal !== true && isWrite(request) && !WITHOUT_ZXID.has(result.err)
