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

function clientPath(slot: PendingRequest): string | undefined {
  return slot.path === '' ? undefined : (toClientPath(slot.chroot, slot.path) ?? slot.path)
}

/** What an error of a request says of it in any case. */
export function errorContextOf(slot: PendingRequest): ErrorContext {
  return { operation: slot.operation.name, path: clientPath(slot) }
}

/** What an observer hears of a request that begins. */
export function requestInfoOf(
  slot: PendingRequest,
  server: ServerAddress | undefined,
  redactPath: ((path: string) => string) | undefined,
): RequestInfo {
  const path = clientPath(slot)
  return {
    operation: slot.operation.name,
    ...(path === undefined ? {} : { path: redactPath?.(path) ?? path }),
    ...(server === undefined ? {} : { server: addressKey(server) }),
  }
}

/** Why the caller's signal and time limit end a call before it begins, or undefined. */
export function checkCallLimits(slot: PendingRequest): ZooKeeperError | undefined {
  const { signal, timeout } = slot.options!
  if (signal?.aborted) return abortError(signal.reason, errorContextOf(slot))
  if (timeout === undefined || timeout >= 0) return undefined
  const message = `Expected a timeout of 0 or more milliseconds, got ${String(timeout)}`
  return new UsageError(message, errorContextOf(slot))
}

/** The error of a request that no server would take. */
export function requestTooLongError(slot: PendingRequest, maxRequest: number): UsageError {
  return new UsageError(
    `Expected a request of at most ${maxRequest} bytes, got ${slot.requestBytes - 4}. Store less in one znode, or raise maxRequest here and jute.maxbuffer on the servers`,
    errorContextOf(slot),
  )
}

/** The error for the number that a request was answered with. */
export function replyError(
  slot: PendingRequest,
  code: number,
  facts: ErrorContext,
  sessionId: bigint,
): ZooKeeperError {
  if (
    code === ErrorCode.NONODE &&
    slot.chroot !== '' &&
    slot.operation.requiredPath?.(slot) === slot.chroot
  ) {
    return noChrootError(slot.chroot, facts)
  }
  return errorFromCode(code, facts, sessionId)
}
