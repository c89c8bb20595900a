import { ErrorCode, OpCode, parentOf, readWhoAmIResponse, type Reader, type Writer } from '@zabra/protocol'
import { EMPTY } from './call-options.ts'
import { toClientPath } from './chroot.ts'
import { connectionLossError, errorFromCode, otherVersion, ZooKeeperError } from './errors.ts'
import type {
  AmbiguityResolver,
  Operation,
  PendingRequest,
  RequestArguments,
} from './session/pending-request.ts'
import { readOrderedStat, readStat } from './stat.ts'
import type { ACL, Bytes, Ordered, Stat } from './types.ts'

const requestPath = ({ path }: PendingRequest): string => path
const always = (): boolean => true
const never = (): boolean => false

function writePath(w: Writer, request: RequestArguments): void {
  w.string(request.path)
}

export function writePathAndVersion(w: Writer, request: RequestArguments): void {
  w.string(request.path)
  w.int(request.intArgument)
}

export function writePathAndWatch(w: Writer, request: RequestArguments): void {
  w.string(request.path)
  w.bool(request.watch)
}

function writeAcl(w: Writer, acl: readonly ACL[]): void {
  w.int(acl.length)
  for (const { perms, scheme, id } of acl) {
    w.int(perms)
    w.string(scheme)
    w.string(id)
  }
}

function readAcl(r: Reader): ACL[] {
  const count = r.vectorLength()
  const acl: ACL[] = []
  for (let i = 0; i < count; i++) {
    acl.push({ perms: r.int(), scheme: r.string() ?? '', id: r.string() ?? '' })
  }
  return acl
}

export function readNames(r: Reader): string[] {
  const count = r.vectorLength()
  const names: string[] = []
  for (let i = 0; i < count; i++) names.push(r.string() ?? '')
  return names
}

/** The parameters of a create other than path and data. */
export interface CreateParams {
  readonly acl: readonly ACL[]
  readonly isIdempotent: boolean
  readonly isEphemeral: boolean
  readonly isSequential: boolean
  /** The caller resolves lost replies itself, by searching for the protection prefix. */
  readonly isProtected: boolean
}

const defineCreate = (name: string, type: number, ttl: boolean): Operation => ({
  name,
  opCode: type,
  isWrite: true,
  encode(w, request) {
    w.string(request.path)
    w.buffer(request.data)
    writeAcl(w, (request.params as CreateParams).acl)
    w.int(request.intArgument)
    if (ttl) w.longNumber(request.ttl)
  },
  decode: (r, request, order) => ({
    path: readPath(r, request),
    stat: readStat(r),
    order,
  }),
  // A retry would create a second sequential znode; `protected` finds the first instead.
  isIdempotent(request) {
    const {
      isSequential: sequential,
      isEphemeral: ephemeral,
      isIdempotent: idempotent,
      isProtected: guarded,
    } = request.params as CreateParams
    return !sequential && !guarded && (ephemeral || idempotent)
  },
  resolveAmbiguous: resolveAmbiguousCreate,
  requiredPath: ({ path }) => parentOf(path),
})

const toResultPath = ({ chroot }: PendingRequest, path: string): string => toClientPath(chroot, path) ?? path

/** Reads the path of a znode that a request has created. */
export const readPath = (r: Reader, request: PendingRequest): string =>
  toResultPath(request, r.string() ?? '')

export const create = defineCreate('create', OpCode.create2, false)
export const createContainer = defineCreate('createContainer', OpCode.createContainer, false)
export const createTtl = defineCreate('createTTL', OpCode.createTTL, true)

/** Returns the operation for a mode: containers and TTL znodes have op codes of their own. */
export const createOperationFor = (mode: string): Operation =>
  mode === 'container' ? createContainer : mode.endsWith('Ttl') ? createTtl : create

export const deleteNode: Operation = {
  name: 'delete',
  opCode: OpCode.delete,
  isWrite: true,
  encode: writePathAndVersion,
  decode: () => undefined,
  isIdempotent: always,
  resolveAmbiguous: resolveAmbiguousDelete,
  explainError: explainVersion,
}

