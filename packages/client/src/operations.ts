import {
  ErrorCode,
  OpCode,
  parentOf,
  readWhoAmIResponse,
  writeMultiRequest,
  readMultiResponse,
  type MultiOperation,
  type MultiResult,
  type Reader,
  type Writer,
} from '@zabra/protocol'
import { copyBytes } from './bytes.ts'
import { toClientPath } from './chroot.ts'
import { connectionLossError, errorFromCode, type ZooKeeperError } from './errors.ts'
import type { RequestDispatcher } from './session/request-dispatcher.ts'
import { readReplyZxid } from './session/error-codes.ts'
import type { Operation, PendingRequest } from './session/pending-request.ts'
import { readOrderedStat, readStat } from './stat.ts'
import type { ACL, Bytes, Ordered, Stat } from './types.ts'

const requestPath = ({ path }: PendingRequest): string => path
const always = (): boolean => true
const never = (): boolean => false
const EMPTY: Bytes = new Uint8Array(0)

const copyOrEmpty = (data: Bytes | null): Bytes => (data === null ? EMPTY : copyBytes(data))

function writePath(w: Writer, slot: PendingRequest): void {
  w.string(slot.path)
}

function writePathAndVersion(w: Writer, slot: PendingRequest): void {
  w.string(slot.path)
  w.int(slot.intArgument)
}

function writePathAndWatch(w: Writer, slot: PendingRequest): void {
  w.string(slot.path)
  w.bool(slot.watch)
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

function readNames(r: Reader): string[] {
  const count = r.vectorLength()
  const names: string[] = []
  for (let i = 0; i < count; i++) names.push(r.string() ?? '')
  return names
}

/** What a create needs beside path and data. */
export interface CreateParams {
  readonly acl: readonly ACL[]
  readonly isIdempotent: boolean
  readonly isEphemeral: boolean
  readonly isSequential: boolean
  /** Somebody else looks for what a lost reply may have told of. */
  readonly isProtected: boolean
}

const defineCreate = (name: string, type: number, ttl: boolean): Operation => ({
  name,
  opCode: type,
  isWrite: true,
  encode(w, slot) {
    w.string(slot.path)
    w.buffer(slot.data)
    writeAcl(w, (slot.params as CreateParams).acl)
    w.int(slot.intArgument)
    if (ttl) w.longNumber(slot.ttl)
  },
  decode: (r, slot, order) => ({ path: toResultPath(slot, r.string() ?? ''), stat: readStat(r), order }),
  // A second sequential znode would be one too many; `protected` finds the first instead.
  isIdempotent(slot) {
    const {
      isSequential: sequential,
      isEphemeral: ephemeral,
      isIdempotent: idempotent,
      isProtected: guarded,
    } = slot.params as CreateParams
    return !sequential && !guarded && (ephemeral || idempotent)
  },
  resolveAmbiguous: resolveAmbiguousCreate,
  requiredPath: ({ path }) => parentOf(path),
})

const toResultPath = (slot: PendingRequest, path: string): string => toClientPath(slot.chroot, path) ?? path

export const create = defineCreate('create', OpCode.create2, false)
export const createContainer = defineCreate('createContainer', OpCode.createContainer, false)
export const createTtl = defineCreate('createTTL', OpCode.createTTL, true)

/** The request for a mode, which has an op code of its own for containers and times to live. */
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
}

export const exists: Operation = {
  name: 'exists',
  requiredPath: requestPath,
  opCode: OpCode.exists,
  isWrite: false,
  encode: writePathAndWatch,
  decode: (r, _slot, order): Stat & Ordered => readOrderedStat(r, order),
  isIdempotent: always,
  recover: (_slot, code) => (code === ErrorCode.NONODE ? { value: undefined } : undefined),
}

