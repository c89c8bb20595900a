import { OpCode, type Reader, type Writer } from '@zabra/protocol'
import { EMPTY } from './call-options.ts'
import {
  create,
  createContainer,
  createTtl,
  deleteNode,
  readNames,
  readPath,
  setData,
  writePathAndVersion,
  writePathAndWatch,
} from './operations.ts'
import { readReplyZxid } from './session/error-codes.ts'
import type { Operation, PendingRequest, RequestArguments } from './session/pending-request.ts'
import { readStat } from './stat.ts'

/** The operation of a part: that of a single request, or one that only multis have. */
export type PartOperation = Pick<Operation, 'opCode' | 'encode'>

/** One part of a multi or multiRead, with the arguments that a request of its own would have. */
export interface MultiPart extends RequestArguments {
  readonly operation: PartOperation
}

export const checkVersion: PartOperation = { opCode: OpCode.check, encode: writePathAndVersion }
/** Without the stat that `getChildren` outside of a multi returns. */
export const listChildren: PartOperation = { opCode: OpCode.getChildren, encode: writePathAndWatch }

/** The result of a part: a value, or an error code. A part also has one when another part failed. */
export interface PartResult {
  readonly code?: number
  readonly value?: unknown
}

export interface MultiReply {
  readonly results: readonly PartResult[]
  /** An earlier try may have been applied. */
  readonly isAmbiguous: boolean
}

/** Writes the header of a part, or the end marker. */
export function writePartHeader(w: Writer, type: number, isEnd: boolean): void {
  w.int(type)
  w.bool(isEnd)
  w.int(-1)
}

function encodeMulti(w: Writer, { params }: RequestArguments): void {
  for (const part of params as readonly MultiPart[]) {
    writePartHeader(w, part.operation.opCode, false)
    part.operation.encode(w, part)
  }
  writePartHeader(w, -1, true)
}

/**
 * Decodes the results; the caller determines which operation made a multi fail. Throws when they are not those of its
 * operations.
 */
function decodeMulti(r: Reader, request: PendingRequest): MultiReply {
  const parts = request.params as readonly MultiPart[]
  const results: PartResult[] = []
  for (;;) {
    const type = r.int()
    const isEnd = r.bool()
    r.int()
    if (isEnd && results.length === parts.length) return { results, isAmbiguous: request.isAmbiguous }
    if (isEnd || !mayHaveResult(parts[results.length], type))
      r.fail('Expected a result for each operation, got others', 'a multi')
    results.push(type === OpCode.error ? { code: r.int() } : { value: readValue(r, type, request) })
  }
}

const creates: readonly PartOperation[] = [create, createContainer, createTtl]

/** Servers reply to all kinds of creates with results of two types. */
const mayHaveResult = (part: MultiPart | undefined, type: number): boolean =>
  part !== undefined &&
  (type === OpCode.error ||
    (creates.includes(part.operation)
      ? type === OpCode.create || type === OpCode.create2
      : type === part.operation.opCode))

function readValue(r: Reader, type: number, request: PendingRequest): unknown {
  switch (type) {
    case OpCode.create:
      return { path: readPath(r, request) }
    case OpCode.create2:
      return { path: readPath(r, request), stat: readStat(r) }
    case OpCode.setData:
      return readStat(r)
    case OpCode.getData:
      return { data: r.bufferCopy() ?? EMPTY, stat: readStat(r) }
    case OpCode.getChildren:
      return { children: readNames(r) }
  }
  // A delete or a check.
  return undefined
}

export const multi: Operation = {
  name: 'multi',
  opCode: OpCode.multi,
  isWrite: true,
  encode: encodeMulti,
  decode: decodeMulti,
  // Safe if being applied once makes the second try fail: an operation that consumes a version.
  isIdempotent: ({ params }) =>
    (params as readonly MultiPart[]).some(
      ({ operation, intArgument }) =>
        (operation === deleteNode || operation === setData) && intArgument !== -1,
    ),
}

export const multiRead: Operation = {
  ...multi,
  name: 'multiRead',
  opCode: OpCode.multiRead,
  isWrite: false,
  isIdempotent: () => true,
}

/** A transaction without effect. Its result is its zxid. */
export const syncCommitted: Operation = {
  ...multi,
  name: 'syncCommitted',
  decode: (r) => readReplyZxid(r),
  isIdempotent: () => true,
}
