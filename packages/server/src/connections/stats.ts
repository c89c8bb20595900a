import { Histogram, Summary } from '../core/histogram.ts'

/** What a server counts since it started or since `srst`. Times in milliseconds, sizes in bytes. */
export class ServerStats {
  /** From the arrival of a request to its reply. */
  readonly latency = new Summary()
  readonly readLatency = new Histogram()
  readonly updateLatency = new Histogram()
  readonly fsyncTime = new Summary()
  readonly snapshotTime = new Summary()
  /** Transactions that became durable together. */
  readonly batchSize = new Summary()
  /** Replies to requests, with their length and header. */
  readonly responseSize = new Summary()
  lastResponseSize = -1
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
  /** Handshakes, for new sessions and for known ones. */
  sessionsRequested = 0
  sessionsResumed = 0
  sessionsExpired = 0
  /** Connections that asked for nothing in time. */
  sessionlessExpired = 0
  requestsThrottled = 0
  largeRequestsRejected = 0
  snapshotErrors = 0
  /** Handshakes of TLS are counted by the network, which nobody resets: those before `srst` are taken off. */
  tlsExceededAtReset = 0
  tlsFailedAtReset = 0

  countPlainConnection(isLocal: boolean): void {
    if (isLocal) this.plainLocal++
    else this.plainRemote++
  }

  reset(): void {
    Object.assign(this, new ServerStats())
  }
}