export const exists: Operation = {
  name: 'exists',
  requiredPath: requestPath,
  opCode: OpCode.exists,
  isWrite: false,
  encode: writePathAndWatch,
  decode: (r, _request, order): Stat & Ordered => readOrderedStat(r, order),
  isIdempotent: always,
  recover: (_request, code) => (code === ErrorCode.NONODE ? { value: undefined } : undefined),
}

export const getData: Operation = {
  name: 'getData',
  requiredPath: requestPath,
  opCode: OpCode.getData,
  isWrite: false,
  encode: writePathAndWatch,
  decode(r, _request, order) {
    const data = r.bufferCopy()
    return { data: data ?? EMPTY, isNull: data === null, stat: readStat(r), order }
  },
  isIdempotent: always,
}

export const setData: Operation = {
  name: 'setData',
  requiredPath: requestPath,
  opCode: OpCode.setData,
  isWrite: true,
  encode(w, request) {
    w.string(request.path)
    w.buffer(request.data)
    w.int(request.intArgument)
  },
  decode: (r, _request, order): Stat & Ordered => readOrderedStat(r, order),
  // With a version, a retry fails if the first try was applied; without one the caller declares the write idempotent.
  isIdempotent: (request) => request.intArgument !== -1 || request.params === true,
  resolveAmbiguous: resolveAmbiguousSetData,
  explainError: explainVersion,
}

export const getChildren: Operation = {
  name: 'getChildren',
  requiredPath: requestPath,
  opCode: OpCode.getChildren2,
  isWrite: false,
  encode: writePathAndWatch,
  decode: (r, _request, order) => ({ children: readNames(r), stat: readStat(r), order }),
  isIdempotent: always,
}

export const getACL: Operation = {
  name: 'getACL',
  requiredPath: requestPath,
  opCode: OpCode.getACL,
  isWrite: false,
  encode: writePath,
  decode: (r) => ({ acl: readAcl(r), stat: readStat(r) }),
  isIdempotent: always,
}

export const setACL: Operation = {
  name: 'setACL',
  requiredPath: requestPath,
  opCode: OpCode.setACL,
  isWrite: true,
  encode(w, request) {
    w.string(request.path)
    writeAcl(w, (request.params as { acl: readonly ACL[] }).acl)
    w.int(request.intArgument)
  },
  decode: (r, _request, order): Stat & Ordered => readOrderedStat(r, order),
  isIdempotent: (request) => request.intArgument !== -1,
  resolveAmbiguous: resolveAmbiguousSetACL,
  explainError: explainVersion,
}

export const getAllChildrenNumber: Operation = {
  name: 'getAllChildrenNumber',
  requiredPath: requestPath,
  opCode: OpCode.getAllChildrenNumber,
  isWrite: false,
  encode: writePath,
  decode: (r) => r.int(),
  isIdempotent: always,
}

export const getEphemerals: Operation = {
  name: 'getEphemerals',
  opCode: OpCode.getEphemerals,
  isWrite: false,
  encode: writePath,
  // The server matches the prefix as text, so paths outside the chroot may be among the results.
  decode: (r, request) => readNames(r).flatMap((path) => toClientPath(request.chroot, path) ?? []),
  isIdempotent: always,
}

export const sync: Operation = {
  name: 'sync',
  opCode: OpCode.sync,
  isWrite: false,
  encode: writePath,
  decode: () => undefined,
  isIdempotent: always,
}

export const whoAmI: Operation = {
  name: 'whoAmI',
  opCode: OpCode.whoAmI,
  isWrite: false,
  encode() {},
  decode: (r) =>
    (readWhoAmIResponse(r).clientInfo ?? []).map(({ authScheme, user }) => ({
      scheme: authScheme ?? '',
      id: user ?? '',
    })),
  isIdempotent: always,
}

