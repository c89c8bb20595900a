import type { HandshakeStats, System } from '@zabra/runtime'
import { Histogram, summaryOfBoth, type Summary } from '../core/histogram.ts'
import type { ChangeCounts } from '../core/prepare/index.ts'
import { Statistics } from '../core/statistics.ts'
import { WatchStats } from '../core/watches/index.ts'
import { WriteStages } from '../core/write-stages.ts'
import { CLOSE_CAUSES, type CloseCause } from './close-cause.ts'
import { CommitStats } from './commit-stats.ts'
import { EnsembleStats } from './ensemble-stats.ts'
import { RequestCounts } from './request-counts.ts'

/** Why a server refuses a connection or a session. */
export type RefusalReason =
  | 'address'
  | 'total'
  | 'descriptors'
  | 'not_serving'
  | 'stopping'
  | 'draining'
  | 'tokens'
  | 'read_only'
  | 'behind'
  | 'sessions'
  | 'memory'

interface StartTimes {
  readonly snapshotMs: number
  readonly logMs: number
  readonly replayed: number
}

/** Holds the statistics of a server, which `srst` resets. Times are in milliseconds, sizes in bytes. */
export class ServerStats extends Statistics {
  /** From the receipt of a read to its reply; of every request that is no write. */
  readonly readLatency = new Histogram()
  readonly updateLatency = new Histogram()
  /** From the receipt of a sync, and of a connect request for a session, to its reply. */
  readonly syncLatency = new Histogram()
  readonly sessionLatency = new Histogram()
  readonly fsyncTime = new Histogram()
  readonly snapshotTime = new Histogram()
  /** Transactions in one flush of the log. */
  readonly batchSize = new Histogram()
  /** What the start took: both parts of the recovery, and its transactions. Kept by `reset`. */
  readonly startup = {
    snapshotMs: new Histogram(),
    logMs: new Histogram(),
    totalMs: new Histogram(),
    transactions: new Histogram(),
  }
  /** Replies by operation and result. Kept by `reset`. */
  readonly requests = new RequestCounts()
  readonly ensemble = new EnsembleStats()
  readonly watches = new WatchStats()
  readonly commits = new CommitStats()
  /** Pending changes of the data, on a server that prepares writes. Kept by `reset`. */
  readonly changes: ChangeCounts = { added: 0, removed: 0 }
  /** Kept by `reset`. */
  readonly stages = new WriteStages()
  /** Connections and sessions that were refused; all reasons are there from the begin. Kept by `reset`. */
  readonly refusals: Record<RefusalReason, number> = {
    address: 0,
    total: 0,
    descriptors: 0,
    not_serving: 0,
    stopping: 0,
    draining: 0,
    tokens: 0,
    read_only: 0,
    behind: 0,
    sessions: 0,
    memory: 0,
  }
  /** Connections that have ended, by cause; all causes are there from the begin. Kept by `reset`. */
  readonly closed = Object.fromEntries(CLOSE_CAUSES.map((cause) => [cause, 0])) as Record<CloseCause, number>
  /** Bytes of replies with their length field and header; -1 before the first. */
  lastResponseSize = -1
  minResponseSize = -1
  maxResponseSize = -1
  /** Flushes of the log that took longer than `fsync.warningthresholdms`. */
  slowFsyncs = 0
  received = 0
  sent = 0
  requestBytes = 0
  responseBytes = 0
  authFailed = 0
  /** Connections without TLS, from this machine and from others. */
  plainLocal = 0
  plainRemote = 0
  connectionsRejected = 0
  connectionsDropped = 0
  /** Connect requests for new and for known sessions. */
  sessionsRequested = 0
  sessionsResumed = 0
  sessionsExpired = 0
  /** Sessions that their clients have ended here, and that operators have. */
  sessionsClosed = 0
  sessionsKilled = 0
  /** Connections that sent no request in time. */
  sessionlessExpired = 0
  requestsThrottled = 0
  /** Milliseconds for which a connection was not read: of the first one that is read again in a turn. */
  readonly throttledTime = new Histogram()
  /** Bytes that a client had not read, when its socket took no more. */
  readonly unsentBytes = new Histogram()
  /** Results of requests whose connections were closed. */
  staleReplies = 0
  largeRequestsRejected = 0
  snapshotErrors = 0
  snapshotsRateLimited = 0
  /** Restores of a snapshot by the command `restore`. */
  readonly restoreTime = new Histogram()
  restoreErrors = 0
  restoresRateLimited = 0
  /** New sessions that were refused because there was no token for them. */
  readonly tokenDeficit = new Histogram()
  /** Times for which the event loop was held, each over 100 ms, until the last `countHolds`. */
  readonly holds = new Histogram()
  /** TLS handshakes are counted by the network, whose counters cannot be reset: their values at the last `srst`. */
  handshakesAtReset: Omit<HandshakeStats, 'active'> = { rejected: 0, failed: 0 }

  readonly #system: Pick<System, 'longHolds'>
  /** How many holds of the process are in `holds`, or were before a reset. */
  #holdsSeen = 0

  constructor(system: Pick<System, 'longHolds'> = {}) {
    super()
    this.#system = system
  }

  countPlainConnection(isLocal: boolean): void {
    if (isLocal) this.plainLocal++
    else this.plainRemote++
  }

  /** From the receipt of any request to its reply. */
  get latency(): Summary {
    return summaryOfBoth(this.readLatency, this.updateLatency)
  }

  /** Adds those holds of the process to `holds` that have come since the last call. */
  countHolds(): void {
    const { count, last } = this.#system.longHolds?.() ?? { count: 0, last: [] }
    for (const ms of last.slice(Math.max(0, last.length - (count - this.#holdsSeen)))) this.holds.add(ms)
    this.#holdsSeen = count
  }

  /** Records what the recovery at the start took, in milliseconds, and its transactions. */
  recordStart({ snapshotMs, logMs, replayed }: StartTimes): void {
    this.startup.snapshotMs.add(snapshotMs)
    this.startup.logMs.add(logMs)
    this.startup.totalMs.add(snapshotMs + logMs)
    this.startup.transactions.add(replayed)
  }

  override reset(): void {
    this.countHolds()
    super.reset()
    this.ensemble.reset()
    this.watches.reset()
    this.commits.reset()
    this.lastResponseSize = this.minResponseSize = this.maxResponseSize = -1
  }

  override rotate(): void {
    this.countHolds()
    super.rotate()
    this.ensemble.rotate()
    this.watches.rotate()
    this.commits.rotate()
    this.stages.rotate()
    for (const values of Object.values(this.startup)) values.rotate()
  }
}
