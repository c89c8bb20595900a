import { ErrorCode, OpCode, ProtocolError, type Reader } from '@zabra/protocol'
import { SKIPPING } from '../operations/fields.ts'
import { operationOf } from '../operations/table.ts'
import { lacksAcl, multiParts } from './multi.ts'

/** The result of checking a write before it is forwarded to the leader. */
export interface PrecheckResult {
  /** An error number for a request that cannot be decoded, which the leader would not answer by a transaction; else 0. */
  readonly err: number
  /** Whether the write creates ephemeral nodes, which only a global session can own. */
  readonly isEphemeral: boolean
  /** The ascending indexes of the parts of a multi that are create2: its transaction holds them as create. */
  readonly create2Parts: readonly number[]
}

const FORWARD: PrecheckResult = { err: ErrorCode.OK, isEphemeral: false, create2Parts: [] }
const EPHEMERAL: PrecheckResult = { ...FORWARD, isEphemeral: true }
const UNDECODABLE: PrecheckResult = { ...FORWARD, err: ErrorCode.MARSHALLINGERROR }

/** Checks a write before it is forwarded. The leader answers a multi that cannot be decoded by a transaction with an error. */
export function precheck(type: number, body: Reader): PrecheckResult {
  try {
    if (type === OpCode.multi) return precheckMulti(body)
    const operation = operationOf(type)
    const write = operation.decode(type, body, SKIPPING)
    return operation.needsGlobalSession(write) ? EPHEMERAL : FORWARD
  } catch (error) {
    if (error instanceof ProtocolError) return UNDECODABLE
    throw error
  }
}

function precheckMulti(body: Reader): PrecheckResult {
  let [isMissingAcl, isEphemeral, count] = [false, false, 0]
  const create2Parts: number[] = []
  try {
    for (const part of multiParts(body, SKIPPING)) {
      const operation = operationOf(part.type)
      isMissingAcl ||= lacksAcl(part)
      isEphemeral ||= operation.needsGlobalSession(part)
      if (operation.multi!.normalize(part).type === OpCode.create2) create2Parts.push(count)
      count++
    }
  } catch (error) {
    if (error instanceof ProtocolError) return FORWARD
    throw error
  }
  return isMissingAcl ? UNDECODABLE : { err: ErrorCode.OK, isEphemeral, create2Parts }
}
