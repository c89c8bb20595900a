import { ErrorCode, OpCode, ownerKind, ProtocolError, type Reader } from '@zabra/protocol'
import { treeFieldReader, type TreeFieldReader } from '../operations/fields.ts'
import { operationOf } from '../operations/table.ts'
import type { DecodedWrite } from '../operations/types.ts'
import { endTurn, runToEnd, StepCounter } from '../steps.ts'
import type { SessionId, SubTxn, Txn, Zxid } from '../types.ts'
import { prepareMulti } from './multi.ts'
import type { PendingNode } from './pending-tree.ts'
import { PrepareContext } from './prepare-context.ts'
import { reject, RequestError } from './request-error.ts'
import type { PreparedTxn, PreparerOptions, WriteRequest } from './types.ts'

/**
 * Turns write requests into transactions (`PrepRequestProcessor`). It validates a write against the tree as it will be after all
 * earlier prepared transactions. The caller logs and applies the transactions in the order in which they were prepared, and calls
 * `forgetApplied` after applying one.
 */
export class Preparer {
  readonly #context: PrepareContext
  readonly #fields: TreeFieldReader

  constructor(options: PreparerOptions) {
    this.#context = new PrepareContext(options)
    // The bytes of a request are reused for the next one.
    this.#fields = treeFieldReader(options.tree.store)
  }

  /** The number of nodes with changes that are not applied yet. */
  get pendingNodes(): number {
    return this.#context.pending.size
  }

  /** Drops all changes that are not applied, after their transactions were lost. */
  reset(): void {
    this.#context.pending.clear()
  }

  /** Forgets the changes up to a zxid, which are applied to the tree, but at most `limit`. Returns false when some are left. */
  forgetApplied(zxid: Zxid, limit = Infinity): boolean {
    return this.#context.pending.forgetApplied(zxid, limit)
  }

  /**
   * Prepares a request of a client. Returns an error number for a request that cannot be decoded: it takes no zxid.
   * Every other failure is an `ErrorTxn`, or a multi that holds one, and takes its zxid.
   */
  prepare(request: WriteRequest, body: Reader, zxid: Zxid, time: number): PreparedTxn | number {
    const { type } = request
    if (type === OpCode.multi) return runToEnd(this.#prepareMulti(request, body, zxid, time))
    const operation = operationOf(type)
    if (operation.kind !== 'write') return ErrorCode.MARSHALLINGERROR
    let write: DecodedWrite
    try {
      write = operation.decode(type, body, this.#fields)
    } catch (error) {
      if (error instanceof ProtocolError) return ErrorCode.MARSHALLINGERROR
      throw error
    }
    const context = this.#context
    const { pending } = context
    pending.lastChanged = undefined
    try {
      return this.#prepared(operation.prepare(context, request, write, zxid, time), pending.lastChanged)
    } catch (error) {
      return this.#failed(RequestError.codeOf(error))
    }
  }

  /**
   * As `prepare`, for a multi or a request with a long path, in steps. Earlier transactions may be applied between two steps, but nothing
   * else may be prepared.
   */
  *prepareInSteps(
    request: WriteRequest,
    body: Reader,
    zxid: Zxid,
    time: number,
  ): Generator<void, PreparedTxn | number> {
    if (request.type === OpCode.multi) return yield* this.#prepareMulti(request, body, zxid, time)
    // The turn that has received the request has copied it twice, and the next one may be of the same iteration of the event loop.
    yield* endTurn()
    yield* endTurn()
    let path: string | null
    try {
      path = this.#fields.readAhead(body)
    } catch (error) {
      if (error instanceof ProtocolError) return ErrorCode.MARSHALLINGERROR
      throw error
    }
    yield* endTurn()
    // The last hash of a long path is kept.
    if (path !== null) this.#context.tree.store.hash(path)
    yield* endTurn()
    return this.prepare(request, body, zxid, time)
  }

  *#prepareMulti(
    request: WriteRequest,
    body: Reader,
    zxid: Zxid,
    time: number,
  ): Generator<void, PreparedTxn | number> {
    const context = this.#context
    const prepare = (part: DecodedWrite): SubTxn =>
      operationOf(part.type).prepare(context, request, part, zxid, time) as SubTxn
    const txn = yield* prepareMulti(context.pending, body, this.#fields, prepare, context.options.createParts)
    if (typeof txn === 'number') return txn
    return txn.type === OpCode.error ? this.#failed(txn.err) : this.#prepared(txn)
  }

  /** Returns the first transaction of a session. */
  createSession(timeOut: number): PreparedTxn {
    return this.#prepared({ type: OpCode.createSession, timeOut })
  }

  /**
   * Prepares the last transaction of a session in steps like those of `prepareMulti`. It removes the session's ephemeral nodes,
   * pending ones included.
   */
  *closeSession(session: SessionId, zxid: Zxid): Generator<void, PreparedTxn> {
    const { pending } = this.#context
    const paths2Delete: string[] = []
    const tombstone = pending.tombstone(session, zxid)
    const step = new StepCounter()
    for (const path of pending.ephemeralsOf(session)) {
      if (step.begins(path)) yield
      const node = pending.get(path)
      // A pending change has removed the node, or it was created again by another session.
      if (node?.owner !== session) continue
      this.#context.removeChild(pending.parent(path)!, zxid)
      pending.removeWithSession(node, tombstone)
      paths2Delete.push(path)
    }
    return this.#prepared({ type: OpCode.closeSession, paths2Delete })
  }

  /** Whether a change of this path is pending: then the tree does not show the node's future. */
  hasPendingChange(path: string): boolean {
    return this.#context.pending.hasPendingChange(path)
  }

  /** Prepares the removal of a container or an expired TTL node. It fails for a node with children or of another kind. */
  deleteContainer(path: string, zxid: Zxid): PreparedTxn {
    const context = this.#context
    try {
      const node = context.pending.get(path)
      const parent = context.pending.parent(path)
      if (node === undefined || parent === undefined) return reject(ErrorCode.NONODE)
      if (node.childCount > 0) return reject(ErrorCode.NOTEMPTY)
      const kind = ownerKind(node.owner, context.tree.options)
      if (kind !== 'container' && kind !== 'ttl') return reject(ErrorCode.BADVERSION)
      context.removeNode(node, parent, zxid)
      return this.#prepared({ type: OpCode.deleteContainer, path })
    } catch (error) {
      return this.#failed(RequestError.codeOf(error))
    }
  }

  #prepared(txn: Txn, node?: PendingNode): PreparedTxn {
    const { tree, pending } = this.#context
    const digest = tree.options.digest ? pending.digest.value() : undefined
    return { txn, digest, node, crc: node === undefined ? 0 : node.crcPrefix }
  }

  #failed(err: number): PreparedTxn {
    return { txn: { type: OpCode.error, err }, digest: undefined, node: undefined, crc: 0 }
  }
}
