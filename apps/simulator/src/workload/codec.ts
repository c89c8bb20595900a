import {
  CreateMode,
  ErrorCode,
  OpCode,
  readCreate2Response,
  readGetACLResponse,
  readGetAllChildrenNumberResponse,
  readGetEphemeralsResponse,
  readWhoAmIResponse,
  readSetACLResponse,
  WatcherType,
  WatchMode,
  writeAddWatchRequest,
  writeRemoveWatchesRequest,
  writeSetACLRequest,
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
import { aclOf, formatAcl } from '../history/acl.ts'
import {
  plainStat,
  type NodeMode,
  type MultiPart,
  type ReadPart,
  type Request,
  type Result,
  type WatchKind,
} from '../history/records.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder()
const text = (data: Uint8Array | null): string => (data === null ? '' : decoder.decode(data))

const flags: Readonly<Record<NodeMode, number>> = {
  persistent: CreateMode.PERSISTENT,
  ephemeral: CreateMode.EPHEMERAL,
  sequential: CreateMode.PERSISTENT_SEQUENTIAL,
  ephemeralSequential: CreateMode.EPHEMERAL_SEQUENTIAL,
  container: CreateMode.CONTAINER,
  ttl: CreateMode.PERSISTENT_WITH_TTL,
}
const watcherTypes: Readonly<Record<WatchKind, number>> = {
  any: WatcherType.Any,
  data: WatcherType.Data,
  children: WatcherType.Children,
  persistent: WatcherType.Persistent,
  recursive: WatcherType.PersistentRecursive,
}
/** Short enough for nodes to expire while clients run. */
const TTL_MS = 700n

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
    case 'setAcl':
      return OpCode.setACL
    case 'getAcl':
      return OpCode.getACL
    case 'ephemerals':
      return OpCode.getEphemerals
    case 'count':
      return OpCode.getAllChildrenNumber
    case 'addWatch':
      return OpCode.addWatch
    case 'removeWatches':
      return OpCode.removeWatches
    case 'checkWatches':
      return OpCode.checkWatches
    case 'multiRead':
      return OpCode.multiRead
    case 'whoAmI':
      return OpCode.whoAmI
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
    case 'multiRead':
      return writeMultiRequest(w, request.parts.map(readOf))
    case 'create': {
      const { path, data, mode, acl = 'open' } = request
      const body = { path, data: encoder.encode(data), acl: aclOf(acl), flags: flags[mode] }
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
        newMembers: request.members ?? null,
        curConfigId: BigInt(request.from),
      })
    case 'setAcl':
      return writeSetACLRequest(w, { ...request, acl: aclOf(request.acl) })
    case 'addWatch': {
      const { path, recursive } = request
      return writeAddWatchRequest(w, {
        path,
        mode: recursive ? WatchMode.PERSISTENT_RECURSIVE : WatchMode.PERSISTENT,
      })
    }
    case 'removeWatches':
    case 'checkWatches':
      return writeRemoveWatchesRequest(w, { path: request.path, type: watcherTypes[request.watches] })
    case 'getAcl':
    case 'ephemerals':
    case 'count':
    case 'sync':
      return w.string(request.path)
    case 'close':
    case 'whoAmI':
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

/** Reads the body of a successful reply. */
export function readResult(r: Reader, request: Request): { result: Result; results: readonly Result[] } {
  if (request.op === 'multi') {
    // The header of a failed multi shows no error; the results do.
    const results = readMultiResponse(r).map(resultOf)
    return {
      result: {
        err: results.find(({ err }) => err !== 0 && err !== ErrorCode.RUNTIMEINCONSISTENCY)?.err ?? 0,
      },
      results,
    }
  }
  if (request.op === 'multiRead') return { result: { err: 0 }, results: readMultiResponse(r).map(resultOf) }
  return { result: readOne(r, request), results: [] }
}

function readOne(r: Reader, request: Request): Result {
  switch (request.op) {
    case 'create': {
      const { path, stat } = readCreate2Response(r)
      return { err: 0, path: path!, stat: plainStat(stat) }
    }
    case 'set':
      return { err: 0, stat: plainStat(readSetDataResponse(r).stat) }
    case 'get': {
      const { data, stat } = readGetDataResponse(r)
      return { err: 0, data: text(data), stat: plainStat(stat) }
    }
    case 'exists':
      return { err: 0, stat: plainStat(readStat(r)) }
    case 'children': {
      const { children, stat } = readGetChildren2Response(r)
      return { err: 0, children: (children ?? []) as string[], stat: plainStat(stat) }
    }
    case 'setAcl':
      return { err: 0, stat: plainStat(readSetACLResponse(r).stat) }
    case 'getAcl': {
      const { acl, stat } = readGetACLResponse(r)
      return { err: 0, acl: formatAcl(acl), stat: plainStat(stat) }
    }
    case 'ephemerals':
      return { err: 0, children: (readGetEphemeralsResponse(r).ephemerals ?? []) as string[] }
    case 'count':
      return { err: 0, count: readGetAllChildrenNumberResponse(r).totalNumber }
    case 'reconfig':
      return { err: 0, data: text(readGetDataResponse(r).data) }
    case 'whoAmI': {
      const { clientInfo } = readWhoAmIResponse(r)
      return { err: 0, identities: (clientInfo ?? []).map(({ authScheme, user }) => `${authScheme}:${user}`) }
    }
    case 'delete':
    case 'check':
    case 'multi':
    case 'multiRead':
    case 'addWatch':
    case 'removeWatches':
    case 'checkWatches':
    case 'sync':
    case 'close':
      return { err: 0 }
  }
}

const readOf = ({ op, path }: ReadPart): MultiOperation => ({
  type: op === 'get' ? OpCode.getData : OpCode.getChildren,
  path,
  watch: false,
})

function operationOf(part: MultiPart): MultiOperation {
  switch (part.op) {
    case 'create': {
      const { path, data, mode, acl = 'open' } = part
      const type = mode === 'container' ? OpCode.createContainer : OpCode.create2
      return { type, path, data: encoder.encode(data), acl: aclOf(acl), flags: flags[mode] }
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
  if (result.type === OpCode.create2) return { err: 0, path: result.path!, stat: plainStat(result.stat) }
  if (result.type === OpCode.create) return { err: 0, path: result.path! }
  if (result.type === OpCode.setData) return { err: 0, stat: plainStat(result.stat) }
  if (result.type === OpCode.getData) return { err: 0, data: text(result.data), stat: plainStat(result.stat) }
  if (result.type === OpCode.getChildren) return { err: 0, children: (result.children ?? []) as string[] }
  return { err: 0 }
}
