import {
  ErrorCode,
  OpCode,
  Perms,
  readReconfigRequest,
  type ACL,
  type Reader,
  type ReconfigRequest,
  type Writer,
} from '@zabra/protocol'
import type { PendingNode } from '../prepare/pending-tree.ts'
import type { PrepareContext } from '../prepare/prepare-context.ts'
import { reject } from '../prepare/request-error.ts'
import type { WriteRequest } from '../prepare/types.ts'
import { CONFIGURATION_NODE, crcPrefix, type Tree } from '../tree/index.ts'
import type { CheckTxn, SetACLTxn, SetDataTxn, Zxid } from '../types.ts'
import { isValidPath } from '../valid-path.ts'
import {
  readRequestAcl,
  readTxnAcl,
  readTxnPath,
  writeTxnAcl,
  type FieldReader,
  type PathLookup,
} from './fields.ts'
import { defineOperation, type DecodedWrite } from './types.ts'

interface DecodedSetData extends DecodedWrite {
  readonly data: Uint8Array | null
  readonly version: number
}

interface DecodedSetAcl extends DecodedWrite {
  readonly acl: readonly ACL[] | null
  readonly version: number
}

interface DecodedCheck extends DecodedWrite {
  readonly version: number
}

interface DecodedReconfig extends DecodedWrite {
  readonly request: ReconfigRequest
}

// Read field by field: taking a decoded record apart again costs as much as reading it.
const decodeSetData = (type: number, body: Reader, fields: FieldReader): DecodedSetData => ({
  type,
  path: fields.path(body),
  data: fields.data(body),
  version: body.int(),
})

function prepareSetData(
  context: PrepareContext,
  request: WriteRequest,
  { path, data, version }: DecodedSetData,
  zxid: Zxid,
  time: number,
): SetDataTxn {
  context.checkSession(request)
  const node = context.existing(path)
  context.checkAccess(node, Perms.WRITE, request)
  context.checkQuotaOwner(node.path, request)
  context.checkSessionUsers(node.path, request)
  const length = data?.length ?? 0
  if (length !== node.dataLength) context.checkQuota(node.path, 0, length - node.dataLength)
  if (length > node.dataLength) context.checkMemory()
  const next = nextVersion(node.version, version)
  setData(context, node, data, next, zxid, time)
  return { type: OpCode.setData, path: node.path, data, version: next }
}

function setData(
  { tree, pending }: PrepareContext,
  node: PendingNode,
  data: Uint8Array | null,
  version: number,
  zxid: Zxid,
  time: number,
): void {
  pending.beginChange(node, zxid)
  node.version = version
  node.mzxid = zxid
  node.mtime = time
  node.dataLength = data?.length ?? 0
  if (tree.options.digest) node.crcPrefix = crcPrefix(node.pathCrc, data)
  pending.endChange(node)
}

const decodeReconfig = (type: number, body: Reader): DecodedReconfig => ({
  type,
  path: CONFIGURATION_NODE,
  request: readReconfigRequest(body),
})

/** The checks have the order of Apache ZooKeeper. A standalone server has no membership to change. */
function prepareReconfig(
  context: PrepareContext,
  request: WriteRequest,
  write: DecodedReconfig,
  zxid: Zxid,
  time: number,
): SetDataTxn {
  const { reconfigEnabled, reconfigure } = context.options
  if (!reconfigEnabled) return reject(ErrorCode.RECONFIGDISABLED)
  context.checkSession(request)
  if (reconfigure === undefined) return reject(ErrorCode.UNIMPLEMENTED)
  const text = reconfigure(write.request, zxid)
  if (typeof text === 'number') return reject(text)
  const node = context.pending.get(CONFIGURATION_NODE)
  if (node === undefined) return reject(ErrorCode.NONODE)
  context.checkAccess(node, Perms.WRITE, request)
  const data = new TextEncoder().encode(text)
  setData(context, node, data, -1, zxid, time)
  return { type: OpCode.reconfig, path: CONFIGURATION_NODE, data, version: -1 }
}

function encodeSetDataTxn(writer: Writer, { path, data, version }: SetDataTxn): void {
  writer.string(path)
  writer.buffer(data)
  writer.int(version)
}

const decodeSetDataTxn = (type: SetDataTxn['type'], reader: Reader, paths?: PathLookup): SetDataTxn => ({
  type,
  path: readTxnPath(reader, paths),
  data: reader.buffer(),
  version: reader.int(),
})

