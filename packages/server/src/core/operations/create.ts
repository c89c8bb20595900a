import {
  CONTAINER_OWNER,
  CreateMode,
  ErrorCode,
  isCreateMode,
  isEphemeral,
  isSequential,
  isTtl,
  MAX_TTL,
  OpCode,
  ownerKind,
  Perms,
  ttlOwner,
  type ACL,
  type Reader,
  type Writer,
} from '@zabra/protocol'
import type { PrepareContext } from '../prepare/prepare-context.ts'
import type { PendingNode } from '../prepare/pending-tree.ts'
import { reject } from '../prepare/request-error.ts'
import { sequenceNumber } from '../prepare/sequence.ts'
import type { WriteRequest } from '../prepare/types.ts'
import { crcPrefix, pathCrc, type Tree } from '../tree/index.ts'
import { isValidPath } from '../valid-path.ts'
import type { CreateContainerTxn, CreateTTLTxn, CreateTxn, SubTxn, Txn, Zxid } from '../types.ts'
import {
  readRequestAcl,
  readTxnAcl,
  readTxnPath,
  writeTxnAcl,
  type FieldReader,
  type PathLookup,
} from './fields.ts'
import { defineOperation, type DecodedWrite, type MultiRules } from './types.ts'

interface DecodedCreate extends DecodedWrite {
  readonly data: Uint8Array | null
  readonly acl: readonly ACL[] | null
  readonly flags: number
}

interface DecodedCreateTtl extends DecodedCreate {
  readonly ttl: bigint
}

type AnyCreateTxn = CreateTxn | CreateContainerTxn | CreateTTLTxn

function decodeCreate(type: number, body: Reader, fields: FieldReader): DecodedCreate {
  const path = fields.newPath(body)
  const data = fields.data(body)
  const acl = readRequestAcl(body)
  return { type, path, data, acl, flags: body.int() }
}

function decodeCreateTtl(type: number, body: Reader, fields: FieldReader): DecodedCreateTtl {
  const path = fields.newPath(body)
  return {
    type,
    path,
    data: fields.data(body),
    acl: readRequestAcl(body),
    flags: body.int(),
    ttl: body.long(),
  }
}

const prepareCreate = (
  context: PrepareContext,
  request: WriteRequest,
  write: DecodedCreate,
  zxid: Zxid,
  time: number,
): SubTxn => create(context, request, write, 0, zxid, time)

const prepareCreateTtl = (
  context: PrepareContext,
  request: WriteRequest,
  write: DecodedCreateTtl,
  zxid: Zxid,
  time: number,
): SubTxn => create(context, request, write, Number(write.ttl), zxid, time)

