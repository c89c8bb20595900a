import { ErrorCode, OpCode, ProtocolError, readMultiHeader, type Reader } from '@zabra/protocol'
import { SKIPPING, type FieldReader } from '../operations/fields.ts'
import { operationOf } from '../operations/table.ts'
import type { DecodedWrite } from '../operations/types.ts'
import { STEP } from '../steps.ts'
import type { MultiPartsBuilder, SubTxn, Txn } from '../types.ts'
import type { PendingTree } from './pending-tree.ts'
import { aclCharsOf, MAX_ACL_CHARS } from './prepare-context.ts'
import { reject, RequestError } from './request-error.ts'

/** Bytes of parts that are prepared in one step: parts with long access control lists take longer than others. */
const STEP_BYTES = 1 << 15

/**
 * Prepares a multi in steps, between which nothing else may be prepared. Returns its transaction, or an error number for a multi
 * that takes no zxid. `prepare` prepares one part and throws a `RequestError`.
 *
 * The body is decoded twice, so that no decoded part outlives its step: with tens of thousands that do, the garbage collector
 * pauses longest. For the same reason the parts of a large multi go to the builder that `createParts` returns.
 */
export function* prepareMulti(
  pending: PendingTree,
  body: Reader,
  fields: FieldReader,
  prepare: (part: DecodedWrite) => SubTxn,
  createParts: (bytes: number) => MultiPartsBuilder = () => new PartList(),
): Generator<void, Txn | number> {
  const start = body.offset
  let [count, isMissingAcl, isAllowed, stepEnd] = [0, false, true, start + STEP_BYTES]
  try {
    for (const part of multiParts(body, SKIPPING)) {
      if ((count > 0 && count % STEP === 0) || body.offset > stepEnd) {
        yield
        stepEnd = body.offset + STEP_BYTES
      }
      count++
      isMissingAcl ||= lacksAcl(part)
      isAllowed &&= part.path !== null && operationOf(part.type).multi!.isAllowed(part)
    }
  } catch (error) {
    if (error instanceof ProtocolError) return { type: OpCode.error, err: ErrorCode.MARSHALLINGERROR }
    throw error
  }
  if (isMissingAcl) return ErrorCode.MARSHALLINGERROR
  if (!isAllowed) return { type: OpCode.error, err: ErrorCode.MARSHALLINGERROR }
  body.offset = start
  stepEnd = start + STEP_BYTES
  pending.beginMulti()
  let aclChars = 0
  // An entry for all identities of a client is short in the request.
  let stepAclEnd = STEP_BYTES
  const txns = count > STEP ? createParts(body.remaining) : new PartList()
  for (const part of multiParts(body, fields)) {
    if ((txns.length > 0 && txns.length % STEP === 0) || body.offset > stepEnd || aclChars > stepAclEnd) {
      yield
      stepEnd = body.offset + STEP_BYTES
      stepAclEnd = aclChars + STEP_BYTES
    }
    try {
      const txn = prepare(operationOf(part.type).multi!.normalize(part))
      if ('acl' in txn) aclChars += aclCharsOf(txn.acl)
      if (aclChars > MAX_ACL_CHARS) reject(ErrorCode.INVALIDACL)
      txns.add(txn)
    } catch (error) {
      const failure: SubTxn = { type: OpCode.error, err: RequestError.codeOf(error) }
      while (pending.rollbackMulti(STEP)) yield
      // Apache ZooKeeper fails the whole request where it does not expect an error, as with limits that it cannot parse.
      if (failure.err === ErrorCode.MARSHALLINGERROR) return failure
      txns.add(failure)
      while (txns.length < count) {
        if (txns.length % STEP === 0) yield
        txns.add(NOT_TRIED)
      }
      return { type: OpCode.multi, txns: txns.done() }
    }
  }
  pending.commitMulti()
  return { type: OpCode.multi, txns: txns.done() }
}

/** Decodes the parts of a multi, one after the other. Throws a `ProtocolError` at a part that cannot be decoded. */
export function* multiParts(body: Reader, fields: FieldReader): Generator<DecodedWrite> {
  for (;;) {
    const { type, done } = readMultiHeader(body)
    if (done) return
    const operation = operationOf(type)
    if (operation.multi === undefined)
      return body.fail(`Expected an operation that a multi can hold, got op code ${type}`, 'an op code')
    yield operation.decode(type, body, fields)
  }
}

/** Apache ZooKeeper cannot decode a multi with a creation whose ACL is null. */
export const lacksAcl = (part: DecodedWrite & { readonly acl?: unknown }): boolean => part.acl === null

const NOT_TRIED: SubTxn = { type: OpCode.error, err: ErrorCode.RUNTIMEINCONSISTENCY }

class PartList implements MultiPartsBuilder {
  readonly #txns: SubTxn[] = []

  get length(): number {
    return this.#txns.length
  }

  add(part: SubTxn): void {
    this.#txns.push(part)
  }

  done(): readonly SubTxn[] {
    return this.#txns
  }
}
