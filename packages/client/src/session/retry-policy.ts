import type { Random } from '@zabra/runtime'
import type { ZooKeeperError } from '../errors.ts'
import { randomFraction } from '../random-fraction.ts'
import type { RetryFunction, RetryPolicy } from '../types.ts'
import type { PendingRequest } from './pending-request.ts'

const NO_LIMITS: RetryPolicy = {}

const retryOf = (
  { options }: PendingRequest,
  ofClient: RetryPolicy | RetryFunction,
): RetryPolicy | RetryFunction => options?.retry || ofClient

/** Returns the limits of a call, or else those of the client; none where a function decides. */
export function retryPolicyOf(request: PendingRequest, ofClient: RetryPolicy | RetryFunction): RetryPolicy {
  const retry = retryOf(request, ofClient)
  return typeof retry === 'function' ? NO_LIMITS : retry
}

/** Returns whether the caller still waits and the limits of the policy allow another attempt at the time `now`. */
export function isWithinLimits(
  request: PendingRequest,
  ofClient: RetryPolicy | RetryFunction,
  now: number,
): boolean {
  if (request.isAbandoned || request.options?.retry === false) return false
  const { maxAttempts = Infinity, maxElapsedMs = Infinity } = retryPolicyOf(request, ofClient)
  return request.attempts < maxAttempts && now - request.startedAt < maxElapsedMs
}

/** Asks the function of the caller, if there is one, and keeps its delay in the request. Returns whether to try again. */
export function allowsRetry(
  request: PendingRequest,
  ofClient: RetryPolicy | RetryFunction,
  error: () => ZooKeeperError,
): boolean {
  const retry = retryOf(request, ofClient)
  if (typeof retry !== 'function') return true
  try {
    const delayMs = retry(error(), request.attempts)
    request.retryDelayMs = delayMs === false ? NaN : delayMs
  } catch {
    // Documented: the call rejects with its own error.
    request.retryDelayMs = NaN
  }
  return request.retryDelayMs >= 0
}

/**
 * Returns the milliseconds before the next attempt: those of the function, or a random part of an exponentially growing bound
 * that ends within the limit of the policy.
 */
export function retryDelay(
  request: PendingRequest,
  ofClient: RetryPolicy | RetryFunction,
  random: Random,
  now: number,
): number {
  const retry = retryOf(request, ofClient)
  if (typeof retry === 'function') return request.retryDelayMs
  const { baseMs = 100, factor = 2, capMs = 10_000, maxElapsedMs = Infinity } = retry
  const delay = randomFraction(random) * Math.min(capMs, baseMs * factor ** (request.attempts - 1))
  return Math.max(0, Math.min(delay, request.startedAt + maxElapsedMs - now))
}
