import { Histogram } from '../core/histogram.ts'
import { Statistics } from '../core/statistics.ts'

/** Holds what is measured once for each turn with commits, over all roles of a server. Times are in milliseconds. */
export class CommitStats extends Statistics {
  /** From the begin of the turn until its replies are written; and the same divided by its transactions. */
  readonly batchTime = new Histogram()
  readonly timeOfOne = new Histogram()
  /** Sessions with requests that have no reply, these requests, and the reads among them, when the commits come. */
  readonly lines = new Histogram()
  readonly requestsInLines = new Histogram()
  readonly readsInLines = new Histogram()
  /** Reads that waited in such a line and are answered, and how long the first of them has waited. */
  readonly readsLeft = new Histogram()
  readonly readWait = new Histogram()
  /** Lines that became empty. */
  readonly linesDrained = new Histogram()
  /** Reads and writes that were answered since the last turn with commits. */
  readonly readsAnswered = new Histogram()
  readonly writesAnswered = new Histogram()
  /** Writes of clients that wait for their commit, and transactions that wait to be applied, when the commits come. */
  readonly writesInFlight = new Histogram()
  readonly commitsWaiting = new Histogram()
  /** Requests that wait to be prepared, on a server that prepares. */
  readonly waitingForPreparation = new Histogram()
  /** Writes that wait for the leader, on a learner. */
  readonly waitingForLeader = new Histogram()
}
