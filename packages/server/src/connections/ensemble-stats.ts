import { Histogram } from '../core/histogram.ts'
import { Statistics } from '../core/statistics.ts'
import { LeastValue } from './least-value.ts'

/** The packets that wait for a learner, in number, and how long the first of them waits. */
export interface PacketQueueFigures {
  readonly size: Histogram
  readonly time: Histogram
}

/** Holds the statistics of a member about elections and replication. Times are in milliseconds. */
export class EnsembleStats extends Statistics {
  /** From the search for a leader to a decided role. */
  readonly electionTime = new Histogram()
  /** From the end of one role to the next one that serves. */
  readonly unavailableTime = new Histogram()
  /** The same, where the next role is that of the leader. */
  readonly leaderUnavailableTime = new Histogram()
  /** From the first attempt to connect to a leader until the learner is synced. */
  readonly followerSyncTime = new Histogram()
  readonly observerSyncTime = new Histogram()
  /** From the proposal of a transaction to its acknowledgement by a quorum, on the leader. */
  readonly quorumAckLatency = new Histogram()
  /** From the proposal of a transaction to its acknowledgement by each member, on the leader: of one transaction in 32. */
  readonly ackLatency = new Map<number, Histogram>()
  /** The packets that wait for each member, on the leader and on an observer master. */
  readonly packetQueues = new Map<number, PacketQueueFigures>()
  /** From a proposal of the leader until it is sent to the observers of this follower, and the time to send it. */
  readonly relayTime = new Histogram()
  readonly relayCommitTime = new Histogram()
  /** From the time of the leader in a transaction until this learner has the proposal. */
  readonly proposalLatency = new Histogram()
  /** From that time until this learner has sent the acknowledgement; one proposal is measured at a time. */
  readonly ackCreationLatency = new Histogram()
  /** From the time of the leader in a transaction until this learner applies it; only where the clocks do not show less than 0. */
  readonly propagationLatency = new Histogram()
  /**
   * The clock of this learner minus the time of the leader in a transaction, when its proposal or its commit arrives: how far the clock is
   * ahead, plus the way. The least is the nearest to the truth. Kept by `reset`.
   */
  readonly clockAhead = new LeastValue()
  /** Syncs of learners in progress, counted when one begins. */
  readonly inFlightSnaps = new Histogram()
  readonly inFlightDiffs = new Histogram()
  /** Searches for a leader. */
  lookingCount = 0
  /** Learners that this leader has synced with single transactions, and with a snapshot. */
  diffCount = 0
  snapCount = 0
  /** Transactions that this leader has proposed, and that it has committed. */
  proposalCount = 0
  commitCount = 0
  /** Proposals and commits that a leader has sent to this learner. */
  learnerProposalsReceived = 0
  learnerCommitsReceived = 0
  /** Sessions that this leader has checked for its learners. */
  revalidateCount = 0
  /** Logins of members here: those that have proved who they are, those that were refused, and connections that need none and had none. */
  loginsProved = 0
  loginsRefused = 0
  loginsSkipped = 0

  /** Returns what measures the packets that wait for a member. */
  packetQueueOf(id: number): PacketQueueFigures {
    let figures = this.packetQueues.get(id)
    if (figures === undefined)
      this.packetQueues.set(id, (figures = { size: new Histogram(), time: new Histogram() }))
    return figures
  }

  override rotate(): void {
    super.rotate()
    this.clockAhead.rotate()
    for (const latency of this.ackLatency.values()) latency.rotate()
    for (const { size, time } of this.packetQueues.values())
      for (const values of [size, time]) values.rotate()
  }
}