/** The parameters of a reconfiguration; null omits a part. */
export interface ReconfigParams {
  readonly joining: string | null
  readonly leaving: string | null
  readonly members: string | null
  readonly version: bigint
}

export const reconfig: Operation = {
  name: 'reconfig',
  opCode: OpCode.reconfig,
  isWrite: true,
  encode(w, request) {
    const { joining, leaving, members, version } = request.params as ReconfigParams
    w.string(joining)
    w.string(leaving)
    w.string(members)
    w.long(version)
  },
  decode: (r, _request, order) => ({ data: r.bufferCopy() ?? EMPTY, stat: readStat(r), order }),
  isIdempotent: (request) => (request.params as ReconfigParams).version !== -1n,
  resolveAmbiguous: (request, code, resolver) =>
    code === ErrorCode.BADVERSION && rejectAsUnknown(request, code, resolver),
}

// Retries: the error may be the result of the first try having succeeded.

/**
 * The znode is taken as created by the first try if it has our data, and is owned by our session or has never been
 * written.
 */
function resolveAmbiguousCreate(request: PendingRequest, code: number, resolver: AmbiguityResolver): boolean {
  if (code !== ErrorCode.NODEEXISTS) return false
  return takeOver(request, resolver, async () => {
    const { isEphemeral } = request.params as CreateParams
    const { data, stat, order } = await readNode(request, resolver)
    const isOwn = isEphemeral ? stat.ephemeralOwner === resolver.sessionId : stat.version === 0
    if (isOwn && sameBytes(data, request.data))
      return { path: toResultPath(request, request.path), stat, order }
    // The znode may have been ours and changed since, or created by another client after ours was deleted.
    return errorFromCode(code, { ...resolver.errorContext(request), maybeApplied: true })
  })
}

function resolveAmbiguousDelete(request: PendingRequest, code: number, resolver: AmbiguityResolver): boolean {
  if (code !== ErrorCode.NONODE) return false
  // With a version, it matters which client deleted the znode.
  if (request.intArgument !== -1 && request.params !== true) return rejectAsUnknown(request, code, resolver)
  resolver.resolveTakenOver(request, undefined)
  return true
}

/** The expected next version with our data is very likely our write; only `idempotent` makes that certain. */
function resolveAmbiguousSetData(
  request: PendingRequest,
  code: number,
  resolver: AmbiguityResolver,
): boolean {
  if (code !== ErrorCode.BADVERSION) return false
  return takeOver(request, resolver, async () => {
    const { data, stat, order } = await readNode(request, resolver)
    const isNextVersion = stat.version === request.intArgument + 1
    // The next version with other data was written by another client; a later version may follow ours.
    const rejection = errorFromCode(code, {
      ...resolver.errorContext(request),
      maybeApplied: !isNextVersion,
    })
    if (!isNextVersion || !sameBytes(data, request.data)) return rejection
    if (request.params === true) return { ...stat, order }
    return unknownOutcomeError(request, resolver, rejection)
  })
}

function resolveAmbiguousSetACL(request: PendingRequest, code: number, resolver: AmbiguityResolver): boolean {
  if (code !== ErrorCode.BADVERSION) return false
  return takeOver(request, resolver, async () => {
    const rejection = errorFromCode(code, resolver.errorContext(request))
    const stat = await lookUp<Stat | undefined>(exists, request, resolver)
    const isOurs = stat !== undefined && stat.aversion === request.intArgument + 1
    return isOurs ? unknownOutcomeError(request, resolver, rejection) : rejection
  })
}

/** Rejects a write that expected another version, and says which one the znode has, read after the reply. */
function explainVersion(request: PendingRequest, code: number, resolver: AmbiguityResolver): boolean {
  if (code !== ErrorCode.BADVERSION) return false
  return takeOver(request, resolver, async () => {
    const stat = await lookUp<Stat | undefined>(exists, request, resolver).catch(() => undefined)
    const present = request.operation === setACL ? stat?.aversion : stat?.version
    return errorFromCode(code, resolver.errorContext(request), 0n, otherVersion(request.intArgument, present))
  })
}

