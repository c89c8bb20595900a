import { formatZxid } from '@zabra/protocol'
import type { ServerId } from '../quorum/index.ts'
import type { Zxid } from '../types.ts'
import type { ConnectionId } from './leader-types.ts'

/**
 * How far a learner has come: it has not said who it is; it has; it was told of the epoch; it has accepted that; it is being
 * brought up to date; it is in step and was told so, or will be at activation.
 */
export type HandlePhase = 'stranger' | 'known' | 'asked' | 'promised' | 'syncing' | 'synced' | 'active'

/** What a leader knows of one connection. */
export class Handle {
  readonly connection: ConnectionId
  phase: HandlePhase = 'stranger'
  server: ServerId = Number.NaN
  observer = false
  /** The last transaction that it has, as it said when it came. */
  zxid: Zxid = 0
  /** The tick by which it must have said something; none while it waits for us. */
  deadline: number
  /** What was committed when it was brought up to date. */
  synced: Zxid = -1
  /** The highest ACK that came before the one of NEWLEADER; -1 without one. */
  earlyAck: Zxid = -1
  /** Whether it is being sent a snapshot of a tree that changes meanwhile. */
  streaming = false
  /** Whether broadcast goes to it. */
  joined = false
  /** PINGs sent and answered: the k-th answer belongs to the k-th PING. */
  pinged = 0
  answered = 0
  /** The PING whose answer counts for the round of confirmations that runs, or 0. */
  target = 0
  /** A proposal that was the newest one when it was noted, and the tick of that. */
  tracked: Zxid = -1
  trackedSince = 0

  constructor(connection: ConnectionId, deadline: number) {
    this.connection = connection
    this.deadline = deadline
  }
}

/** All connections of a leader, in the order in which they came. */
export class Handles {
  readonly #all = new Map<ConnectionId, Handle>()
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

  get(connection: ConnectionId): Handle | undefined {
    return this.#all.get(connection)
  }

  add(handle: Handle): void {
    this.#all.set(handle.connection, handle)
  }

  join(handle: Handle): void {
    handle.joined = true
    ;(handle.observer ? this.#observers : this.#followers).push(handle.connection)
  }

  remove(handle: Handle): void {
    this.#all.delete(handle.connection)
    if (!handle.joined) return
    const without = (list: ConnectionId[]): ConnectionId[] => list.filter((id) => id !== handle.connection)
    if (handle.observer) this.#observers = without(this.#observers)
    else this.#followers = without(this.#followers)
  }

  *[Symbol.iterator](): IterableIterator<Handle> {
    yield* this.#all.values()
  }

  /** How many have said who they are. */
  get learners(): number {
    let count = 0
    for (const { phase } of this.#all.values()) if (phase !== 'stranger') count++
    return count
  }

  /** Whether anybody but observers is here and has said who it is. */
  get hasParticipants(): boolean {
    for (const { phase, observer } of this.#all.values()) if (phase !== 'stranger' && !observer) return true
    return false
  }

  /** Other connections of the same server. */
  formerOf(handle: Handle): Handle[] {
    return [...this.#all.values()].filter((other) => other !== handle && other.server === handle.server)
  }

  /** Those who have not, oldest first. */
  strangers(): Handle[] {
    return [...this.#all.values()].filter(({ phase }) => phase === 'stranger')
  }
}

/** Whether it has said who it is and promised nothing yet. */
export const hasOnlyCome = ({ phase }: Handle): boolean => phase === 'known' || phase === 'asked'

/** Whether its voice counts, if it has one. */
export const votes = ({ phase, observer }: Handle): boolean => phase === 'active' && !observer

/** Followers that are in step. */
export function inStepOf(handles: Iterable<Handle>): Set<ServerId> {
  const servers = new Set<ServerId>()
  for (const handle of handles) if (votes(handle)) servers.add(handle.server)
  return servers
}

/** Why a learner is given up, if it is: T1 it was silent for too long, or it is late (T2). */
export function isOverdue(
  handle: Handle,
  commits: { lastProposed: Zxid; proposals: { ackedBy(server: ServerId): Zxid } },
  tick: number,
  limit: number,
): string | undefined {
  if (tick > handle.deadline) return `it was silent for too long while it was ${handle.phase}`
  if (isLate(handle, commits, tick, limit))
    return `it has not acknowledged ${formatZxid(handle.tracked)} in time`
  return undefined
}

/**
 * T2 (11) Whether a follower leaves a proposal unacknowledged for too long, which puts it out of step however others do. One
 * proposal at a time is watched: the last one there is when it is behind.
 */
function isLate(
  handle: Handle,
  { lastProposed, proposals }: { lastProposed: Zxid; proposals: { ackedBy(server: ServerId): Zxid } },
  tick: number,
  limit: number,
): boolean {
  if (!votes(handle)) return false
  const acked = proposals.ackedBy(handle.server)
  if (acked < handle.tracked) return tick - handle.trackedSince > limit
  handle.tracked = acked < lastProposed ? lastProposed : -1
  handle.trackedSince = tick
  return false
}