export const getData: Operation = {
  name: 'getData',
  requiredPath: requestPath,
  opCode: OpCode.getData,
  isWrite: false,
  encode: writePathAndWatch,
  decode(r, _slot, order) {
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
  encode(w, slot) {
    w.string(slot.path)
    w.buffer(slot.data)
    w.int(slot.intArgument)
  },
  decode: (r, _slot, order): Stat & Ordered => readOrderedStat(r, order),
  // With a version the second try finds it used up; without one the caller must say that the value is absolute.
  isIdempotent: (slot) => slot.intArgument !== -1 || slot.params === true,
  resolveAmbiguous: resolveAmbiguousSetData,
}

export const getChildren: Operation = {
  name: 'getChildren',
  requiredPath: requestPath,
  opCode: OpCode.getChildren2,
  isWrite: false,
  encode: writePathAndWatch,
  decode: (r, _slot, order) => ({ children: readNames(r), stat: readStat(r), order }),
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
  encode(w, slot) {
    w.string(slot.path)
    writeAcl(w, (slot.params as { acl: readonly ACL[] }).acl)
    w.int(slot.intArgument)
  },
  decode: (r, _slot, order): Stat & Ordered => readOrderedStat(r, order),
  isIdempotent: (slot) => slot.intArgument !== -1,
  resolveAmbiguous: resolveAmbiguousSetACL,
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
  // The prefix is a plain prefix of text, so neighbours of the root may be among them.
  decode: (r, slot) => readNames(r).flatMap((path) => toClientPath(slot.chroot, path) ?? []),
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

const ERROR_RESULT = OpCode.error

function encodeMulti(w: Writer, slot: PendingRequest): void {
  writeMultiRequest(w, slot.params as MultiOperation[])
}

export interface MultiReply {
  readonly results: readonly MultiResult[]
  /** An earlier try may have been carried out. */
  readonly isAmbiguous: boolean
}

/** Results as they came; which operation made a multi fail is for the caller to say. */
function decodeMulti(r: Reader, slot: PendingRequest): MultiReply {
  const results = readMultiResponse(r).map((result) =>
    result.type === OpCode.getData ? { ...result, data: copyOrEmpty(result.data) } : result,
  )
  return { results, isAmbiguous: slot.isAmbiguous }
}

export const multi: Operation = {
  name: 'multi',
  opCode: OpCode.multi,
  isWrite: true,
  encode: encodeMulti,
  decode: decodeMulti,
  // Safe when having been carried out once makes it fail the second time: a version that it uses up.
  isIdempotent: (slot) =>
    (slot.params as MultiOperation[]).some(
      (operation) =>
        (operation.type === OpCode.delete || operation.type === OpCode.setData) && operation.version !== -1,
    ),
}

export const multiRead: Operation = {
  name: 'multiRead',
  opCode: OpCode.multiRead,
  isWrite: false,
  encode: encodeMulti,
  decode: decodeMulti,
  isIdempotent: always,
}

export const isErrorResult = (result: MultiResult): result is MultiResult & { type: typeof ERROR_RESULT } =>
  result.type === ERROR_RESULT

/** A transaction without effect. Its result is the zxid that it got. */
export const syncCommitted: Operation = {
  name: 'syncCommitted',
  opCode: OpCode.multi,
  isWrite: true,
  encode: encodeMulti,
  decode: (r) => readReplyZxid(r),
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
      user: user ?? '',
    })),
  isIdempotent: always,
}

/** What a reconfiguration asks for; null leaves a part out. */
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
  encode(w, slot) {
    const { joining, leaving, members, version } = slot.params as ReconfigParams
    w.string(joining)
    w.string(leaving)
    w.string(members)
    w.long(version)
  },
  decode: (r, _slot, order) => ({ data: r.bufferCopy() ?? EMPTY, stat: readStat(r), order }),
  isIdempotent: (slot) => (slot.params as ReconfigParams).version !== -1n,
  resolveAmbiguous: (slot, code, requests) =>
    code === ErrorCode.BADVERSION && rejectAsUnknown(slot, code, requests),
}

// Second tries: an error may come from the first having succeeded.

/** The znode is ours if it is what we would have made: it has our data, and is our session's or has never been written. */
function resolveAmbiguousCreate(slot: PendingRequest, code: number, requests: RequestDispatcher): boolean {
  if (code !== ErrorCode.NODEEXISTS) return false
  const { isEphemeral: ephemeral } = slot.params as CreateParams
  readNode(slot, requests).then(
    ({ data, stat, order }) => {
      const own = ephemeral ? stat.ephemeralOwner === requests.sessionId : stat.version === 0
      if (own && sameBytes(data, slot.data)) {
        requests.resolveTakenOver(slot, { path: toResultPath(slot, slot.path), stat, order })
      } else {
        // What is there now may have been ours once, or have come after ours was deleted.
        requests.rejectTakenOver(
          slot,
          errorFromCode(code, { ...requests.errorContext(slot), maybeApplied: true }),
        )
      }
    },
    (cause: unknown) => requests.rejectTakenOver(slot, unknownOutcomeError(slot, requests, cause)),
  )
  return true
}

