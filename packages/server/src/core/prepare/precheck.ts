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
}

const FORWARD: PrecheckResult = { err: ErrorCode.OK, isEphemeral: false }
const EPHEMERAL: PrecheckResult = { err: ErrorCode.OK, isEphemeral: true }
const UNDECODABLE: PrecheckResult = { err: ErrorCode.MARSHALLINGERROR, isEphemeral: false }

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
  let [isMissingAcl, isEphemeral] = [false, false]
  try {
    for (const part of multiParts(body, SKIPPING)) {
      isMissingAcl ||= lacksAcl(part)
      isEphemeral ||= operationOf(part.type).needsGlobalSession(part)
    }
  } catch (error) {
    if (error instanceof ProtocolError) return FORWARD
    throw error
  }
  return isMissingAcl ? UNDECODABLE : isEphemeral ? EPHEMERAL : FORWARD
}
