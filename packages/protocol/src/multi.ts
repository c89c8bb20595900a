import * as records from './gen/records.gen.ts'
import type * as schema from './schema/records.ts'
import { OpCode } from './tables/op-codes.ts'
import type { Reader } from './wire/reader.ts'
import type { Writer } from './wire/writer.ts'

/** One operation of a multi or multiRead, with the op code that says which record it is. */
export type MultiOperation =
  | ({
      readonly type: typeof OpCode.create | typeof OpCode.create2 | typeof OpCode.createContainer
    } & schema.CreateRequest)
  | ({ readonly type: typeof OpCode.createTTL } & schema.CreateTTLRequest)
  | ({ readonly type: typeof OpCode.delete } & schema.DeleteRequest)
  | ({ readonly type: typeof OpCode.setData } & schema.SetDataRequest)
  | ({ readonly type: typeof OpCode.check } & schema.CheckVersionRequest)
  | ({ readonly type: typeof OpCode.getData } & schema.GetDataRequest)
  | ({ readonly type: typeof OpCode.getChildren } & schema.GetChildrenRequest)

/** One result of a multi or multiRead. */
export type MultiResult =
  | ({ readonly type: typeof OpCode.create } & schema.CreateResponse)
  | ({ readonly type: typeof OpCode.create2 } & schema.Create2Response)
  | { readonly type: typeof OpCode.delete | typeof OpCode.check }
  | ({ readonly type: typeof OpCode.setData } & schema.SetDataResponse)
  | ({ readonly type: typeof OpCode.getData } & schema.GetDataResponse)
  | ({ readonly type: typeof OpCode.getChildren } & schema.GetChildrenResponse)
  | ({ readonly type: typeof OpCode.error } & schema.ErrorResponse)

const END = { type: -1, done: true, err: -1 } as const

export function readMultiRequest(r: Reader, limit = Infinity): MultiOperation[] {
  const operations: MultiOperation[] = []
  for (let header = records.readMultiHeader(r); !header.done; header = records.readMultiHeader(r)) {
    if (operations.length >= limit) r.fail(`Expected ${limit} parts at most`, 'a multi')
    operations.push(readOperation(r, header.type))
  }
  return operations
}

function readOperation(r: Reader, type: number): MultiOperation {
  switch (type) {
    case OpCode.create:
    case OpCode.create2:
    case OpCode.createContainer:
      return { type, ...records.readCreateRequest(r) }
    case OpCode.createTTL:
      return { type, ...records.readCreateTTLRequest(r) }
    case OpCode.delete:
      return { type, ...records.readDeleteRequest(r) }
    case OpCode.setData:
      return { type, ...records.readSetDataRequest(r) }
    case OpCode.check:
      return { type, ...records.readCheckVersionRequest(r) }
    case OpCode.getData:
      return { type, ...records.readGetDataRequest(r) }
    case OpCode.getChildren:
      return { type, ...records.readGetChildrenRequest(r) }
    default:
      return r.fail(`Expected an operation that a multi can hold, got op code ${type}`, 'a multi operation')
  }
}

export function writeMultiRequest(w: Writer, operations: readonly MultiOperation[]): void {
  for (const operation of operations) {
    records.writeMultiHeader(w, { type: operation.type, done: false, err: -1 })
    writeOperation(w, operation)
  }
  records.writeMultiHeader(w, END)
}

function writeOperation(w: Writer, operation: MultiOperation): void {
  switch (operation.type) {
    case OpCode.create:
    case OpCode.create2:
    case OpCode.createContainer:
      return records.writeCreateRequest(w, operation)
    case OpCode.createTTL:
      return records.writeCreateTTLRequest(w, operation)
    case OpCode.delete:
      return records.writeDeleteRequest(w, operation)
    case OpCode.setData:
      return records.writeSetDataRequest(w, operation)
    case OpCode.check:
      return records.writeCheckVersionRequest(w, operation)
    case OpCode.getData:
      return records.writeGetDataRequest(w, operation)
    case OpCode.getChildren:
      return records.writeGetChildrenRequest(w, operation)
  }
}

export function readMultiResponse(r: Reader): MultiResult[] {
  const results: MultiResult[] = []
  for (let header = records.readMultiHeader(r); !header.done; header = records.readMultiHeader(r)) {
    results.push(readResult(r, header.type))
  }
  return results
}

function readResult(r: Reader, type: number): MultiResult {
  switch (type) {
    case OpCode.create:
      return { type, ...records.readCreateResponse(r) }
    case OpCode.create2:
      return { type, ...records.readCreate2Response(r) }
    case OpCode.delete:
    case OpCode.check:
      return { type }
    case OpCode.setData:
      return { type, ...records.readSetDataResponse(r) }
    case OpCode.getData:
      return { type, ...records.readGetDataResponse(r) }
    case OpCode.getChildren:
      return { type, ...records.readGetChildrenResponse(r) }
    case OpCode.error:
      return { type, ...records.readErrorResponse(r) }
    default:
      return r.fail(`Expected a result that a multi can hold, got type ${type}`, 'a multi result')
  }
}

export function writeMultiResponse(w: Writer, results: readonly MultiResult[]): void {
  for (const result of results) {
    records.writeMultiHeader(w, {
      type: result.type,
      done: false,
      err: result.type === OpCode.error ? result.err : 0,
    })
    writeResult(w, result)
  }
  records.writeMultiHeader(w, END)
}

function writeResult(w: Writer, result: MultiResult): void {
  switch (result.type) {
    case OpCode.create:
      return records.writeCreateResponse(w, result)
    case OpCode.create2:
      return records.writeCreate2Response(w, result)
    case OpCode.delete:
    case OpCode.check:
      return
    case OpCode.setData:
      return records.writeSetDataResponse(w, result)
    case OpCode.getData:
      return records.writeGetDataResponse(w, result)
    case OpCode.getChildren:
      return records.writeGetChildrenResponse(w, result)
    case OpCode.error:
      return records.writeErrorResponse(w, result)
  }
}
