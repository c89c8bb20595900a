import type { Plan } from './plan.ts'
import { SYNC_LIMIT } from './settings.ts'

/** Ticks that a leader or a learner may take to see that the other one has been silent for `syncLimit` ticks, and to hang up. */
const NOTICE_TICKS = 3
/** What the ways of a network may take beside that, in milliseconds. */
const NETWORK_MS = 1000
/** The slowest of all clocks beside those of who is deposed. */
const SLOWEST_CLOCK_RATE = 0.9

/**
 * How old a read may be, in milliseconds: a server alone always knows everything, a member has to notice first that it does not
 * hear of the others, by its own clock, and a process that stands still notices nothing. An observer behind a follower notices
 * after that one has.
 */
export function maxStalenessOf({ servers, faults, settings, observerMasters }: Plan): number {
  if (servers === 1) return 0
  const rate = faults.some(({ kind }) => kind === 'deposed') ? SLOWEST_CLOCK_RATE / 2 : SLOWEST_CLOCK_RATE
  const pauses = faults.map(({ kind, forMs }) => (kind === 'pause' ? forMs : 0))
  const ways = faults.map((fault) => (fault.kind === 'slowLink' ? fault.ms : 0))
  const noticed = ((SYNC_LIMIT + NOTICE_TICKS) * settings.tickTimeMs) / rate
  const hops = observerMasters === true ? 2 : 1
  return hops * noticed + Math.max(0, ...pauses) + 2 * Math.max(0, ...ways) + NETWORK_MS
}
