import { ErrorCode, type Reader, type Writer } from '@zabra/protocol'
import type { PrepareContext } from '../prepare/prepare-context.ts'
import type { WriteRequest } from '../prepare/types.ts'
import type { ChunkedReply } from '../reads/chunked-reply.ts'
import type { ReadCaller, ReadContext } from '../reads/types.ts'
import type { Tree } from '../tree/index.ts'
import type { Txn, Zxid } from '../types.ts'
import type { NotifiedWatcher } from '../watches/index.ts'
import type { FieldReader, PathLookup } from './fields.ts'

/**
 * What happens to a request: a `write` becomes a transaction, a `read` is answered from the tree of the server that received
 * it, `auth` changes the identities of its connection. Clients do not send `internal` operations: servers do, or logs hold them.
 */
export type OperationKind = 'write' | 'read' | 'auth' | 'internal'

/** The body of a write, decoded. `type` is the operation that prepares it. */
export interface DecodedWrite {
  readonly type: number
  readonly path: string | null
}

/** How an operation behaves as a part of a multi. */
export interface MultiRules<D extends DecodedWrite = DecodedWrite> {
  /** Whether Apache ZooKeeper accepts the part before it looks at the tree. */
  isAllowed(write: D): boolean
  /** Returns the write that Apache ZooKeeper executes for the part. */
  normalize(write: D): DecodedWrite
  /** The op code of the part's result. */
  readonly resultType: number
}

/** A row of the table of operations. */
export interface Operation {
  readonly code: number
  /** The short name that the four-letter command `cons` shows. */
  readonly name: string
  readonly kind: OperationKind
  /** Decodes the body of a write. Throws a `ProtocolError` for bytes that are no such body. */
  decode(type: number, body: Reader, fields: FieldReader): DecodedWrite
  /** Whether the write creates a node that only a global session can own. */
  needsGlobalSession(write: DecodedWrite): boolean
  /** Validates a write and returns its transaction. Throws a `RequestError` for a write that fails. */
  prepare(context: PrepareContext, request: WriteRequest, write: DecodedWrite, zxid: Zxid, time: number): Txn
  /** Undefined for an operation that a multi cannot hold. */
  readonly multi: MultiRules | undefined
  /** Writes the record of a transaction, without its header. */
  encodeTxn(writer: Writer, txn: Txn): void
  /** Reads such a record. Throws a `ProtocolError` for a type that is not logged. */
  decodeTxn(type: number, reader: Reader, paths: PathLookup | undefined): Txn
  /**
   * Writes the body of the reply to an applied write, from the tree as the transaction has left it. `requested` is the op code
   * of the request.
   */
  writeReply(tree: Tree, txn: Txn, requested: number, writer: Writer): void
  /**
   * Executes a read: writes the body of its reply and returns the error number, or returns a reply to write in chunks, with
   * nothing written. Throws a `ProtocolError` for a body that cannot be decoded.
   */
  read(
    context: ReadContext<NotifiedWatcher>,
    body: Reader,
    writer: Writer,
    caller: ReadCaller<NotifiedWatcher>,
  ): number | ChunkedReply
}

/** A row with the columns that its operation needs. */
export type OperationColumns = Pick<Operation, 'code' | 'kind'> & Partial<Operation>

/** Adds the missing columns to a row, so that all rows have one shape. */
export const defineOperation = (columns: OperationColumns): Operation => ({
  code: columns.code,
  name: columns.name ?? 'NA',
  kind: columns.kind,
  decode: columns.decode ?? failDecode,
  needsGlobalSession: columns.needsGlobalSession ?? returnFalse,
  prepare: columns.prepare ?? failPrepare,
  multi: columns.multi,
  encodeTxn: columns.encodeTxn ?? failEncodeTxn,
  decodeTxn: columns.decodeTxn ?? failDecodeTxn,
  writeReply: columns.writeReply ?? writeNothing,
  read: columns.read ?? returnUnimplemented,
})

const returnFalse = (): boolean => false
const returnUnimplemented = (): number => ErrorCode.UNIMPLEMENTED
const writeNothing = (): void => {}
const failDecode = (type: number, body: Reader): never =>
  body.fail(`Expected the op code of a write, got ${type}`, 'an op code')
const failDecodeTxn = (type: number, reader: Reader): never =>
  reader.fail(`Expected the type of a transaction, got ${type}`, 'type')
const failPrepare = (_context: PrepareContext, { type }: WriteRequest): never => {
  throw new TypeError(`Expected the op code of a write, got ${type}`)
}
const failEncodeTxn = (_writer: Writer, { type }: Txn): never => {
  throw new TypeError(`Expected a transaction with a record, got type ${type}`)
}
