import { concatBytes } from '@zabra/protocol'
import type { Clock } from '@zabra/runtime'
import type { LearnerSessions } from '../core/sessions/index.ts'
import { encodeTouches } from '../core/zab/index.ts'

/** Most sessions in an answer to a PING: 16 MiB, as many bytes as a leader accepts. */
const MAX_REPORTED = 1_390_000
/** The same for a leader that closes the connection of a packet beyond `jute.maxbuffer`, 1 MiB. */
const MAX_IN_A_REQUEST = 80_000
/** Bytes of a session in a report. */
const SESSION_BYTES = 12
/** Sessions that are taken in one turn of the event loop. */
const REPORTED_PER_TURN = 5000

/**
 * Returns the most sessions in a report. The packets of a learner have the length of a request at a leader of Apache ZooKeeper, and at any
 * other one that does not believe the learner to be a member.
 */
export const mostReported = (isMember: boolean, juteMaxBufferBytes: number): number =>
  isMember ? MAX_REPORTED : Math.min(MAX_IN_A_REQUEST, Math.floor(juteMaxBufferBytes / SESSION_BYTES))

/**
 * Takes up to `most` of the sessions that were touched, for the one answer to a PING: a leader counts the answers. Returns the data of the
 * report; a promise of them where very many sessions are taken over turns of the event loop.
 */
export function takeReport(
  sessions: LearnerSessions,
  most: number,
  clock: Pick<Clock, 'immediate'>,
): Uint8Array | Promise<Uint8Array> {
  // Those that are touched meanwhile come into the next report.
  const count = Math.min(sessions.unreported, most)
  return count <= REPORTED_PER_TURN
    ? encodeTouches(sessions.takeTouched(count))
    : takeOverTurns(sessions, count, clock)
}

async function takeOverTurns(
  sessions: LearnerSessions,
  count: number,
  clock: Pick<Clock, 'immediate'>,
): Promise<Uint8Array> {
  const parts: Uint8Array[] = []
  for (let left = count; left > 0; left -= REPORTED_PER_TURN) {
    if (parts.length > 0) await new Promise<void>((resolve) => clock.immediate(resolve))
    parts.push(encodeTouches(sessions.takeTouched(Math.min(left, REPORTED_PER_TURN))))
  }
  return concatBytes(parts)
}
