import type { Random } from '@zabra/runtime'
import type { Candidate } from './host-provider.ts'
import { randomFraction } from './host-provider.ts'

const BASE_MS = 100
const CAP_MS = 10_000
const STEP_MS = 50

/**
 * Milliseconds to wait before an attempt: nothing before the first of all, up to an exponentially growing bound before
 * each further round over the servers, and a few to keep clients apart within a round.
 */
export function attemptDelay({ round, position }: Candidate, random: Random): number {
  if (position > 0) return randomFraction(random) * STEP_MS
  return round === 0 ? 0 : randomFraction(random) * Math.min(CAP_MS, BASE_MS * 2 ** round)
}

/** Milliseconds by which clients of a server that went away spread their first attempt elsewhere. */
export const disconnectDelay = (timeoutMs: number, random: Random): number =>
  randomFraction(random) * Math.min(1000, timeoutMs / 10)

/** With fewer servers than this an attempt gets no larger share: one that hangs must not take all the time that a session has. */
const MIN_SHARES = 3

/** Milliseconds that one attempt may take, from resolving the name to the answer of the server. */
export const attemptTimeout = (timeoutMs: number, servers: number): number =>
  Math.max(250, timeoutMs / Math.max(MIN_SHARES, servers))
