import { ErrorCode, OpCode, Perms, type Reader, type Writer } from '@zabra/protocol'
import type { PrepareContext } from '../prepare/prepare-context.ts'
import { reject } from '../prepare/request-error.ts'
import type { WriteRequest } from '../prepare/types.ts'
import type { DeleteTxn, Zxid } from '../types.ts'
import { readTxnPath, type FieldReader, type PathLookup } from './fields.ts'
import { defineOperation, type DecodedWrite } from './types.ts'

const RESERVED_PATHS = new Set(['/', '/zookeeper', '/zookeeper/quota', '/zookeeper/config'])

interface DecodedDelete extends DecodedWrite {
  readonly version: number
}

const decode = (type: number, body: Reader, fields: FieldReader): DecodedDelete => ({
  type,
  path: fields.path(body),
  version: body.int(),
})

function prepare(
  context: PrepareContext,
  request: WriteRequest,
  { path, version }: DecodedDelete,
  zxid: Zxid,
): DeleteTxn {
  context.checkSession(request)
  if (path === null) return reject(ErrorCode.MARSHALLINGERROR)
  if (!path.includes('/') || path.includes('\0') || RESERVED_PATHS.has(path))
    return reject(ErrorCode.BADARGUMENTS)
  const parent = context.pending.parent(path)
  if (parent === undefined) return reject(ErrorCode.NONODE)
  context.checkAccess(parent, Perms.DELETE, request)
  context.checkQuotaOwner(path, request)
  context.checkSessionUsers(path, request)
  const node = context.pending.get(path)
  if (node === undefined) return reject(ErrorCode.NONODE)
  if (version !== -1 && version !== node.version) return reject(ErrorCode.BADVERSION)
  if (node.childCount > 0) return reject(ErrorCode.NOTEMPTY)
  context.removeNode(node, parent, zxid)
  return { type: OpCode.delete, path }
}

const encodeTxn = (writer: Writer, { path }: DeleteTxn): void => writer.string(path)
const decodeTxn = (type: DeleteTxn['type'], reader: Reader, paths?: PathLookup): DeleteTxn => ({
  type,
  path: readTxnPath(reader, paths),
})

export const DELETE_OPERATIONS = [
  defineOperation({
    code: OpCode.delete,
    name: 'DELE',
    kind: 'write',
    decode,
    prepare,
    multi: { isAllowed: () => true, normalize: (write) => write, resultType: OpCode.delete },
    encodeTxn,
    decodeTxn,
  }),
  // The leader itself removes containers and nodes whose TTL is over: `Preparer.deleteContainer`.
  defineOperation({ code: OpCode.deleteContainer, kind: 'internal', encodeTxn, decodeTxn }),
]
