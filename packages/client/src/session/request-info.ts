import { ErrorCode } from '@zabra/protocol'
import { toClientPath } from '../chroot.ts'
import { errorOf } from '../error-of.ts'
import {
  errorFromCode,
  missingParent,
  noChrootError,
  UsageError,
  type ErrorContext,
  type ZooKeeperError,
} from '../errors.ts'
import { addressText } from '../servers/connect-string.ts'
import type { RequestInfo } from '../instrumentation.ts'
import type { ServerAddress } from '../platform.ts'
import type { PendingRequest } from './pending-request.ts'

function clientPath(request: PendingRequest): string | undefined {
  return request.path === '' ? undefined : (toClientPath(request.chroot, request.path) ?? request.path)
}

/** Returns the error properties that every error of a request carries. */
export function errorContextOf(request: PendingRequest): ErrorContext {
  return { operation: request.operation.name, path: clientPath(request) }
}

/** Returns what instrumentation receives when a request begins. */
export function requestInfoOf(
  request: PendingRequest,
  server: ServerAddress | undefined,
  redactPath: ((path: string) => string) | undefined,
): RequestInfo {
  const path = clientPath(request)
  return {
    operation: request.operation.name,
    ...(path === undefined ? {} : { path: redactPath?.(path) ?? path }),
    ...(server === undefined ? {} : { server: addressText(server) }),
  }
}

/** Returns the error of a request whose arguments could not be encoded. */
export function invalidArgumentsError(request: PendingRequest, cause: unknown): UsageError {
  return new UsageError(
    `Expected arguments that ${request.operation.name} can send: ${errorOf(cause).message}`,
    {
      ...errorContextOf(request),
      cause,
    },
  )
}

/** Returns the error of a request that exceeds the maximum length. */
export function requestTooLongError(request: PendingRequest, maxRequestBytes: number): UsageError {
  return new UsageError(
    `Expected a request of at most ${maxRequestBytes} bytes, got ${request.requestBytes - 4}. Store less in one znode, or raise maxRequestBytes here and jute.maxbuffer on the servers`,
    errorContextOf(request),
  )
}

/** Returns what a request adds to the meaning of its error: the missing parent. */
function detailOf(request: PendingRequest, code: number, { path }: ErrorContext): string | undefined {
  if (code !== ErrorCode.NONODE || path === undefined) return undefined
  const required = request.operation.requiredPath?.(request) ?? request.path
  return required === request.path ? undefined : missingParent(path, 'pass parents: true to create it')
}

/** Returns the error for the error code of a reply. */
export function replyError(
  request: PendingRequest,
  code: number,
  context: ErrorContext,
  sessionId: bigint,
): ZooKeeperError {
  if (
    code === ErrorCode.NONODE &&
    request.chroot !== '' &&
    request.operation.requiredPath?.(request) === request.chroot
  ) {
    return noChrootError(request.chroot, context)
  }
  return errorFromCode(code, context, sessionId, detailOf(request, code, context))
}
