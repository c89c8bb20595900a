import {
  CreateMode,
  ErrorCode,
  OPEN_ACL_UNSAFE,
  OpCode,
  readCreate2Response,
  readGetChildren2Response,
  readGetDataResponse,
  readMultiResponse,
  readSetDataResponse,
  readStat,
  writeCreateRequest,
  writeCreateTTLRequest,
  writeDeleteRequest,
  writeMultiRequest,
  writeReconfigRequest,
  writeSetDataRequest,
  type MultiOperation,
  type MultiResult,
  type Reader,
  type Writer,
} from '@zabra/protocol'
import { seenStat, type Mode, type Part, type Request, type Result } from '../history/records.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder()
const text = (data: Uint8Array | null): string => (data === null ? '' : decoder.decode(data))

const flags: Readonly<Record<Mode, number>> = {
  persistent: CreateMode.PERSISTENT,
  ephemeral: CreateMode.EPHEMERAL,
  sequential: CreateMode.PERSISTENT_SEQUENTIAL,
  ephemeralSequential: CreateMode.EPHEMERAL_SEQUENTIAL,
  container: CreateMode.CONTAINER,
  ttl: CreateMode.PERSISTENT_WITH_TTL,
}
/** Long enough that no node of a run reaches it. */
const TTL_MS = 100_000_000n

export function opCodeOf(request: Request): number {
  switch (request.op) {
    case 'create':
      return request.mode === 'container'
        ? OpCode.createContainer
        : request.mode === 'ttl'
          ? OpCode.createTTL
          : OpCode.create2
    case 'delete':
      return OpCode.delete
    case 'set':
      return OpCode.setData
    case 'check':
      return OpCode.check
    case 'multi':
      return OpCode.multi
    case 'get':
      return OpCode.getData
    case 'exists':
      return OpCode.exists
    case 'children':
      return OpCode.getChildren2
    case 'sync':
      return OpCode.sync
    case 'close':
      return OpCode.closeSession
    case 'reconfig':
      return OpCode.reconfig
  }
}

export function writeRequest(w: Writer, request: Request): void {
  switch (request.op) {
    case 'multi':
      return writeMultiRequest(w, request.parts.map(operationOf))
    case 'create': {
      const { path, data, mode } = request
      const body = { path, data: encoder.encode(data), acl: OPEN_ACL_UNSAFE, flags: flags[mode] }
      return mode === 'ttl' ? writeCreateTTLRequest(w, { ...body, ttl: TTL_MS }) : writeCreateRequest(w, body)
    }
    case 'delete':
      return writeDeleteRequest(w, request)
    case 'set':
      return writeSetDataRequest(w, { ...request, data: encoder.encode(request.data) })
    case 'reconfig':
      return writeReconfigRequest(w, {
        joiningServers: request.joining || null,
        leavingServers: request.leaving || null,
        newMembers: null,
        curConfigId: BigInt(request.from),
      })
    case 'sync':
      return w.string(request.path)
    case 'close':
      return
    case 'check':
      throw new Error('A check is a part of a transaction only')
    case 'get':
    case 'exists':
    case 'children':
      w.string(request.path)
      w.bool(request.watch)
  }
}

/** Reads the body of a reply without error. */
export function readResult(r: Reader, request: Request): { result: Result; results: readonly Result[] } {
  if (request.op === 'multi') {
    // The header of a transaction that failed shows no error; its parts do.
    const results = readMultiResponse(r).map(resultOf)
    return {
      result: {
        err: results.find(({ err }) => err !== 0 && err !== ErrorCode.RUNTIMEINCONSISTENCY)?.err ?? 0,
      },
      results,
    }
  }
  return { result: readOne(r, request), results: [] }
}

function readOne(r: Reader, request: Request): Result {
  switch (request.op) {
    case 'create': {
      const { path, stat } = readCreate2Response(r)
      return { err: 0, path: path!, stat: seenStat(stat) }
    }
    case 'set':
      return { err: 0, stat: seenStat(readSetDataResponse(r).stat) }
    case 'get': {
      const { data, stat } = readGetDataResponse(r)
      return { err: 0, data: text(data), stat: seenStat(stat) }
    }
    case 'exists':
      return { err: 0, stat: seenStat(readStat(r)) }
    case 'children': {
      const { children, stat } = readGetChildren2Response(r)
      return { err: 0, children: (children ?? []) as string[], stat: seenStat(stat) }
    }
    case 'reconfig':
      return { err: 0, data: text(readGetDataResponse(r).data) }
    case 'delete':
    case 'check':
    case 'multi':
    case 'sync':
    case 'close':
      return { err: 0 }
  }
}

function operationOf(part: Part): MultiOperation {
  switch (part.op) {
    case 'create': {
      const { path, data, mode } = part
      const type = mode === 'container' ? OpCode.createContainer : OpCode.create2
      return { type, path, data: encoder.encode(data), acl: OPEN_ACL_UNSAFE, flags: flags[mode] }
    }
    case 'delete':
      return { type: OpCode.delete, path: part.path, version: part.version }
    case 'set':
      return { type: OpCode.setData, path: part.path, data: encoder.encode(part.data), version: part.version }
    case 'check':
      return { type: OpCode.check, path: part.path, version: part.version }
  }
}

function resultOf(result: MultiResult): Result {
  if (result.type === OpCode.error) return { err: result.err }
  if (result.type === OpCode.create2) return { err: 0, path: result.path!, stat: seenStat(result.stat) }
  if (result.type === OpCode.create) return { err: 0, path: result.path! }
  if (result.type === OpCode.setData) return { err: 0, stat: seenStat(result.stat) }
  return { err: 0 }
}
