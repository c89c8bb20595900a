import { ErrorCode, OpCode, ProtocolError, type MultiOperation, type Reader } from '@zabra/protocol'
import { STEP } from '../tree/index.ts'
import type { MultiPartsBuilder, SubTxn, Txn } from '../types.ts'
import {
  normalizeMultiOperation,
  isAllowedInMulti,
  lacksAcl,
  multiOperations,
  SKIPPING,
  type FieldReader,
} from './decode.ts'
import type { PendingTree } from './pending-tree.ts'
import { RequestError } from './request-error.ts'

/**
 * A multi, prepared in steps; nothing else may be prepared meanwhile. Gives its transaction, or the error number of one that
 * cannot be decoded. `write` prepares one operation and throws a `RequestError`.
 *
 * It is read twice, so that no operation outlives its turn: tens of thousands that do are what collections take longest for. For
 * the same reason what it is made into, if it is large, is kept by what `pack` gives.
 */
export function* multiInSteps(
  pending: PendingTree,
  body: Reader,
  taking: FieldReader,
  write: (operation: MultiOperation) => SubTxn,
  pack: (bytes: number) => MultiPartsBuilder = () => new PartList(),
): Generator<void, Txn | number> {
  const start = body.offset
  let [count, lacks, belongs] = [0, false, true]
  try {
    for (const operation of multiOperations(body, SKIPPING)) {
      if (count > 0 && count % STEP === 0) yield
      count++
      lacks ||= lacksAcl(operation)
      belongs &&= isAllowedInMulti(operation)
    }
  } catch (error) {
    if (error instanceof ProtocolError) return { type: OpCode.error, err: ErrorCode.MARSHALLINGERROR }
    throw error
  }
  if (lacks) return ErrorCode.MARSHALLINGERROR
  if (!belongs) return { type: OpCode.error, err: ErrorCode.MARSHALLINGERROR }
  body.offset = start
  pending.beginMulti()
  const txns = count > STEP ? pack(body.remaining) : new PartList()
  for (const operation of multiOperations(body, taking)) {
    if (txns.length > 0 && txns.length % STEP === 0) yield
    try {
      txns.add(write(normalizeMultiOperation(operation)))
    } catch (error) {
      const failure: SubTxn = { type: OpCode.error, err: RequestError.codeOf(error) }
      while (pending.rollbackMulti(STEP)) yield
      txns.add(failure)
      while (txns.length < count) {
        if (txns.length % STEP === 0) yield
        txns.add(SKIPPED)
      }
      return { type: OpCode.multi, txns: txns.done() }
    }
  }
  pending.commitMulti()
  return { type: OpCode.multi, txns: txns.done() }
}

const SKIPPED: SubTxn = { type: OpCode.error, err: ErrorCode.RUNTIMEINCONSISTENCY }

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

/** Runs something that is made in steps to its end. */
export function runToEnd<T>(steps: Generator<void, T>): T {
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
  }
}
