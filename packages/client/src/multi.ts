import { ErrorCode, parentOf, validatePath } from '@zabra/protocol'
import { toServerPath } from './chroot.ts'
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
import { checkVersion, listChildren, type MultiPart, type MultiReply } from './multi-parts.ts'
import { createOperationFor, deleteNode, getData, setData } from './operations.ts'
import type { ReadOp, WriteOp } from './types.ts'

const partOperations = {
  delete: deleteNode,
  check: checkVersion,
  setData,
  getData,
  getChildren: listChildren,
}

/** Returns one operation as it is encoded. Throws a `UsageError` if it is invalid. */
export function toMultiPart(operation: WriteOp | ReadOp, chroot: string): MultiPart {
  const { op, path } = operation
  const isCreate = op === 'create'
  const mode = (isCreate && operation.mode) || 'persistent'
  const data = 'data' in operation ? operation.data : undefined
  const reason =
    validatePath(path, isCreate && isSequential(mode)) ??
    (op === 'setData' || data !== undefined ? validateData(data) : undefined) ??
    (isCreate ? validateCreate(path, mode, operation.ttlMs) : undefined)
  if (reason !== undefined) throw new UsageError(reason, { path, operation: op })
  const { version = -1 } = operation as { readonly version?: number | undefined }
  return {
    operation: isCreate ? createOperationFor(mode) : partOperations[op],
    path: toServerPath(chroot, path),
    data: toBytes(data === undefined ? EMPTY : data),
    intArgument: isCreate ? createFlags[mode] : version,
    ttl: (isCreate && operation.ttlMs) || 0,
    watch: false,
    params: isCreate ? { acl: operation.acl ?? OPEN_ACL } : undefined,
  }
}

/** Returns the results of a multi. Throws a `MultiError` for one that failed. */
export function toWriteResults(operations: readonly WriteOp[], reply: MultiReply, chroot: string): unknown[] {
  const codes = reply.results.map(({ code }) => code)
  const firstError = codes.findIndex(
    (code) => code !== undefined && code !== 0 && code !== ErrorCode.RUNTIMEINCONSISTENCY,
  )
  const failedIndex = firstError === -1 ? codes.findIndex((code) => code !== undefined) : firstError
  if (failedIndex !== -1) {
    const operation = operations[failedIndex]
    const path = operation?.path
    const cause = partError(operation, codes[failedIndex]!, chroot)
    if (reply.isAmbiguous) {
      const reason =
        'the connection broke before the reply arrived, and the retry failed, perhaps because the first succeeded'
      throw connectionLossError({ operation: 'multi', path, maybeApplied: true, reason, cause })
    }
    const message = `multi: operation ${failedIndex} failed with ${cause.code}: ${cause.message}`
    throw new MultiError(message, failedIndex, cause)
  }
  return reply.results.map(({ value }) => value)
}

/** Returns the error of an operation that failed with an error code. */
function partError(operation: WriteOp | ReadOp | undefined, code: number, chroot: string): ZooKeeperError {
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
export const toReadResults = (
  operations: readonly ReadOp[],
  { results }: MultiReply,
  chroot: string,
): unknown[] =>
  results.map(({ code, value }, index) =>
    code === undefined ? value : partError(operations[index], code, chroot),
  )