const decodeSetAcl = (type: number, body: Reader, fields: FieldReader): DecodedSetAcl => ({
  type,
  path: fields.path(body),
  acl: readRequestAcl(body),
  version: body.int(),
})

function prepareSetAcl(
  context: PrepareContext,
  request: WriteRequest,
  { path, acl: requested, version }: DecodedSetAcl,
  zxid: Zxid,
): SetACLTxn {
  context.checkSession(request)
  if (path === null || !isValidPath(path)) return reject(ErrorCode.BADARGUMENTS)
  const acl = context.acceptAcl(requested, request)
  const { pending } = context
  const node = pending.get(path)
  if (node === undefined) return reject(ErrorCode.NONODE)
  context.checkAccess(node, Perms.ADMIN, request)
  context.checkQuotaOwner(node.path, request)
  if (!context.checkSessionUsers(node.path, request)) context.limitAcls(acl)
  const next = nextVersion(node.aversion, version)
  pending.beginChange(node, zxid)
  node.aversion = next
  node.acl = acl
  pending.endChange(node)
  return { type: OpCode.setACL, path: node.path, acl, version: next }
}

function encodeSetAclTxn(writer: Writer, { path, acl, version }: SetACLTxn): void {
  writer.string(path)
  writeTxnAcl(writer, acl)
  writer.int(version)
}

const decodeSetAclTxn = (_type: number, reader: Reader): SetACLTxn => ({
  type: OpCode.setACL,
  path: readTxnPath(reader),
  acl: readTxnAcl(reader),
  version: reader.int(),
})

const decodeCheck = (type: number, body: Reader, fields: FieldReader): DecodedCheck => ({
  type,
  path: fields.path(body),
  version: body.int(),
})

function prepareCheck(
  context: PrepareContext,
  request: WriteRequest,
  { path, version }: DecodedCheck,
): CheckTxn {
  context.checkSession(request)
  const node = context.existing(path)
  context.checkAccess(node, Perms.READ, request)
  return { type: OpCode.check, path: node.path, version: nextVersion(node.version, version) }
}

function encodeCheckTxn(writer: Writer, { path, version }: CheckTxn): void {
  writer.string(path)
  writer.int(version)
}

const decodeCheckTxn = (_type: number, reader: Reader): CheckTxn => ({
  type: OpCode.check,
  path: readTxnPath(reader),
  version: reader.int(),
})

/** Returns the version after a change. Rejects an expected version that is neither the current one nor -1. */
function nextVersion(current: number, expected: number): number {
  if (expected !== -1 && expected !== current) return reject(ErrorCode.BADVERSION)
  return (current + 1) | 0
}

const writeStat = (tree: Tree, { path }: SetDataTxn | SetACLTxn, _requested: number, writer: Writer): void =>
  tree.writeStat(tree.findWritten(path), writer)

/** Writes the reply to a reconfiguration: that of a getData of the new configuration. */
function writeConfiguration(tree: Tree, txn: SetDataTxn, requested: number, writer: Writer): void {
  writer.buffer(txn.data)
  writeStat(tree, txn, requested, writer)
}

export const CHANGE_OPERATIONS = [
  defineOperation({
    code: OpCode.setData,
    name: 'SETD',
    kind: 'write',
    decode: decodeSetData,
    prepare: prepareSetData,
    multi: { isAllowed: () => true, normalize: (write) => write, resultType: OpCode.setData },
    encodeTxn: encodeSetDataTxn,
    decodeTxn: decodeSetDataTxn,
    writeReply: writeStat,
  }),
  defineOperation({
    code: OpCode.reconfig,
    name: 'RECO',
    kind: 'write',
    decode: decodeReconfig,
    prepare: prepareReconfig,
    encodeTxn: encodeSetDataTxn,
    decodeTxn: decodeSetDataTxn,
    writeReply: writeConfiguration,
  }),
  defineOperation({
    code: OpCode.setACL,
    name: 'SETA',
    kind: 'write',
    decode: decodeSetAcl,
    prepare: prepareSetAcl,
    encodeTxn: encodeSetAclTxn,
    decodeTxn: decodeSetAclTxn,
    writeReply: writeStat,
  }),
  // A client sends a check only in a multi.
  defineOperation({
    code: OpCode.check,
    name: 'CHEC',
    kind: 'internal',
    decode: decodeCheck,
    prepare: prepareCheck,
    multi: { isAllowed: () => true, normalize: (write) => write, resultType: OpCode.check },
    encodeTxn: encodeCheckTxn,
    decodeTxn: decodeCheckTxn,
  }),
]
