import { isQuorumOfAll, type QuorumVerifiers, type ServerId } from '../quorum/index.ts'

/** -2^63: the leader in a vote of a server that is no voter, and the zxid and epoch in that of an observer. */
export const NO_VALUE = -(2 ** 63)

/** The zxid of a server whose data cannot be trusted; its votes do not count. */
export const UNTRUSTED_ZXID = -1

/** The state of a server in an election, with its code on the wire. */
export const PeerState = { looking: 0, following: 1, leading: 2, observing: 3 } as const
export type PeerState = keyof typeof PeerState

/** The leader that a server votes for, with the values that rank it. */
export interface Vote {
  readonly leader: ServerId
  /** The last transaction in the leader's log. */
  readonly zxid: number
  /** The election round of the vote: each server counts its elections. */
  readonly round: number
  /** The leader's currentEpoch. */
  readonly epoch: number
}

/** The last vote received from a server. */
export interface ReceivedVote extends Vote {
  readonly state: PeerState
  /** Format version of the message; 0 in sets whose comparison ignores the epoch. */
  readonly version: number
}

/** Received votes by sender. */
export type ReceivedVotes = ReadonlyMap<ServerId, ReceivedVote>

/**
 * Returns whether one vote ranks above another: by epoch, then zxid, then id (quorum-protocol 5.3). A newer epoch beats a
 * longer log, since the excess of a log of an older epoch was never committed. A candidate with weight 0 never ranks above
 * another.
 */
export function isBetterVote(
  challenger: Omit<Vote, 'round'>,
  holder: Omit<Vote, 'round'>,
  verifiers: QuorumVerifiers,
): boolean {
  if (weightOf(challenger.leader, verifiers) === 0) return false
  if (challenger.epoch !== holder.epoch) return challenger.epoch > holder.epoch
  if (challenger.zxid !== holder.zxid) return challenger.zxid > holder.zxid
  return challenger.leader > holder.leader
}

/** A voter of the proposed configuration alone must be electable too: it may have seen that configuration activated. */
function weightOf(id: ServerId, { active, proposed }: QuorumVerifiers): number {
  return active.weightOf(id) || (proposed?.weightOf(id) ?? 0)
}

/**
 * Returns whether two votes are for the same leader (quorum-protocol 5.4). When either sender is looking, all fields must
 * be equal. Otherwise leader and epoch count: zxid and round are those of the election in which each sender decided.
 * Senders of messages without a version do not update the epoch of their vote, so against these only the leader counts.
 */
export function isSameVote(a: ReceivedVote, b: ReceivedVote): boolean {
  if (a.leader !== b.leader) return false
  if (a.state === 'looking' || b.state === 'looking')
    return a.zxid === b.zxid && a.round === b.round && a.epoch === b.epoch
  return a.version > 0 !== b.version > 0 || a.epoch === b.epoch
}

/** The time of one server as a leader: the round of its vote is of the election that it has won. */
export interface LeaderTerm {
  readonly leader: ServerId
  readonly round: number
}

/** Returns whether a vote names the leader of a term, in the election that this leader has won. */
export const isOfTerm = ({ leader, round }: Vote, term: LeaderTerm | undefined): boolean =>
  term?.leader === leader && term.round === round

/** Returns the senders of the same vote. */
export function supportersOf(votes: ReceivedVotes, vote: ReceivedVote): Set<ServerId> {
  const supporters = new Set<ServerId>()
  for (const [id, received] of votes) if (isSameVote(received, vote)) supporters.add(id)
  return supporters
}

/** Returns whether the senders of the same vote are a quorum of the active and of a newer proposed configuration. */
export function hasQuorum(votes: ReceivedVotes, vote: ReceivedVote, verifiers: QuorumVerifiers): boolean {
  return isQuorumOfAll(verifiers, supportersOf(votes, vote))
}

/**
 * Returns whether the leader of a vote has confirmed that it leads (`leaderOk` of quorum-protocol 5.5). A quorum of
 * followers is not enough, since their leader may have died. This server itself leads by votes of its current round.
 */
export function isConfirmedLeader(votes: ReceivedVotes, vote: Vote, self: ServerId, round: number): boolean {
  if (vote.leader === self) return vote.round === round
  return votes.get(vote.leader)?.state === 'leading'
}
