import { formatZxid } from '@zabra/protocol'
import type { ServerId } from '../quorum/index.ts'
import type { Zxid } from '../types.ts'
import type { ConnectionId } from './leader-types.ts'

/**
 * How far a learner has come: it has not said who it is; it has; it was told of the epoch; it has accepted that; it is being
 * brought up to date; it is in step and was told so, or will be at activation.
 */
export type ProgressState = 'stranger' | 'known' | 'asked' | 'promised' | 'syncing' | 'synced' | 'active'

/** What a leader knows of one connection. */
export class LearnerProgress {
  readonly connection: ConnectionId
  state: ProgressState = 'stranger'
  serverId: ServerId = Number.NaN
  isObserver = false
  /** The last transaction that it has, as it said when it came. */
  lastZxid: Zxid = 0
  /** The tick by which it must have said something; none while it waits for us. */
  deadline: number
  /** What was committed when it was brought up to date. */
  syncedZxid: Zxid = -1
  /** The highest ACK that came before the one of NEWLEADER; -1 without one. */
  earlyAck: Zxid = -1
  /** Whether it is being sent a snapshot of a tree that changes meanwhile. */
  isStreaming = false
  /** Whether broadcast goes to it. */
  hasJoined = false
  /** PINGs sent and answered: the k-th answer belongs to the k-th PING. */
  pingsSent = 0
  pingsAnswered = 0
  /** The PING whose answer counts for the round of confirmations that runs, or 0. */
  checkPing = 0
  /** A proposal that was the newest one when it was noted, and the tick of that. */
  watchedZxid: Zxid = -1
  watchedSince = 0

  constructor(connection: ConnectionId, deadline: number) {
    this.connection = connection
    this.deadline = deadline
  }
}

/** All connections of a leader, in the order in which they came. */
export class LearnerRegistry {
  readonly #learners = new Map<ConnectionId, LearnerProgress>()
  #followers: ConnectionId[] = []
  #observers: ConnectionId[] = []

  /** To whom PROPOSAL and COMMIT go. Whoever goes while they are told leaves them another list, so that nobody is passed over. */
  get followers(): readonly ConnectionId[] {
    return this.#followers
  }

  /** To whom INFORM goes; as `followers`. */
  get observers(): readonly ConnectionId[] {
    return this.#observers
  }

  get(connection: ConnectionId): LearnerProgress | undefined {
    return this.#learners.get(connection)
  }

  add(handle: LearnerProgress): void {
    this.#learners.set(handle.connection, handle)
  }

  join(handle: LearnerProgress): void {
    handle.hasJoined = true
    ;(handle.isObserver ? this.#observers : this.#followers).push(handle.connection)
  }

  remove(handle: LearnerProgress): void {
    this.#learners.delete(handle.connection)
    if (!handle.hasJoined) return
    const without = (list: ConnectionId[]): ConnectionId[] => list.filter((id) => id !== handle.connection)
    if (handle.isObserver) this.#observers = without(this.#observers)
    else this.#followers = without(this.#followers)
  }

  *[Symbol.iterator](): IterableIterator<LearnerProgress> {
    yield* this.#learners.values()
  }

  /** How many have said who they are. */
  get identifiedCount(): number {
    let count = 0
    for (const { state: phase } of this.#learners.values()) if (phase !== 'stranger') count++
    return count
  }

  /** Whether anybody but observers is here and has said who it is. */
  get hasParticipants(): boolean {
    for (const { state: phase, isObserver: observer } of this.#learners.values())
      if (phase !== 'stranger' && !observer) return true
    return false
  }

  /** Other connections of the same server. */
  othersOfServer(handle: LearnerProgress): LearnerProgress[] {
    return [...this.#learners.values()].filter(
      (other) => other !== handle && other.serverId === handle.serverId,
    )
  }

  /** Those who have not, oldest first. */
  unidentified(): LearnerProgress[] {
    return [...this.#learners.values()].filter(({ state: phase }) => phase === 'stranger')
  }
}

/** Whether it has said who it is and promised nothing yet. */
export const awaitsEpoch = ({ state: phase }: LearnerProgress): boolean =>
  phase === 'known' || phase === 'asked'

/** Whether its voice counts, if it has one. */
export const isActiveFollower = ({ state: phase, isObserver: observer }: LearnerProgress): boolean =>
  phase === 'active' && !observer

/** Followers that are in step. */
export function activeFollowers(handles: Iterable<LearnerProgress>): Set<ServerId> {
  const servers = new Set<ServerId>()
  for (const handle of handles) if (isActiveFollower(handle)) servers.add(handle.serverId)
  return servers
}

/** Why a learner is given up, if it is: T1 it was silent for too long, or it is late (T2). */
export function overdueReason(
  handle: LearnerProgress,
  commits: { lastProposed: Zxid; acks: { ackedBy(server: ServerId): Zxid } },
  tick: number,
  limit: number,
): string | undefined {
  if (tick > handle.deadline) return `it was silent for too long while it was ${handle.state}`
  if (isLate(handle, commits, tick, limit))
    return `it has not acknowledged ${formatZxid(handle.watchedZxid)} in time`
  return undefined
}

/**
 * T2 (11) Whether a follower leaves a proposal unacknowledged for too long, which puts it out of step however others do. One
 * proposal at a time is watched: the last one there is when it is behind.
 */
function isLate(
  handle: LearnerProgress,
  { lastProposed, acks }: { lastProposed: Zxid; acks: { ackedBy(server: ServerId): Zxid } },
  tick: number,
  limit: number,
): boolean {
  if (!isActiveFollower(handle)) return false
  const acked = acks.ackedBy(handle.serverId)
  if (acked < handle.watchedZxid) return tick - handle.watchedSince > limit
  handle.watchedZxid = acked < lastProposed ? lastProposed : -1
  handle.watchedSince = tick
  return false
}
