import {
  ErrorCode,
  OpCode,
  ProtocolError,
  readMultiStep,
  type MultiOperation,
  type Reader,
} from '@zabra/protocol'
import { STEP } from '../tree/index.ts'
import type { SubTxn, Txn } from '../types.ts'
import { asInMulti, belongsInMulti, lacksAcl } from './decode.ts'
import type { PendingTree } from './pending.ts'
import { Refusal } from './refusal.ts'

/**
 * A multi, prepared in steps; nothing else may be prepared meanwhile. Gives its transaction, or the error number of one that
 * cannot be decoded. `write` prepares one operation and throws a `Refusal`.
 */
export function* multiInSteps(
  pending: PendingTree,
  body: Reader,
  write: (operation: MultiOperation) => SubTxn,
): Generator<void, Txn | number> {
  const operations: MultiOperation[] = []
  let [lacks, belongs] = [false, true]
  try {
    for (let seen = 0, more = true; more;) {
      more = readMultiStep(body, operations, STEP)
      for (; seen < operations.length; seen++) {
        lacks ||= lacksAcl(operations[seen]!)
        belongs &&= belongsInMulti(operations[seen]!)
      }
      if (more) yield
    }
  } catch (error) {
    if (error instanceof ProtocolError) return { type: OpCode.error, err: ErrorCode.MARSHALLINGERROR }
    throw error
  }
  if (lacks) return ErrorCode.MARSHALLINGERROR
  if (!belongs) return { type: OpCode.error, err: ErrorCode.MARSHALLINGERROR }
  pending.begin()
  const txns: SubTxn[] = []
  for (const operation of operations) {
    if (txns.length > 0 && txns.length % STEP === 0) yield
    try {
      txns.push(write(asInMulti(operation)))
    } catch (error) {
      const failure: SubTxn = { type: OpCode.error, err: Refusal.codeOf(error) }
      while (pending.rollback(STEP)) yield
      const skipped: SubTxn = { type: OpCode.error, err: ErrorCode.RUNTIMEINCONSISTENCY }
      const rest = operations.slice(txns.length + 1).map(() => skipped)
      return { type: OpCode.multi, txns: [...txns, failure, ...rest] }
    }
  }
  pending.keep()
  return { type: OpCode.multi, txns }
}

/** Runs something that is made in steps to its end. */
export function whole<T>(steps: Generator<void, T>): T {
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
  }
}