/**
 * Settles a request later, with what `decide` resolves to: an error rejects it, any other value is its result. If `decide` rejects, the outcome
 * of the request is unknown.
 */
function takeOver(
  request: PendingRequest,
  resolver: AmbiguityResolver,
  decide: () => Promise<unknown>,
): true {
  decide().then(
    (outcome) => {
      if (outcome instanceof ZooKeeperError) resolver.rejectTakenOver(request, outcome)
      else resolver.resolveTakenOver(request, outcome)
    },
    (cause: unknown) => resolver.rejectTakenOver(request, unknownOutcomeError(request, resolver, cause)),
  )
  return true
}

/** Rejects with an unknown outcome: the first try may or may not have been applied. */
function rejectAsUnknown(request: PendingRequest, code: number, resolver: AmbiguityResolver): boolean {
  resolver.rejectTakenOver(
    request,
    unknownOutcomeError(request, resolver, errorFromCode(code, resolver.errorContext(request))),
  )
  return true
}

const unknownOutcomeError = (
  request: PendingRequest,
  resolver: AmbiguityResolver,
  cause: unknown,
): ZooKeeperError =>
  connectionLossError({
    ...resolver.errorContext(request),
    maybeApplied: true,
    reason: 'the connection broke before the reply arrived, and the current state does not show the outcome',
    cause,
  })

/** Reads the znode of a request. */
function lookUp<T>(operation: Operation, { path }: PendingRequest, resolver: AmbiguityResolver): Promise<T> {
  const read = resolver.acquire(operation)
  read.path = path
  return resolver.submit(read)
}

const readNode = (
  request: PendingRequest,
  resolver: AmbiguityResolver,
): Promise<{ data: Bytes; stat: Stat } & Ordered> => lookUp(getData, request, resolver)

const sameBytes = (a: Bytes, b: Bytes | null): boolean =>
  a.length === (b?.length ?? 0) && a.every((byte, i) => byte === b![i])

/** The watch that a request registers. */
export interface WatchRegistration {
  /** The server replied, or the request failed for good. `isAbandoned`: the caller has given up meanwhile. */
  onRegistrationReply(isRegistered: boolean, isAbandoned: boolean, nodeExists: boolean): void
}

const registrationCallbacks: Pick<Operation, 'onReply' | 'onDrop'> = {
  onReply: (request: PendingRequest, code: number): void =>
    (request.params as WatchRegistration).onRegistrationReply(code === 0, request.isAbandoned, code === 0),
  onDrop: (request: PendingRequest): void =>
    (request.params as WatchRegistration).onRegistrationReply(false, request.isAbandoned, false),
}

export const addWatch: Operation = {
  name: 'addWatch',
  opCode: OpCode.addWatch,
  isWrite: false,
  encode: writePathAndVersion,
  decode: () => undefined,
  isIdempotent: always,
  ...registrationCallbacks,
}

export const watchData: Operation = { ...getData, ...registrationCallbacks }
export const watchChildren: Operation = { ...getChildren, ...registrationCallbacks }
/** An exists watch on a missing znode fires on its creation. */
export const watchExists: Operation = {
  ...exists,
  ...registrationCallbacks,
  decode: (r, _request, order): { stat: Stat } & Ordered => ({ stat: readStat(r), order }),
  recover: (_request, code, order) => (code === ErrorCode.NONODE ? { value: { order } } : undefined),
  onReply: (request, code) =>
    (request.params as WatchRegistration).onRegistrationReply(
      code === 0 || code === ErrorCode.NONODE,
      request.isAbandoned,
      code === 0,
    ),
}

export const removeWatches: Operation = {
  name: 'removeWatches',
  opCode: OpCode.removeWatches,
  isWrite: false,
  encode: writePathAndVersion,
  decode: () => undefined,
  isIdempotent: never,
}
