import { formatZxid } from '@zabra/protocol'
import type { ServerId } from '../quorum/index.ts'
import type { Zxid } from '../types.ts'
import type { ConnectionId } from './leader-types.ts'

/**
 * How far a learner is. `unidentified`: it has not sent FOLLOWERINFO or OBSERVERINFO. `identified`: it has. `epochSent`: it was
 * sent LEADERINFO. `epochAccepted`: it has sent ACKEPOCH. `syncing`: it is sent history. `synced`: it has acknowledged
 * NEWLEADER. `active`: it was sent UPTODATE.
 */
export type ProgressState =
  | 'unidentified'
  | 'identified'
  | 'epochSent'
  | 'epochAccepted'
  | 'syncing'
  | 'synced'
  | 'active'

/** The state of a connection to a learner, at its leader or observer master. */
export class LearnerProgress {
  readonly connection: ConnectionId
  /** Whether the other side has proved which server it is. */
  readonly isAuthenticated: boolean
  state: ProgressState = 'unidentified'
  serverId: ServerId = Number.NaN
  isObserver = false
  /** Whether its promise of an epoch and its ACK of NEWLEADER count if it is a voter. */
  helpsToLead = true
  /** The last transaction that it had when it connected, from ACKEPOCH. */
  lastZxid: Zxid = 0
  /** The tick by which a packet of it must arrive; Infinity while it waits for the leader. */
  deadline: number
  /** The last committed transaction that was sent to it before NEWLEADER. */
  syncedZxid: Zxid = -1
  /** The highest ACK received before that of NEWLEADER; -1 without one. */
  earlyAck: Zxid = -1
  /** Whether its sync data is still being sent. */
  isStreaming = false
  /** Whether it is sent proposals or commits. */
  hasJoined = false
  /** PINGs sent and answered: the k-th answer belongs to the k-th PING. */
  pingsSent = 0
  pingsAnswered = 0
  /** The number of the PING whose answer counts for the running leadership check, or 0. */
  checkPing = 0
  /** A proposal that was the newest one at tick `watchedSince`; -1 without one. */
  watchedZxid: Zxid = -1
  watchedSince = 0

  constructor(connection: ConnectionId, deadline: number, isAuthenticated: boolean) {
    this.connection = connection
    this.isAuthenticated = isAuthenticated
    this.deadline = deadline
  }
}

/** Returns whether a learner is identified and has not accepted the epoch. */
export const awaitsEpoch = ({ state }: LearnerProgress): boolean =>
  state === 'identified' || state === 'epochSent'

/** Returns whether a learner was sent UPTODATE. */
export const isActive = ({ state }: LearnerProgress): boolean => state === 'active'

/** Returns whether a learner is an active follower, whose ACKs count if it is a voter. */
export const isActiveFollower = (learner: LearnerProgress): boolean =>
  isActive(learner) && !learner.isObserver

/** Returns the ids of the active followers. */
export function activeFollowers(learners: Iterable<LearnerProgress>): Set<ServerId> {
  const servers = new Set<ServerId>()
  for (const learner of learners) if (isActiveFollower(learner)) servers.add(learner.serverId)
  return servers
}

/** The part of the commit tracker that the check for late ACKs reads. */
interface AckSource {
  readonly lastProposed: Zxid
  readonly acks: { ackedBy(server: ServerId): Zxid }
}

/**
 * Returns the reason to drop a learner that was silent for too long or is late with an ACK, or undefined
 * (quorum-protocol 11).
 */
export function overdueReason(
  learner: LearnerProgress,
  tracker: AckSource,
  tick: number,
  limit: number,
): string | undefined {
  if (tick > learner.deadline) return silenceReason(learner)
  if (isLate(learner, tracker, tick, limit))
    return `it has not acknowledged ${formatZxid(learner.watchedZxid)} in time`
  return undefined
}

/** Returns the reason to drop a learner whose deadline has passed. */
export const silenceReason = ({ state }: LearnerProgress): string =>
  `it was silent for too long in state ${state}`

/**
 * Returns whether an active follower leaves a proposal unacknowledged for more than `limit` ticks, even if a quorum has
 * acknowledged it. Watches one proposal at a time: the newest one when the follower was found behind.
 */
export function isLate(
  learner: LearnerProgress,
  { lastProposed, acks }: AckSource,
  tick: number,
  limit: number,
): boolean {
  if (!isActiveFollower(learner)) return false
  const acked = acks.ackedBy(learner.serverId)
  if (acked < learner.watchedZxid) return tick - learner.watchedSince > limit
  learner.watchedZxid = acked < lastProposed ? lastProposed : -1
  learner.watchedSince = tick
  return false
}
