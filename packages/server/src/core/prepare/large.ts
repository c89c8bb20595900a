import { ErrorCode, OpCode, ProtocolError, type MultiOperation, type Reader } from '@zabra/protocol'
import { STEP } from '../tree/index.ts'
import type { Packing, SubTxn, Txn } from '../types.ts'
import { asInMulti, belongsInMulti, lacksAcl, partsOf, PASSING, type Taking } from './decode.ts'
import type { PendingTree } from './pending.ts'
import { Refusal } from './refusal.ts'

/**
 * A multi, prepared in steps; nothing else may be prepared meanwhile. Gives its transaction, or the error number of one that
 * cannot be decoded. `write` prepares one operation and throws a `Refusal`.
 *
 * It is read twice, so that no operation outlives its turn: tens of thousands that do are what collections take longest for. For
 * the same reason what it is made into, if it is large, is kept by what `pack` gives.
 */
export function* multiInSteps(
  pending: PendingTree,
  body: Reader,
  taking: Taking,
  write: (operation: MultiOperation) => SubTxn,
  pack: (bytes: number) => Packing = () => new Listed(),
): Generator<void, Txn | number> {
  const start = body.offset
  let [count, lacks, belongs] = [0, false, true]
  try {
    for (const operation of partsOf(body, PASSING)) {
      if (count > 0 && count % STEP === 0) yield
      count++
      lacks ||= lacksAcl(operation)
      belongs &&= belongsInMulti(operation)
    }
  } catch (error) {
    if (error instanceof ProtocolError) return { type: OpCode.error, err: ErrorCode.MARSHALLINGERROR }
    throw error
  }
  if (lacks) return ErrorCode.MARSHALLINGERROR
  if (!belongs) return { type: OpCode.error, err: ErrorCode.MARSHALLINGERROR }
  body.offset = start
  pending.begin()
  const txns = count > STEP ? pack(body.remaining) : new Listed()
  for (const operation of partsOf(body, taking)) {
    if (txns.length > 0 && txns.length % STEP === 0) yield
    try {
      txns.add(write(asInMulti(operation)))
    } catch (error) {
      const failure: SubTxn = { type: OpCode.error, err: Refusal.codeOf(error) }
      while (pending.rollback(STEP)) yield
      txns.add(failure)
      while (txns.length < count) {
        if (txns.length % STEP === 0) yield
        txns.add(SKIPPED)
      }
      return { type: OpCode.multi, txns: txns.done() }
    }
  }
  pending.keep()
  return { type: OpCode.multi, txns: txns.done() }
}

const SKIPPED: SubTxn = { type: OpCode.error, err: ErrorCode.RUNTIMEINCONSISTENCY }

class Listed implements Packing {
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
export function whole<T>(steps: Generator<void, T>): T {
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
  }
}
