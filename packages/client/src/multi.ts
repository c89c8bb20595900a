import { ErrorCode, OpCode, parentOf, validatePath, type MultiOperation } from '@zabra/protocol'
import { toClientPath, toServerPath } from './chroot.ts'
import {
  toBytes,
  validateCreate,
  validateData,
  EMPTY,
  createFlags,
  isSequential,
  OPEN_ACL,
} from './call-options.ts'
import {
  connectionLossError,
  errorFromCode,
  missingParent,
  MultiError,
  noChrootError,
  otherVersion,
  UsageError,
  type ZooKeeperError,
} from './errors.ts'
import { isErrorResult, type MultiReply } from './operations.ts'
import type { ACL, ReadOp, WriteOp } from './types.ts'

/** Returns one operation in its wire form. Throws a `UsageError` if it is invalid. */
export function toMultiOperation(operation: WriteOp | ReadOp, chroot: string): MultiOperation {
  const { op, path } = operation
  const sequential = op === 'create' && isSequential(operation.mode ?? 'persistent')
  const reason = validatePath(path, sequential)
  if (reason !== undefined) throw new UsageError(reason, { path, operation: op })
  const data = 'data' in operation ? operation.data : undefined
  const message = op === 'setData' || data !== undefined ? validateData(data) : undefined
  if (message !== undefined) throw new UsageError(message, { path, operation: op })
  const serverPath = toServerPath(chroot, path)
  switch (op) {
    case 'create':
      return createOperation(operation, serverPath)
    case 'delete':
    case 'check':
      return { type: OpCode[op], path: serverPath, version: operation.version ?? -1 }
    case 'setData':
      return {
        type: OpCode.setData,
        path: serverPath,
        data: toBytes(operation.data),
        version: operation.version ?? -1,
      }
    case 'getData':
    case 'getChildren':
      return { type: OpCode[op], path: serverPath, watch: false }
  }
}

function createOperation(operation: WriteOp & { op: 'create' }, path: string): MultiOperation {
  const { mode = 'persistent', ttlMs, data = EMPTY } = operation
  const flags = createFlags[mode]
  const message = validateCreate(operation.path, mode, ttlMs)
  if (message !== undefined) throw new UsageError(message, { path: operation.path, operation: 'create' })
  const create = { path, data: toBytes(data), acl: wireAcl(operation.acl), flags }
  if (ttlMs !== undefined) return { type: OpCode.createTTL, ...create, ttl: BigInt(ttlMs) }
  return { type: mode === 'container' ? OpCode.createContainer : OpCode.create2, ...create }
}

const wireAcl = (acl: readonly ACL[] = OPEN_ACL): { perms: number; id: { scheme: string; id: string } }[] =>
  acl.map(({ perms, scheme, id }) => ({ perms, id: { scheme, id } }))

/** Returns the results of a multi. Throws a `MultiError` for one that failed. */
export function toWriteResults(operations: readonly WriteOp[], reply: MultiReply, chroot: string): unknown[] {
  const firstError = reply.results.findIndex(
    (result) => isErrorResult(result) && result.err !== 0 && result.err !== ErrorCode.RUNTIMEINCONSISTENCY,
  )
  const failedIndex = firstError === -1 ? reply.results.findIndex(isErrorResult) : firstError
  if (failedIndex !== -1) {
    const result = reply.results[failedIndex]!
    const operation = operations[failedIndex]
    const path = operation?.path
    const cause = errorOf(operation, isErrorResult(result) ? result.err : 0, chroot)
    if (reply.isAmbiguous) {
      const reason =
        'the connection broke before the reply arrived, and the retry failed, perhaps because the first succeeded'
      throw connectionLossError({ operation: 'multi', path, maybeApplied: true, reason, cause })
    }
    const message = `multi: operation ${failedIndex} failed with ${cause.code}: ${cause.message}`
    throw new MultiError(message, failedIndex, cause)
  }
  return reply.results.map((result) => {
    if ('path' in result) {
      const path = toClientPath(chroot, result.path ?? '') ?? result.path
      return { path, ...('stat' in result ? { stat: toClientStat(result.stat) } : {}) }
    }
    return 'stat' in result ? toClientStat(result.stat) : undefined
  })
}

/** Returns the error of an operation that failed with an error code. */
function errorOf(operation: WriteOp | ReadOp | undefined, code: number, chroot: string): ZooKeeperError {
  // The caller may have emptied its list meanwhile.
  if (operation === undefined) return errorFromCode(code, { operation: 'multi' })
  const { op, path } = operation
  const context = { operation: op, path }
  const required = op === 'create' ? parentOf(path) : path
  if (code === ErrorCode.NONODE && chroot !== '' && required === '/') return noChrootError(chroot, context)
  return errorFromCode(code, context, 0n, detailOf(operation, code))
}

/** Returns what an operation adds to the meaning of its error: the missing parent or the expected version. */
function detailOf(operation: WriteOp | ReadOp, code: number): string | undefined {
  if (operation.op === 'create') {
    return code === ErrorCode.NONODE ? missingParent(operation.path, 'create it before') : undefined
  }
  const { version } = operation as { readonly version?: number | undefined }
  return code === ErrorCode.BADVERSION && version !== undefined ? otherVersion(version) : undefined
}

/** Returns the results of a multiRead: for each read its result or its error. */
export function toReadResults(
  operations: readonly ReadOp[],
  { results }: MultiReply,
  chroot: string,
): unknown[] {
  return results.map((result, index) => {
    if (isErrorResult(result)) return errorOf(operations[index], result.err, chroot)
    if ('data' in result) return { data: result.data, stat: toClientStat(result.stat) }
    return { children: 'children' in result ? (result.children ?? []) : [] }
  })
}

/** Converts a Stat of the protocol to the public Stat. */
function toClientStat<T extends { ctime: bigint; mtime: bigint }>(
  stat: T,
): Omit<T, 'ctime' | 'mtime'> & { ctime: number; mtime: number } {
  return { ...stat, ctime: Number(stat.ctime), mtime: Number(stat.mtime) }
}
