import type { Plan } from './plan.ts'
import { SYNC_LIMIT } from './settings.ts'

/**
 * Ticks in which a leader or a learner notices that its peer has been silent for `syncLimit` ticks, and disconnects.
 */
const NOTICE_TICKS = 3
/** From this share of slow packets on, a few of them delay each quorum. */
export const MANY_SLOW_PACKETS = 0.01
/** Network delays on top, in milliseconds. */
const NETWORK_MS = 1000
/** Rate of the slowest clock, except that of a stale leader. */
export const SLOWEST_CLOCK_RATE = 0.9

/**
 * Returns how old the state that a read shows may be, in milliseconds. A standalone server is always current. A member
 * first has to notice by its own clock that it has lost the others, and a paused process notices nothing. An observer
 * behind a follower notices after that follower.
 */
export function maxStalenessOf({ servers, faults, settings, observerMasters }: Plan): number {
  if (servers === 1) return 0
  const rate = faults.some(({ kind }) => kind === 'staleLeader') ? SLOWEST_CLOCK_RATE / 2 : SLOWEST_CLOCK_RATE
  const pauses = faults.map(({ kind, forMs }) => (kind === 'pause' ? forMs : 0))
  const ways = faults.map((fault) => (fault.kind === 'slowLink' ? fault.ms : 0))
  const noticed = ((SYNC_LIMIT + NOTICE_TICKS) * settings.tickTimeMs) / rate
  const hops = observerMasters === true ? 2 : 1
  return hops * noticed + Math.max(0, ...pauses) + 2 * Math.max(0, ...ways) + NETWORK_MS
}
