import { ErrorCode } from '@zabra/protocol'
import { toClient } from '../chroot.ts'
import { abortedBy, errorOf, noChroot, UsageError, type ErrorFacts, type ZooKeeperError } from '../errors.ts'
import { addressKey } from '../servers/connect-string.ts'
import type { RequestInfo, ServerAddress } from '../types.ts'
import type { Slot } from './slot.ts'

function clientPath(slot: Slot): string | undefined {
  return slot.path === '' ? undefined : (toClient(slot.root, slot.path) ?? slot.path)
}

/** What an error of a request says of it in any case. */
export function factsOf(slot: Slot): ErrorFacts {
  return { operation: slot.kind.name, path: clientPath(slot) }
}

/** What an observer hears of a request that begins. */
export function infoOf(
  slot: Slot,
  server: ServerAddress | undefined,
  redactPath: ((path: string) => string) | undefined,
): RequestInfo {
  const path = clientPath(slot)
  return {
    operation: slot.kind.name,
    ...(path === undefined ? {} : { path: redactPath?.(path) ?? path }),
    ...(server === undefined ? {} : { server: addressKey(server) }),
  }
}

/** Why the caller's signal and time limit end a call before it begins, or undefined. */
export function wrongLimit(slot: Slot): ZooKeeperError | undefined {
  const { signal, timeout } = slot.options!
  if (signal?.aborted) return abortedBy(signal.reason, factsOf(slot))
  if (timeout === undefined || timeout >= 0) return undefined
  const message = `Expected a timeout of 0 or more milliseconds, got ${String(timeout)}`
  return new UsageError(message, factsOf(slot))
}

/** The error of a request that no server would take. */
export function tooLong(slot: Slot, maxRequest: number): UsageError {
  return new UsageError(
    `Expected a request of at most ${maxRequest} bytes, got ${slot.bytes - 4}. Store less in one znode, or raise maxRequest here and jute.maxbuffer on the servers`,
    factsOf(slot),
  )
}

/** The error for the number that a request was answered with. */
export function answerError(slot: Slot, code: number, facts: ErrorFacts, sessionId: bigint): ZooKeeperError {
  if (code === ErrorCode.NONODE && slot.root !== '' && slot.kind.needs?.(slot) === slot.root) {
    return noChroot(slot.root, facts)
  }
  return errorOf(code, facts, sessionId)
}
