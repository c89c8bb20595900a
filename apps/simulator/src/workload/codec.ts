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

/** The member of `Request` with an operation. */
type RequestOf<Op extends Request['op'], R extends Request = Request> = R extends { op: infer Ops }
  ? Op extends Ops
    ? R
    : never
  : never

/** How an operation is sent, and how the body of its reply is read; by default the body is empty. */
interface OperationCodec<R> {
  readonly opCode: number | ((request: R) => number)
  readonly write: (w: Writer, request: R) => void
  readonly read?: (r: Reader) => Omit<Result, 'err'>
}

const writePath = (w: Writer, { path }: { readonly path: string }): void => w.string(path)
const writeNothing = (): void => {}
const writeRead = (w: Writer, { path, watch }: { readonly path: string; readonly watch: boolean }): void => {
  w.string(path)
  w.bool(watch)
}
const writeWatches = (w: Writer, { path, watches }: RequestOf<'removeWatches'>): void =>
  writeRemoveWatchesRequest(w, { path, type: watcherTypes[watches] })

const codecs: { readonly [Op in Request['op']]: OperationCodec<RequestOf<Op>> } = {
  create: {
    opCode: ({ mode }) =>
      mode === 'container' ? OpCode.createContainer : mode === 'ttl' ? OpCode.createTTL : OpCode.create2,
    write(w, { path, data, mode, acl = 'open' }) {
      const body = { path, data: encoder.encode(data), acl: aclOf(acl), flags: flags[mode] }
      if (mode === 'ttl') writeCreateTTLRequest(w, { ...body, ttl: TTL_MS })
      else writeCreateRequest(w, body)
    },
    read(r) {
      const { path, stat } = readCreate2Response(r)
      return { path: path!, stat: plainStat(stat) }
    },
  },
  delete: { opCode: OpCode.delete, write: writeDeleteRequest },
  set: {
    opCode: OpCode.setData,
    write: (w, request) => writeSetDataRequest(w, { ...request, data: encoder.encode(request.data) }),
    read: (r) => ({ stat: plainStat(readSetDataResponse(r).stat) }),
  },
  check: {
    opCode: OpCode.check,
    write() {
      throw new Error('A check is a part of a transaction only')
    },
  },
  multi: { opCode: OpCode.multi, write: (w, { parts }) => writeMultiRequest(w, parts.map(operationOf)) },
  multiRead: { opCode: OpCode.multiRead, write: (w, { parts }) => writeMultiRequest(w, parts.map(readOf)) },
  get: {
    opCode: OpCode.getData,
    write: writeRead,
    read(r) {
      const { data, stat } = readGetDataResponse(r)
      return { data: text(data), stat: plainStat(stat) }
    },
  },
  exists: { opCode: OpCode.exists, write: writeRead, read: (r) => ({ stat: plainStat(readStat(r)) }) },
  children: {
    opCode: OpCode.getChildren2,
    write: writeRead,
    read(r) {
      const { children, stat } = readGetChildren2Response(r)
      return { children: (children ?? []) as string[], stat: plainStat(stat) }
    },
  },
  setAcl: {
    opCode: OpCode.setACL,
    write: (w, request) => writeSetACLRequest(w, { ...request, acl: aclOf(request.acl) }),
    read: (r) => ({ stat: plainStat(readSetACLResponse(r).stat) }),
  },
  getAcl: {
    opCode: OpCode.getACL,
    write: writePath,
    read(r) {
      const { acl, stat } = readGetACLResponse(r)
      return { acl: formatAcl(acl), stat: plainStat(stat) }
    },
  },
  ephemerals: {
    opCode: OpCode.getEphemerals,
    write: writePath,
    read: (r) => ({ children: (readGetEphemeralsResponse(r).ephemerals ?? []) as string[] }),
  },
  count: {
    opCode: OpCode.getAllChildrenNumber,
    write: writePath,
    read: (r) => ({ count: readGetAllChildrenNumberResponse(r).totalNumber }),
  },
  addWatch: {
    opCode: OpCode.addWatch,
    write: (w, { path, recursive }) =>
      writeAddWatchRequest(w, {
        path,
        mode: recursive ? WatchMode.PERSISTENT_RECURSIVE : WatchMode.PERSISTENT,
      }),
  },
  removeWatches: { opCode: OpCode.removeWatches, write: writeWatches },
  checkWatches: { opCode: OpCode.checkWatches, write: writeWatches },
  whoAmI: {
    opCode: OpCode.whoAmI,
    write: writeNothing,
    read(r) {
      const { clientInfo } = readWhoAmIResponse(r)
      return { identities: (clientInfo ?? []).map(({ authScheme, user }) => `${authScheme}:${user}`) }
    },
  },
  sync: { opCode: OpCode.sync, write: writePath },
  close: { opCode: OpCode.closeSession, write: writeNothing },
  reconfig: {
    opCode: OpCode.reconfig,
    write: (w, { joining, leaving, members, from }) =>
      writeReconfigRequest(w, {
        joiningServers: joining || null,
        leavingServers: leaving || null,
        newMembers: members ?? null,
        curConfigId: BigInt(from),
      }),
    read: (r) => ({ data: text(readGetDataResponse(r).data) }),
  },
}

const codecOf = ({ op }: Request): OperationCodec<Request> => codecs[op] as OperationCodec<Request>

export function opCodeOf(request: Request): number {
  const { opCode } = codecOf(request)
  return typeof opCode === 'number' ? opCode : opCode(request)
}

export const writeRequest = (w: Writer, request: Request): void => codecOf(request).write(w, request)

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
  return { result: { err: 0, ...codecOf(request).read?.(r) }, results: [] }
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