/** The order of the checks decides which error a client gets; it is the one of Apache ZooKeeper. */
function create(
  context: PrepareContext,
  request: WriteRequest,
  write: DecodedCreate,
  ttl: number,
  zxid: Zxid,
  time: number,
): SubTxn {
  const { type, path: requested, data, flags } = write
  const { tree, pending } = context
  checkFlags(tree, type, flags, ttl)
  context.checkSession(request, isEphemeral(flags))
  if (requested === null) return reject(ErrorCode.MARSHALLINGERROR)
  if (!requested.includes('/') || requested.includes('\0')) return reject(ErrorCode.BADARGUMENTS)
  const acl = context.acceptAcl(write.acl, request)
  const parent = context.pending.parent(requested)
  if (parent === undefined) return reject(ErrorCode.NONODE)
  context.checkAccess(parent, Perms.CREATE, request)
  const path = isSequential(flags) ? requested + sequenceNumber(parent.cversion) : requested
  if (!isValidPath(path)) return reject(ErrorCode.BADARGUMENTS)
  context.checkQuotaOwner(path, request)
  const isSessionUser = context.checkSessionUsers(path, request)
  const before = pending.lookup(path)
  if (before?.exists === true) return reject(ErrorCode.NODEEXISTS)
  if (ownerKind(parent.owner, tree.options) === 'ephemeral') return reject(ErrorCode.NOCHILDRENFOREPHEMERALS)
  // What clients do to quotas, lists and memory must not keep the users of sessions from being stored.
  if (!isSessionUser) {
    context.checkQuota(path, 1, data?.length ?? 0)
    context.checkMemory()
    context.limitAcls(acl)
  }

  const parentCVersion = addChild(context, parent, zxid)
  const isContainer = type === OpCode.createContainer
  const hasTtl = type === OpCode.createTTL
  const ephemeral = isEphemeral(flags)
  const owner = isContainer ? CONTAINER_OWNER : hasTtl ? ttlOwner(ttl) : ephemeral ? request.sessionId : 0n
  const node = context.newNode(path, acl, parent)
  node.czxid = node.mzxid = node.pzxid = zxid
  node.ctime = node.mtime = time
  node.dataLength = data?.length ?? 0
  if (tree.options.digest) {
    node.pathCrc = pathCrc(path, parent.path, parent.pathCrc)
    node.crcPrefix = crcPrefix(node.pathCrc, data)
  }
  node.owner = owner
  pending.create(node, before, zxid)
  if (isContainer) return { type: OpCode.createContainer, path, data, acl, parentCVersion }
  if (hasTtl) return { type: OpCode.createTTL, path, data, acl, parentCVersion, ttl }
  const plainType = type === OpCode.create2 ? OpCode.create2 : OpCode.create
  return { type: plainType, path, data, acl, ephemeral, parentCVersion }
}

function checkFlags(tree: Tree, type: number, flags: number, ttl: number): void {
  if (!isCreateMode(flags)) reject(ErrorCode.BADARGUMENTS)
  if (isTtl(flags)) {
    if (!tree.options.extendedTypes) reject(ErrorCode.UNIMPLEMENTED)
    if (type !== OpCode.createTTL || ttl < 1 || ttl > MAX_TTL) reject(ErrorCode.BADARGUMENTS)
  } else if (type === OpCode.createTTL) {
    reject(ErrorCode.BADARGUMENTS)
  }
}

/** Adds a child to the pending parent and returns the parent's cversion, as the transaction holds it. */
function addChild({ pending }: PrepareContext, parent: PendingNode, zxid: Zxid): number {
  const parentCVersion = (parent.cversion + 1) | 0
  pending.beginChange(parent, zxid)
  parent.childCount++
  // When the counter overflows, the tree keeps the parent's old value as it applies the transaction; so does this view.
  if (parentCVersion > parent.cversion) {
    parent.cversion = parentCVersion
    parent.pzxid = zxid
  }
  pending.endChange(parent)
  return parentCVersion
}

/** In a multi the flags of a creation say what it creates, not its op code alone (`Op.create`). */
function normalize(write: DecodedCreate): DecodedCreate {
  const { type, flags } = write
  if (flags === CreateMode.CONTAINER) return { ...write, type: OpCode.createContainer }
  const lacksTtl = type === OpCode.createTTL && isCreateMode(flags) && !isTtl(flags)
  return lacksTtl ? { ...write, type: OpCode.create } : write
}

/** Apache ZooKeeper accepts a creation without a TTL in a multi only with a mode that needs none. */
const hasPlainMode = ({ flags }: DecodedCreate): boolean =>
  isCreateMode(flags) && flags < CreateMode.PERSISTENT_WITH_TTL

const multiRules = (resultType: number): MultiRules<DecodedCreate> => ({
  isAllowed: hasPlainMode,
  normalize,
  resultType,
})

const createsEphemeral = ({ flags }: DecodedCreate): boolean => isEphemeral(flags)

function encodeNode(writer: Writer, txn: AnyCreateTxn): void {
  writer.string(txn.path)
  writer.buffer(txn.data)
  writeTxnAcl(writer, txn.acl)
}