function resolveAmbiguousDelete(slot: PendingRequest, code: number, requests: RequestDispatcher): boolean {
  if (code !== ErrorCode.NONODE) return false
  // With a version it matters who deleted it.
  if (slot.intArgument !== -1 && slot.params !== true) return rejectAsUnknown(slot, code, requests)
  requests.resolveTakenOver(slot, undefined)
  return true
}

/** The version that we would have made, with our data, is very likely ours; only the caller can know that it must be. */
function resolveAmbiguousSetData(slot: PendingRequest, code: number, requests: RequestDispatcher): boolean {
  if (code !== ErrorCode.BADVERSION) return false
  readNode(slot, requests).then(
    ({ data, stat, order }) => {
      const next = stat.version === slot.intArgument + 1
      // The next version with other data is somebody else's; a later one may stand on ours.
      const refused = errorFromCode(code, { ...requests.errorContext(slot), maybeApplied: !next })
      if (!next || !sameBytes(data, slot.data)) requests.rejectTakenOver(slot, refused)
      else if (slot.params === true) requests.resolveTakenOver(slot, { ...stat, order })
      else requests.rejectTakenOver(slot, unknownOutcomeError(slot, requests, refused))
    },
    (cause: unknown) => requests.rejectTakenOver(slot, unknownOutcomeError(slot, requests, cause)),
  )
  return true
}

function resolveAmbiguousSetACL(slot: PendingRequest, code: number, requests: RequestDispatcher): boolean {
  if (code !== ErrorCode.BADVERSION) return false
  const refused = errorFromCode(code, requests.errorContext(slot))
  const look = requests.acquire(exists)
  look.path = slot.path
  requests.submit<Stat | undefined>(look).then(
    (stat) => {
      const ours = stat !== undefined && stat.aversion === slot.intArgument + 1
      requests.rejectTakenOver(slot, ours ? unknownOutcomeError(slot, requests, refused) : refused)
    },
    (cause: unknown) => requests.rejectTakenOver(slot, unknownOutcomeError(slot, requests, cause)),
  )
  return true
}

/** Nobody can tell whether the first try was carried out. */
function rejectAsUnknown(slot: PendingRequest, code: number, requests: RequestDispatcher): boolean {
  requests.rejectTakenOver(
    slot,
    unknownOutcomeError(slot, requests, errorFromCode(code, requests.errorContext(slot))),
  )
  return true
}

const unknownOutcomeError = (
  slot: PendingRequest,
  requests: RequestDispatcher,
  cause: unknown,
): ZooKeeperError =>
  connectionLossError({
    ...requests.errorContext(slot),
    maybeApplied: true,
    reason: 'the connection broke before the reply came, and what is there now does not tell',
    cause,
  })

function readNode(
  slot: PendingRequest,
  requests: RequestDispatcher,
): Promise<{ data: Bytes; stat: Stat } & Ordered> {
  const look = requests.acquire(getData)
  look.path = slot.path
  return requests.submit(look)
}

const sameBytes = (a: Bytes, b: Bytes | null): boolean =>
  a.length === (b?.length ?? 0) && a.every((byte, i) => byte === b![i])

/** Whoever waits for a watch to stand. */
export interface WatchRegistration {
  /** The request was answered, or dropped for good. `abandoned`: the caller has gone meanwhile. */
  onRegistrationReply(armed: boolean, abandoned: boolean, found: boolean): void
}

const registrationCallbacks = {
  answered: (slot: PendingRequest, code: number): void =>
    (slot.params as WatchRegistration).onRegistrationReply(code === 0, slot.isAbandoned, code === 0),
  dropped: (slot: PendingRequest): void =>
    (slot.params as WatchRegistration).onRegistrationReply(false, slot.isAbandoned, false),
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
/** A watch on what is not there waits for its creation. */
export const watchExists: Operation = {
  ...exists,
  ...registrationCallbacks,
  decode: (r, _slot, order): { stat: Stat } & Ordered => ({ stat: readStat(r), order }),
  recover: (_slot, code, order) => (code === ErrorCode.NONODE ? { value: { order } } : undefined),
  onReply: (slot, code) =>
    (slot.params as WatchRegistration).onRegistrationReply(
      code === 0 || code === ErrorCode.NONODE,
      slot.isAbandoned,
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
