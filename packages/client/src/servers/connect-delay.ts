import type { Random } from '@zabra/runtime'
import type { Candidate } from './host-provider.ts'
import { randomFraction } from '../random-fraction.ts'

const BASE_MS = 100
const CAP_MS = 10_000
const STEP_MS = 50

/**
 * Returns the milliseconds to wait before an attempt: none before the first, a random delay below an exponentially
 * growing bound before each further round over the servers, and a short random delay within a round.
 */
export function attemptDelay({ round, position }: Candidate, random: Random): number {
  if (position > 0) return randomFraction(random) * STEP_MS
  return round === 0 ? 0 : randomFraction(random) * Math.min(CAP_MS, BASE_MS * 2 ** round)
}

/** Returns the milliseconds by which clients of a lost server spread their first attempt elsewhere. */
export const disconnectDelay = (timeoutMs: number, random: Random): number =>
  randomFraction(random) * Math.min(1000, timeoutMs / 10)

/**
 * With fewer servers than this an attempt still gets no larger share: one that hangs must not use up the session
 * timeout.
 */
const MIN_SHARES = 3

/** Returns the milliseconds that one attempt may take, from name resolution to the connect response. */
export const attemptTimeout = (timeoutMs: number, servers: number): number =>
  Math.max(250, timeoutMs / Math.max(MIN_SHARES, servers))
