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
import { copyOf } from './bytes.ts'
import { toClient } from './chroot.ts'
import { connectionLoss, errorOf, type ZooKeeperError } from './errors.ts'
import type { Requests } from './session/requests.ts'
import { zxidOf } from './session/verdicts.ts'
import type { Kind, Slot } from './session/slot.ts'
import { readOrderedStat, readStat } from './stat.ts'
import type { ACL, Bytes, Ordered, Stat } from './types.ts'

const ownPath = ({ path }: Slot): string => path
const always = (): boolean => true
const never = (): boolean => false
const NOTHING: Bytes = new Uint8Array(0)

const copied = (data: Bytes | null): Bytes => (data === null ? NOTHING : copyOf(data))

function writePath(w: Writer, slot: Slot): void {
  w.string(slot.path)
}

function writePathAndVersion(w: Writer, slot: Slot): void {
  w.string(slot.path)
  w.int(slot.number)
}

function writePathAndWatch(w: Writer, slot: Slot): void {
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
export interface CreateExtra {
  readonly acl: readonly ACL[]
  readonly idempotent: boolean
  readonly ephemeral: boolean
  readonly sequential: boolean
  /** Somebody else looks for what a lost reply may have told of. */
  readonly guarded: boolean
}

const createKind = (name: string, type: number, ttl: boolean): Kind => ({
  name,
  type,
  commits: true,
  encode(w, slot) {
    w.string(slot.path)
    w.buffer(slot.data)
    writeAcl(w, (slot.extra as CreateExtra).acl)
    w.int(slot.number)
    if (ttl) w.longNumber(slot.ttl)
  },
  decode: (r, slot, order) => ({ path: clientPath(slot, r.string() ?? ''), stat: readStat(r), order }),
  // A second sequential znode would be one too many; `protected` finds the first instead.
  repeatable(slot) {
    const { sequential, ephemeral, idempotent, guarded } = slot.extra as CreateExtra
    return !sequential && !guarded && (ephemeral || idempotent)
  },
  interpret: interpretCreate,
  needs: ({ path }) => parentOf(path),
})

const clientPath = (slot: Slot, path: string): string => toClient(slot.root, path) ?? path

export const create = createKind('create', OpCode.create2, false)
export const createContainer = createKind('createContainer', OpCode.createContainer, false)
export const createTtl = createKind('createTTL', OpCode.createTTL, true)

/** The request for a mode, which has an op code of its own for containers and times to live. */
export const kindOfCreate = (mode: string): Kind =>
  mode === 'container' ? createContainer : mode.endsWith('Ttl') ? createTtl : create

export const remove: Kind = {
  name: 'delete',
  type: OpCode.delete,
  commits: true,
  encode: writePathAndVersion,
  decode: () => undefined,
  repeatable: always,
  interpret: interpretDelete,
}

export const exists: Kind = {
  name: 'exists',
  needs: ownPath,
  type: OpCode.exists,
  commits: false,
  encode: writePathAndWatch,
  decode: (r, _slot, order): Stat & Ordered => readOrderedStat(r, order),
  repeatable: always,
  instead: (_slot, code) => (code === ErrorCode.NONODE ? { value: undefined } : undefined),
}

export const getData: Kind = {
  name: 'getData',
  needs: ownPath,
  type: OpCode.getData,
  commits: false,
  encode: writePathAndWatch,
  decode(r, _slot, order) {
    const data = r.copy()
    return { data: data ?? NOTHING, isNull: data === null, stat: readStat(r), order }
  },
  repeatable: always,
}

export const setData: Kind = {
  name: 'setData',
  needs: ownPath,
  type: OpCode.setData,
  commits: true,
  encode(w, slot) {
    w.string(slot.path)
    w.buffer(slot.data)
    w.int(slot.number)
  },
  decode: (r, _slot, order): Stat & Ordered => readOrderedStat(r, order),
  // With a version the second try finds it used up; without one the caller must say that the value is absolute.
  repeatable: (slot) => slot.number !== -1 || slot.extra === true,
  interpret: interpretSetData,
}

export const getChildren: Kind = {
  name: 'getChildren',
  needs: ownPath,
  type: OpCode.getChildren2,
  commits: false,
  encode: writePathAndWatch,
  decode: (r, _slot, order) => ({ children: readNames(r), stat: readStat(r), order }),
  repeatable: always,
}

export const getACL: Kind = {
  name: 'getACL',
  needs: ownPath,
  type: OpCode.getACL,
  commits: false,
  encode: writePath,
  decode: (r) => ({ acl: readAcl(r), stat: readStat(r) }),
  repeatable: always,
}

export const setACL: Kind = {
  name: 'setACL',
  needs: ownPath,
  type: OpCode.setACL,
  commits: true,
  encode(w, slot) {
    w.string(slot.path)
    writeAcl(w, (slot.extra as { acl: readonly ACL[] }).acl)
    w.int(slot.number)
  },
  decode: (r, _slot, order): Stat & Ordered => readOrderedStat(r, order),
  repeatable: (slot) => slot.number !== -1,
  interpret: interpretSetACL,
}

export const getAllChildrenNumber: Kind = {
  name: 'getAllChildrenNumber',
  needs: ownPath,
  type: OpCode.getAllChildrenNumber,
  commits: false,
  encode: writePath,
  decode: (r) => r.int(),
  repeatable: always,
}

export const getEphemerals: Kind = {
  name: 'getEphemerals',
  type: OpCode.getEphemerals,
  commits: false,
  encode: writePath,
  // The prefix is a plain prefix of text, so neighbours of the root may be among them.
  decode: (r, slot) => readNames(r).flatMap((path) => toClient(slot.root, path) ?? []),
  repeatable: always,
}

export const sync: Kind = {
  name: 'sync',
  type: OpCode.sync,
  commits: false,
  encode: writePath,
  decode: () => undefined,
  repeatable: always,
}

const TYPE_OF_FAILED = OpCode.error

function encodeMulti(w: Writer, slot: Slot): void {
  writeMultiRequest(w, slot.extra as MultiOperation[])
}

export interface MultiAnswer {
  readonly results: readonly MultiResult[]
  /** An earlier try may have been carried out. */
  readonly ambiguous: boolean
}

/** Results as they came; which operation made a multi fail is for the caller to say. */
function decodeMulti(r: Reader, slot: Slot): MultiAnswer {
  const results = readMultiResponse(r).map((result) =>
    result.type === OpCode.getData ? { ...result, data: copied(result.data) } : result,
  )
  return { results, ambiguous: slot.ambiguous }
}

export const multi: Kind = {
  name: 'multi',
  type: OpCode.multi,
  commits: true,
  encode: encodeMulti,
  decode: decodeMulti,
  // Safe when having been carried out once makes it fail the second time: a version that it uses up.
  repeatable: (slot) =>
    (slot.extra as MultiOperation[]).some(
      (operation) =>
        (operation.type === OpCode.delete || operation.type === OpCode.setData) && operation.version !== -1,
    ),
}

export const multiRead: Kind = {
  name: 'multiRead',
  type: OpCode.multiRead,
  commits: false,
  encode: encodeMulti,
  decode: decodeMulti,
  repeatable: always,
}

export const isFailure = (result: MultiResult): result is MultiResult & { type: typeof TYPE_OF_FAILED } =>
  result.type === TYPE_OF_FAILED

/** A transaction without effect. Its result is the zxid that it got. */
export const barrier: Kind = {
  name: 'syncCommitted',
  type: OpCode.multi,
  commits: true,
  encode: encodeMulti,
  decode: (r) => zxidOf(r),
  repeatable: always,
}

export const whoAmI: Kind = {
  name: 'whoAmI',
  type: OpCode.whoAmI,
  commits: false,
  encode() {},
  decode: (r) =>
    (readWhoAmIResponse(r).clientInfo ?? []).map(({ authScheme, user }) => ({
      scheme: authScheme ?? '',
      user: user ?? '',
    })),
  repeatable: always,
}

/** What a reconfiguration asks for; null leaves a part out. */
export interface ReconfigExtra {
  readonly joining: string | null
  readonly leaving: string | null
  readonly members: string | null
  readonly version: bigint
}

export const reconfig: Kind = {
  name: 'reconfig',
  type: OpCode.reconfig,
  commits: true,
  encode(w, slot) {
    const { joining, leaving, members, version } = slot.extra as ReconfigExtra
    w.string(joining)
    w.string(leaving)
    w.string(members)
    w.long(version)
  },
  decode: (r, _slot, order) => ({ data: r.copy() ?? NOTHING, stat: readStat(r), order }),
  repeatable: (slot) => (slot.extra as ReconfigExtra).version !== -1n,
  interpret: (slot, code, requests) => code === ErrorCode.BADVERSION && unclear(slot, code, requests),
}

// Second tries: an error may come from the first having succeeded.

/** The znode is ours if it is what we would have made: it has our data, and is our session's or has never been written. */
function interpretCreate(slot: Slot, code: number, requests: Requests): boolean {
  if (code !== ErrorCode.NODEEXISTS) return false
  const { ephemeral } = slot.extra as CreateExtra
  read(slot, requests).then(
    ({ data, stat, order }) => {
      const own = ephemeral ? stat.ephemeralOwner === requests.sessionId : stat.version === 0
      if (own && sameBytes(data, slot.data)) {
        requests.resolveLater(slot, { path: clientPath(slot, slot.path), stat, order })
      } else {
        // What is there now may have been ours once, or have come after ours was deleted.
        requests.rejectLater(slot, errorOf(code, { ...requests.facts(slot), maybeApplied: true }))
      }
    },
    (cause: unknown) => requests.rejectLater(slot, lost(slot, requests, cause)),
  )
  return true
}

function interpretDelete(slot: Slot, code: number, requests: Requests): boolean {
  if (code !== ErrorCode.NONODE) return false
  // With a version it matters who deleted it.
  if (slot.number !== -1 && slot.extra !== true) return unclear(slot, code, requests)
  requests.resolveLater(slot, undefined)
  return true
}

/** The version that we would have made, with our data, is very likely ours; only the caller can know that it must be. */
function interpretSetData(slot: Slot, code: number, requests: Requests): boolean {
  if (code !== ErrorCode.BADVERSION) return false
  read(slot, requests).then(
    ({ data, stat, order }) => {
      const next = stat.version === slot.number + 1
      // The next version with other data is somebody else's; a later one may stand on ours.
      const refused = errorOf(code, { ...requests.facts(slot), maybeApplied: !next })
      if (!next || !sameBytes(data, slot.data)) requests.rejectLater(slot, refused)
      else if (slot.extra === true) requests.resolveLater(slot, { ...stat, order })
      else requests.rejectLater(slot, lost(slot, requests, refused))
    },
    (cause: unknown) => requests.rejectLater(slot, lost(slot, requests, cause)),
  )
  return true
}

function interpretSetACL(slot: Slot, code: number, requests: Requests): boolean {
  if (code !== ErrorCode.BADVERSION) return false
  const refused = errorOf(code, requests.facts(slot))
  const look = requests.take(exists)
  look.path = slot.path
  requests.submit<Stat | undefined>(look).then(
    (stat) => {
      const ours = stat !== undefined && stat.aversion === slot.number + 1
      requests.rejectLater(slot, ours ? lost(slot, requests, refused) : refused)
    },
    (cause: unknown) => requests.rejectLater(slot, lost(slot, requests, cause)),
  )
  return true
}

/** Nobody can tell whether the first try was carried out. */
function unclear(slot: Slot, code: number, requests: Requests): boolean {
  requests.rejectLater(slot, lost(slot, requests, errorOf(code, requests.facts(slot))))
  return true
}

const lost = (slot: Slot, requests: Requests, cause: unknown): ZooKeeperError =>
  connectionLoss({
    ...requests.facts(slot),
    maybeApplied: true,
    reason: 'the connection broke before the reply came, and what is there now does not tell',
    cause,
  })

function read(slot: Slot, requests: Requests): Promise<{ data: Bytes; stat: Stat } & Ordered> {
  const look = requests.take(getData)
  look.path = slot.path
  return requests.submit(look)
}

const sameBytes = (a: Bytes, b: Bytes | null): boolean =>
  a.length === (b?.length ?? 0) && a.every((byte, i) => byte === b![i])

/** Whoever waits for a watch to stand. */
export interface Arming {
  /** The request was answered, or dropped for good. `abandoned`: the caller has gone meanwhile. */
  answered(armed: boolean, abandoned: boolean, found: boolean): void
}

const arming = {
  answered: (slot: Slot, code: number): void =>
    (slot.extra as Arming).answered(code === 0, slot.abandoned, code === 0),
  dropped: (slot: Slot): void => (slot.extra as Arming).answered(false, slot.abandoned, false),
}

export const addWatch: Kind = {
  name: 'addWatch',
  type: OpCode.addWatch,
  commits: false,
  encode: writePathAndVersion,
  decode: () => undefined,
  repeatable: always,
  ...arming,
}

export const watchData: Kind = { ...getData, ...arming }
export const watchChildren: Kind = { ...getChildren, ...arming }
/** A watch on what is not there waits for its creation. */
export const watchExists: Kind = {
  ...exists,
  ...arming,
  decode: (r, _slot, order): { stat: Stat } & Ordered => ({ stat: readStat(r), order }),
  instead: (_slot, code, order) => (code === ErrorCode.NONODE ? { value: { order } } : undefined),
  answered: (slot, code) =>
    (slot.extra as Arming).answered(code === 0 || code === ErrorCode.NONODE, slot.abandoned, code === 0),
}

export const removeWatches: Kind = {
  name: 'removeWatches',
  type: OpCode.removeWatches,
  commits: false,
  encode: writePathAndVersion,
  decode: () => undefined,
  repeatable: never,
}
