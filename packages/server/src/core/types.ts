import type { ACL, OpCode } from '@zabra/protocol'

/**
 * A transaction id as a number: epoch × 2^32 + counter. Exact while the epoch is below 2^21 (two million elections); a server
 * refuses to start beyond that. A bigint would cost an allocation per request.
 */
export type Zxid = number

/** A session id, signed as on the wire. Compared only when sessions start or end, so a bigint is cheap enough. */
export type SessionId = bigint

/** The fields of every transaction (`TxnHeader` without its type). */
export interface TxnHeader {
  readonly sessionId: SessionId
  readonly cxid: number
  readonly zxid: Zxid
  /** The leader's wall clock, milliseconds since 1970. */
  readonly time: number
}

export interface CreateTxn {
  readonly type: typeof OpCode.create | typeof OpCode.create2
  readonly path: string
  readonly data: Uint8Array | null
  readonly acl: readonly ACL[]
  readonly ephemeral: boolean
  /** The parent's stored cversion after this creation, or -1 for "one more than it is" (very old logs). */
  readonly parentCVersion: number
}
export interface CreateContainerTxn {
  readonly type: typeof OpCode.createContainer
  readonly path: string
  readonly data: Uint8Array | null
  readonly acl: readonly ACL[]
  readonly parentCVersion: number
}
export interface CreateTTLTxn {
  readonly type: typeof OpCode.createTTL
  readonly path: string
  readonly data: Uint8Array | null
  readonly acl: readonly ACL[]
  readonly parentCVersion: number
  /** Milliseconds, 1 to 2^40 - 1. */
  readonly ttl: number
}
export interface DeleteTxn {
  readonly type: typeof OpCode.delete | typeof OpCode.deleteContainer
  readonly path: string
}
export interface SetDataTxn {
  readonly type: typeof OpCode.setData | typeof OpCode.reconfig
  readonly path: string
  readonly data: Uint8Array | null
  /** The version after this change. */
  readonly version: number
}
export interface SetACLTxn {
  readonly type: typeof OpCode.setACL
  readonly path: string
  readonly acl: readonly ACL[]
  /** The aversion after this change. */
  readonly version: number
}
export interface CreateSessionTxn {
  readonly type: typeof OpCode.createSession
  /** Milliseconds. */
  readonly timeOut: number
}
export interface CloseSessionTxn {
  readonly type: typeof OpCode.closeSession
  readonly paths2Delete: readonly string[]
}
export interface ErrorTxn {
  readonly type: typeof OpCode.error
  readonly err: number
}
export interface CheckTxn {
  readonly type: typeof OpCode.check
  readonly path: string
  readonly version: number
}
/** When a part is an `ErrorTxn`, the multi has failed and nothing is applied (disk-format 5.6). */
export interface MultiTxn {
  readonly type: typeof OpCode.multi
  readonly txns: MultiParts
}
/** The parts of a multi, in order. */
export type MultiParts = readonly SubTxn[] | Packed
/** Encoded parts that each iteration decodes, with the first part that has failed. */
export interface Packed extends Iterable<SubTxn> {
  readonly length: number
  readonly failure: ErrorTxn | undefined
}
/** Collects the parts of a multi as they are prepared. */
export interface MultiPartsBuilder {
  readonly length: number
  add(part: SubTxn): void
  done(): MultiParts
}
export type SubTxn =
  | CreateTxn
  | CreateContainerTxn
  | CreateTTLTxn
  | DeleteTxn
  | SetDataTxn
  | SetACLTxn
  | CheckTxn
  | ErrorTxn
export type Txn = SubTxn | MultiTxn | CreateSessionTxn | CloseSessionTxn

/** A 64-bit sum in two unsigned halves, to avoid a bigint. */
export interface Digest {
  readonly hi: number
  readonly lo: number
}

/** An entry of the log: header, transaction, and the tree's digest after it (absent for errors, or when digests are disabled). */
export interface LoggedTxn {
  readonly header: TxnHeader
  readonly txn: Txn
  readonly digest: Digest | undefined
}

/** The stored fields of a znode (`StatPersisted`): `cversion` counts creations of children only. */
export interface StoredStat {
  readonly czxid: Zxid
  readonly mzxid: Zxid
  readonly pzxid: Zxid
  readonly ctime: number
  readonly mtime: number
  readonly version: number
  readonly cversion: number
  readonly aversion: number
  /** Raw `ephemeralOwner`: a session id, a container or TTL mark, or 0. */
  readonly owner: bigint
}

/** An authenticated identity of a connection. */
export interface Identity {
  readonly scheme: string
  readonly id: string
}
