import { OpCode } from '@zabra/protocol'
import { CHANGE_OPERATIONS } from './change.ts'
import { CONNECTION_READS } from './connection-reads.ts'
import { CREATE_OPERATIONS } from './create.ts'
import { DELETE_OPERATIONS } from './delete.ts'
import { LIST_READS } from './list-reads.ts'
import { MULTI_READ } from './multi-read.ts'
import { NODE_READS } from './node-reads.ts'
import { COMPOUND_OPERATIONS, INTERNAL_OPERATIONS } from './sessions.ts'
import { defineOperation, type Operation } from './types.ts'
import { WATCH_READS } from './watch-reads.ts'

/** Every operation of the protocol: one row each, beside the functions that the row names. */
export const OPERATIONS: readonly Operation[] = [
  ...CREATE_OPERATIONS,
  ...DELETE_OPERATIONS,
  ...CHANGE_OPERATIONS,
  ...COMPOUND_OPERATIONS,
  ...NODE_READS,
  ...LIST_READS,
  ...WATCH_READS,
  ...CONNECTION_READS,
  MULTI_READ,
  ...INTERNAL_OPERATIONS,
]

/** Op codes lie between the two, so that a row is found by its index in an array. */
const LOWEST_CODE = -16
const HIGHEST_CODE = 127

const UNKNOWN = defineOperation({ code: NaN, kind: 'internal' })
const byCode = Array.from({ length: HIGHEST_CODE - LOWEST_CODE + 1 }, () => UNKNOWN)
for (const operation of OPERATIONS) byCode[operation.code - LOWEST_CODE] = operation

/** Returns the row of an op code; for an unknown one, a row of an internal operation that does nothing. */
export const operationOf = (code: number): Operation =>
  code >= LOWEST_CODE && code <= HIGHEST_CODE ? byCode[code - LOWEST_CODE]! : UNKNOWN

/** Whether a client may send the operation and it changes something. */
export const isWrite = (code: number): boolean => operationOf(code).kind === 'write'

/** Whether a client may send the operation and it changes nothing. */
export const isRead = (code: number): boolean => operationOf(code).kind === 'read'

/** The types of transactions that are logged. A check is part of a multi only. */
const LOGGED: ReadonlySet<number> = new Set([
  OpCode.create,
  OpCode.create2,
  OpCode.createContainer,
  OpCode.createTTL,
  OpCode.delete,
  OpCode.deleteContainer,
  OpCode.setData,
  OpCode.setACL,
  OpCode.reconfig,
  OpCode.multi,
  OpCode.createSession,
  OpCode.closeSession,
  OpCode.error,
])

/** Whether this release can decode a transaction of a type. */
export const isLogged = (type: number): boolean => LOGGED.has(type)