function encodeCreateTxn(writer: Writer, txn: CreateTxn): void {
  encodeNode(writer, txn)
  writer.bool(txn.ephemeral)
  writer.int(txn.parentCVersion)
}

function encodeCreateContainerTxn(writer: Writer, txn: CreateContainerTxn): void {
  encodeNode(writer, txn)
  writer.int(txn.parentCVersion)
}

function encodeCreateTtlTxn(writer: Writer, txn: CreateTTLTxn): void {
  encodeNode(writer, txn)
  writer.int(txn.parentCVersion)
  writer.longNumber(txn.ttl)
}

const decodeNode = (reader: Reader): Pick<CreateTxn, 'path' | 'data' | 'acl'> => ({
  path: readTxnPath(reader),
  data: reader.buffer(),
  acl: readTxnAcl(reader),
})

function decodeCreateTxn(type: CreateTxn['type'], reader: Reader): CreateTxn {
  const node = decodeNode(reader)
  const ephemeral = reader.bool()
  // Logs written before release 3.4 lack the last field (disk-format 5.9).
  const parentCVersion = type === OpCode.create && reader.remaining < 4 ? -1 : reader.int()
  return { type, ...node, ephemeral, parentCVersion }
}

const decodeCreateContainerTxn = (
  _type: number,
  reader: Reader,
  _paths?: PathLookup,
): CreateContainerTxn => ({
  type: OpCode.createContainer,
  ...decodeNode(reader),
  parentCVersion: reader.int(),
})

function decodeCreateTtlTxn(_type: number, reader: Reader): CreateTTLTxn {
  const node = decodeNode(reader)
  const parentCVersion = reader.int()
  const ttl = reader.longNumber()
  if (ttl < 1 || ttl > MAX_TTL)
    reader.fail(`Expected a time to live of 1 to ${MAX_TTL} ms, got ${ttl}`, 'ttl')
  return { type: OpCode.createTTL, ...node, parentCVersion, ttl }
}

/** Only the reply to `create` lacks the stat. */
function writeReply(tree: Tree, txn: Txn, requested: number, writer: Writer): void {
  const { path } = txn as AnyCreateTxn
  writer.string(path)
  if (requested !== OpCode.create) tree.writeStat(tree.find(path), writer)
}

export const CREATE_OPERATIONS = [
  defineOperation({
    code: OpCode.create,
    name: 'CREA',
    kind: 'write',
    decode: decodeCreate,
    needsGlobalSession: createsEphemeral,
    prepare: prepareCreate,
    multi: multiRules(OpCode.create),
    encodeTxn: encodeCreateTxn,
    decodeTxn: decodeCreateTxn,
    writeReply,
  }),
  defineOperation({
    code: OpCode.create2,
    name: 'CRE2',
    kind: 'write',
    decode: decodeCreate,
    needsGlobalSession: createsEphemeral,
    prepare: prepareCreate,
    multi: multiRules(OpCode.create2),
    encodeTxn: encodeCreateTxn,
    decodeTxn: decodeCreateTxn,
    writeReply,
  }),
  defineOperation({
    code: OpCode.createContainer,
    name: 'CRCO',
    kind: 'write',
    decode: decodeCreate,
    prepare: prepareCreate,
    // In a multi, creations of containers and of nodes with a TTL get the result of create2.
    multi: { isAllowed: hasPlainMode, normalize: (write) => write, resultType: OpCode.create2 },
    encodeTxn: encodeCreateContainerTxn,
    decodeTxn: decodeCreateContainerTxn,
    writeReply,
  }),
  defineOperation({
    code: OpCode.createTTL,
    name: 'CTTL',
    kind: 'write',
    decode: decodeCreateTtl,
    prepare: prepareCreateTtl,
    multi: { isAllowed: () => true, normalize, resultType: OpCode.create2 },
    encodeTxn: encodeCreateTtlTxn,
    decodeTxn: decodeCreateTtlTxn,
    writeReply,
  }),
]
