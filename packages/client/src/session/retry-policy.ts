import type { Random } from '@zabra/runtime'
import { randomFraction } from '../random-fraction.ts'
import type { RetryPolicy } from '../types.ts'
import type { PendingRequest } from './pending-request.ts'

/** Returns the policy of a call, or else that of the client. */
export const retryPolicyOf = ({ options }: PendingRequest, ofClient: RetryPolicy): RetryPolicy =>
  options?.retry || ofClient

/** Returns whether the caller still waits and the policy allows another attempt at the time `now`. */
export function mayRetry(request: PendingRequest, ofClient: RetryPolicy, now: number): boolean {
  if (request.isAbandoned || request.options?.retry === false) return false
  const { maxAttempts = Infinity, maxElapsedMs = Infinity } = retryPolicyOf(request, ofClient)
  return request.attempts < maxAttempts && now - request.startedAt < maxElapsedMs
}

/** Returns a random delay in milliseconds before the next attempt, below an exponentially growing bound. */
export function retryDelay(request: PendingRequest, ofClient: RetryPolicy, random: Random): number {
  const { baseMs = 100, factor = 2, capMs = 10_000 } = retryPolicyOf(request, ofClient)
  return randomFraction(random) * Math.min(capMs, baseMs * factor ** (request.attempts - 1))
}
