import { isQuorumOfAll, type QuorumVerifiers, type ServerId } from '../quorum/index.ts'

/** -2^63: the id that a server without a voice names, and its zxid and epoch when it is an observer. */
export const NO_VALUE = -(2 ** 63)

/** The zxid of a server whose data cannot be trusted; it takes no part in choosing. */
export const UNTRUSTED_ZXID = -1

/** What a server is doing, by the code that it has on the wire. */
export const PeerState = { looking: 0, following: 1, leading: 2, observing: 3 } as const
export type PeerState = keyof typeof PeerState

/** Who should lead and why. */
export interface Vote {
  readonly leader: ServerId
  /** The last transaction in the leader's log. */
  readonly zxid: number
  /** The round in which the vote is cast: each server counts its elections. */
  readonly round: number
  /** The epoch in which the leader was last part of an ensemble. */
  readonly epoch: number
}

/** A vote as it is kept for the server that cast it. */
export interface ReceivedVote extends Vote {
  readonly state: PeerState
  /** Of the message that brought it; 0 where the message's version must not matter. */
  readonly version: number
}

/** Ballots by the server that cast them. */
export type ReceivedVotes = ReadonlyMap<ServerId, ReceivedVote>

/**
 * V1 The total order: epoch first, then zxid, then id. A newer epoch beats a longer log, since what is longer in an
 * older epoch was never committed. Whoever has no weight cannot be better than anybody.
 */
export function isBetterVote(
  challenger: Omit<Vote, 'round'>,
  holder: Omit<Vote, 'round'>,
  quorums: QuorumVerifiers,
): boolean {
  if (weightOf(challenger.leader, quorums) === 0) return false
  if (challenger.epoch !== holder.epoch) return challenger.epoch > holder.epoch
  if (challenger.zxid !== holder.zxid) return challenger.zxid > holder.zxid
  return challenger.leader > holder.leader
}

/** A candidate of the proposed configuration alone must be electable too: it may have seen that one come into force. */
function weightOf(id: ServerId, { active, proposed }: QuorumVerifiers): number {
  return active.weightOf(id) || (proposed?.weightOf(id) ?? 0)
}

/**
 * V2 Whether two ballots mean the same leader. While somebody chooses, everything must agree. Of those who have
 * chosen, the leader and its epoch count: zxid and round are those of whenever each of them chose. Messages without a
 * version come from servers that do not keep the epoch of their vote up to date, so against these only the leader counts.
 */
export function isSameVote(a: ReceivedVote, b: ReceivedVote): boolean {
  if (a.leader !== b.leader) return false
  if (a.state === 'looking' || b.state === 'looking')
    return a.zxid === b.zxid && a.round === b.round && a.epoch === b.epoch
  return a.version > 0 !== b.version > 0 || a.epoch === b.epoch
}

/** V3 Whether those who cast a matching ballot are a quorum of each configuration that matters. */
export function hasQuorum(ballots: ReceivedVotes, vote: ReceivedVote, quorums: QuorumVerifiers): boolean {
  const supporters = new Set<ServerId>()
  for (const [id, ballot] of ballots) if (isSameVote(ballot, vote)) supporters.add(id)
  return isQuorumOfAll(quorums, supporters)
}

/**
 * V4 Whether somebody whom others follow does lead: it says so itself. A quorum of followers is not enough, since
 * their leader may have died a moment ago. Of myself I know it when they speak of the round that I am in.
 */
export function isConfirmedLeader(
  ballots: ReceivedVotes,
  vote: Vote,
  self: ServerId,
  round: number,
): boolean {
  if (vote.leader === self) return vote.round === round
  return ballots.get(vote.leader)?.state === 'leading'
}
