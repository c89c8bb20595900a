import {
  readCheckVersionRequest,
  readCreate2Response,
  readCreateRequest,
  readCreateResponse,
  readCreateTTLRequest,
  readDeleteRequest,
  readErrorResponse,
  readGetChildrenRequest,
  readGetChildrenResponse,
  readGetDataRequest,
  readGetDataResponse,
  readMultiHeader,
  readSetDataRequest,
  readSetDataResponse,
  writeCheckVersionRequest,
  writeCreate2Response,
  writeCreateRequest,
  writeCreateResponse,
  writeCreateTTLRequest,
  writeDeleteRequest,
  writeErrorResponse,
  writeGetChildrenRequest,
  writeGetChildrenResponse,
  writeGetDataRequest,
  writeGetDataResponse,
  writeMultiHeader,
  writeSetDataRequest,
  writeSetDataResponse,
} from './gen/records.gen.ts'
import type {
  CheckVersionRequest,
  Create2Response,
  CreateRequest,
  CreateResponse,
  CreateTTLRequest,
  DeleteRequest,
  ErrorResponse,
  GetChildrenRequest,
  GetChildrenResponse,
  GetDataRequest,
  GetDataResponse,
  SetDataRequest,
  SetDataResponse,
} from './schema/records.ts'
import { OpCode } from './tables/op-codes.ts'
import type { Reader } from './wire/reader.ts'
import type { Writer } from './wire/writer.ts'

/** One operation of a multi or multiRead, with the op code that says which record it is. */
export type MultiOperation =
  | ({
      readonly type: typeof OpCode.create | typeof OpCode.create2 | typeof OpCode.createContainer
    } & CreateRequest)
  | ({ readonly type: typeof OpCode.createTTL } & CreateTTLRequest)
  | ({ readonly type: typeof OpCode.delete } & DeleteRequest)
  | ({ readonly type: typeof OpCode.setData } & SetDataRequest)
  | ({ readonly type: typeof OpCode.check } & CheckVersionRequest)
  | ({ readonly type: typeof OpCode.getData } & GetDataRequest)
  | ({ readonly type: typeof OpCode.getChildren } & GetChildrenRequest)

/** One result of a multi or multiRead. */
export type MultiResult =
  | ({ readonly type: typeof OpCode.create } & CreateResponse)
  | ({ readonly type: typeof OpCode.create2 } & Create2Response)
  | { readonly type: typeof OpCode.delete | typeof OpCode.check }
  | ({ readonly type: typeof OpCode.setData } & SetDataResponse)
  | ({ readonly type: typeof OpCode.getData } & GetDataResponse)
  | ({ readonly type: typeof OpCode.getChildren } & GetChildrenResponse)
  | ({ readonly type: typeof OpCode.error } & ErrorResponse)

const END = { type: -1, done: true, err: -1 } as const

export function readMultiRequest(r: Reader): MultiOperation[] {
  const operations: MultiOperation[] = []
  for (let header = readMultiHeader(r); !header.done; header = readMultiHeader(r)) {
    operations.push(readOperation(r, header.type))
  }
  return operations
}

function readOperation(r: Reader, type: number): MultiOperation {
  switch (type) {
    case OpCode.create:
    case OpCode.create2:
    case OpCode.createContainer:
      return { type, ...readCreateRequest(r) }
    case OpCode.createTTL:
      return { type, ...readCreateTTLRequest(r) }
    case OpCode.delete:
      return { type, ...readDeleteRequest(r) }
    case OpCode.setData:
      return { type, ...readSetDataRequest(r) }
    case OpCode.check:
      return { type, ...readCheckVersionRequest(r) }
    case OpCode.getData:
      return { type, ...readGetDataRequest(r) }
    case OpCode.getChildren:
      return { type, ...readGetChildrenRequest(r) }
    default:
      return r.fail(`Expected an operation that a multi can hold, got op code ${type}`, 'a multi operation')
  }
}

export function writeMultiRequest(w: Writer, operations: readonly MultiOperation[]): void {
  for (const operation of operations) {
    writeMultiHeader(w, { type: operation.type, done: false, err: -1 })
    writeOperation(w, operation)
  }
  writeMultiHeader(w, END)
}

function writeOperation(w: Writer, operation: MultiOperation): void {
  switch (operation.type) {
    case OpCode.create:
    case OpCode.create2:
    case OpCode.createContainer:
      return writeCreateRequest(w, operation)
    case OpCode.createTTL:
      return writeCreateTTLRequest(w, operation)
    case OpCode.delete:
      return writeDeleteRequest(w, operation)
    case OpCode.setData:
      return writeSetDataRequest(w, operation)
    case OpCode.check:
      return writeCheckVersionRequest(w, operation)
    case OpCode.getData:
      return writeGetDataRequest(w, operation)
    case OpCode.getChildren:
      return writeGetChildrenRequest(w, operation)
  }
}

export function readMultiResponse(r: Reader): MultiResult[] {
  const results: MultiResult[] = []
  for (let header = readMultiHeader(r); !header.done; header = readMultiHeader(r)) {
    results.push(readResult(r, header.type))
  }
  return results
}

function readResult(r: Reader, type: number): MultiResult {
  switch (type) {
    case OpCode.create:
      return { type, ...readCreateResponse(r) }
    case OpCode.create2:
      return { type, ...readCreate2Response(r) }
    case OpCode.delete:
    case OpCode.check:
      return { type }
    case OpCode.setData:
      return { type, ...readSetDataResponse(r) }
    case OpCode.getData:
      return { type, ...readGetDataResponse(r) }
    case OpCode.getChildren:
      return { type, ...readGetChildrenResponse(r) }
    case OpCode.error:
      return { type, ...readErrorResponse(r) }
    default:
      return r.fail(`Expected a result that a multi can hold, got type ${type}`, 'a multi result')
  }
}

export function writeMultiResponse(w: Writer, results: readonly MultiResult[]): void {
  for (const result of results) {
    writeMultiHeader(w, {
      type: result.type,
      done: false,
      err: result.type === OpCode.error ? result.err : 0,
    })
    writeResult(w, result)
  }
  writeMultiHeader(w, END)
}

function writeResult(w: Writer, result: MultiResult): void {
  switch (result.type) {
    case OpCode.create:
      return writeCreateResponse(w, result)
    case OpCode.create2:
      return writeCreate2Response(w, result)
    case OpCode.delete:
    case OpCode.check:
      return
    case OpCode.setData:
      return writeSetDataResponse(w, result)
    case OpCode.getData:
      return writeGetDataResponse(w, result)
    case OpCode.getChildren:
      return writeGetChildrenResponse(w, result)
    case OpCode.error:
      return writeErrorResponse(w, result)
  }
}
