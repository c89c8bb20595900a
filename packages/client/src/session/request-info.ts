import { ErrorCode } from '@zabra/protocol'
import { toClientPath } from '../chroot.ts'
import {
  abortError,
  errorFromCode,
  noChrootError,
  UsageError,
  type ErrorContext,
  type ZooKeeperError,
} from '../errors.ts'
import { addressKey } from '../servers/connect-string.ts'
import type { RequestInfo, ServerAddress } from '../types.ts'
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
    ...(server === undefined ? {} : { server: addressKey(server) }),
  }
}

/** Returns why the signal or the timeout of the caller ends a call before it begins, or undefined. */
export function checkCallLimits(request: PendingRequest): ZooKeeperError | undefined {
  const { signal, timeout } = request.options!
  if (signal?.aborted) return abortError(signal.reason, errorContextOf(request))
  if (timeout === undefined || timeout >= 0) return undefined
  const message = `Expected a timeout of 0 or more milliseconds, got ${String(timeout)}`
  return new UsageError(message, errorContextOf(request))
}

/** Returns the error of a request that exceeds the maximum length. */
export function requestTooLongError(request: PendingRequest, maxRequest: number): UsageError {
  return new UsageError(
    `Expected a request of at most ${maxRequest} bytes, got ${request.requestBytes - 4}. Store less in one znode, or raise maxRequest here and jute.maxbuffer on the servers`,
    errorContextOf(request),
  )
}

/** Returns the error for the error code of a reply. */
export function replyError(
  request: PendingRequest,
  code: number,
  facts: ErrorContext,
  sessionId: bigint,
): ZooKeeperError {
  if (
    code === ErrorCode.NONODE &&
    request.chroot !== '' &&
    request.operation.requiredPath?.(request) === request.chroot
  ) {
    return noChrootError(request.chroot, facts)
  }
  return errorFromCode(code, facts, sessionId)
}
