import { OpCode, writeMultiHeader, type Reader, type Writer } from '@zabra/protocol'
import type { Tree } from '../tree/index.ts'
import type { CreateSessionTxn, ErrorTxn, Txn } from '../types.ts'
import { defineOperation } from './types.ts'

/** Follows the last result of a multi. */
export const MULTI_END = { type: -1, done: true, err: -1 } as const

/**
 * The parts of a multi have written their results before; what is left is the end of the list. Its record, and that of a
 * session's end, can be large: `persistence/txn-codec.ts` encodes both in steps.
 */
const writeMultiEnd = (_tree: Tree, _txn: Txn, _requested: number, writer: Writer): void =>
  writeMultiHeader(writer, MULTI_END)

export const COMPOUND_OPERATIONS = [
  defineOperation({ code: OpCode.multi, name: 'MULT', kind: 'write', writeReply: writeMultiEnd }),
  defineOperation({ code: OpCode.closeSession, name: 'CLOS', kind: 'write' }),
]

export const INTERNAL_OPERATIONS = [
  defineOperation({
    code: OpCode.createSession,
    name: 'SESS',
    kind: 'internal',
    encodeTxn: (writer: Writer, { timeOut }: CreateSessionTxn) => writer.int(timeOut),
    decodeTxn: (_type: number, reader: Reader) => ({ type: OpCode.createSession, timeOut: reader.int() }),
  }),
  defineOperation({
    code: OpCode.error,
    kind: 'internal',
    encodeTxn: (writer: Writer, { err }: ErrorTxn) => writer.int(err),
    decodeTxn: (_type: number, reader: Reader) => ({ type: OpCode.error, err: reader.int() }),
  }),
  defineOperation({ code: OpCode.notification, name: 'NOTI', kind: 'internal' }),
  defineOperation({ code: OpCode.auth, kind: 'auth' }),
  defineOperation({ code: OpCode.sasl, kind: 'auth' }),
]
