import {
  CreateMode,
  OpCode,
  readCreateRequest,
  readCreateTTLRequest,
  readDeleteRequest,
  readGetDataRequest,
  readMultiRequest,
  readSetDataRequest,
  type MultiOperation,
  type Reader,
} from '@zabra/protocol'
import type { NodeMode, MultiPart, ReadPart, Request } from '../history/records.ts'

const decoder = new TextDecoder()
const text = (data: Uint8Array | null): string => (data === null ? '' : decoder.decode(data))

const modes: ReadonlyMap<number, NodeMode> = new Map([
  [CreateMode.PERSISTENT, 'persistent'],
  [CreateMode.EPHEMERAL, 'ephemeral'],
  [CreateMode.PERSISTENT_SEQUENTIAL, 'sequential'],
  [CreateMode.EPHEMERAL_SEQUENTIAL, 'ephemeralSequential'],
  [CreateMode.CONTAINER, 'container'],
  [CreateMode.PERSISTENT_WITH_TTL, 'ttl'],
])

/** Decodes the body of a request; undefined for requests that the history does not record. */
export function decodeRequest(type: number, r: Reader): Request | undefined {
  switch (type) {
    case OpCode.create:
    case OpCode.create2:
    case OpCode.createContainer:
      return created(readCreateRequest(r))
    case OpCode.createTTL:
      return created(readCreateTTLRequest(r))
    case OpCode.delete: {
      const { path, version } = readDeleteRequest(r)
      return { op: 'delete', path: path!, version }
    }
    case OpCode.setData: {
      const { path, data, version } = readSetDataRequest(r)
      return { op: 'set', path: path!, data: text(data), version }
    }
    case OpCode.multi:
      return { op: 'multi', parts: readMultiRequest(r).map(partOf) }
    case OpCode.multiRead:
      return { op: 'multiRead', parts: readMultiRequest(r).map(readPartOf) }
    case OpCode.getData:
      return read('get', r)
    case OpCode.exists:
      return read('exists', r)
    case OpCode.getChildren2:
      return read('children', r)
    case OpCode.sync:
      return { op: 'sync', path: r.string()! }
    case OpCode.closeSession:
      return { op: 'close' }
    default:
      return undefined
  }
}

function read(op: 'get' | 'exists' | 'children', r: Reader): Request {
  const { path, watch } = readGetDataRequest(r)
  return { op, path: path!, watch }
}

function created({
  path,
  data,
  flags,
}: {
  path: string | null
  data: Uint8Array | null
  flags: number
}): MultiPart {
  return { op: 'create', path: path!, data: text(data), mode: modes.get(flags) ?? 'persistent' }
}

function readPartOf(operation: MultiOperation): ReadPart {
  if (operation.type === OpCode.getData) return { op: 'get', path: operation.path! }
  if (operation.type === OpCode.getChildren) return { op: 'children', path: operation.path! }
  throw new Error('Expected reads')
}

function partOf(operation: MultiOperation): MultiPart {
  switch (operation.type) {
    case OpCode.delete:
      return { op: 'delete', path: operation.path!, version: operation.version }
    case OpCode.setData:
      return { op: 'set', path: operation.path!, data: text(operation.data), version: operation.version }
    case OpCode.check:
      return { op: 'check', path: operation.path!, version: operation.version }
    case OpCode.create:
    case OpCode.create2:
    case OpCode.createContainer:
    case OpCode.createTTL:
      return created(operation)
    case OpCode.getData:
    case OpCode.getChildren:
      throw new Error('Expected a transaction that writes')
  }
}
