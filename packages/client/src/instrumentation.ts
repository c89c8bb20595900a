import type { ZooKeeperError } from './errors.ts'
import type { StateChange } from './types.ts'

export interface RequestInfo {
  readonly operation: string
  readonly path?: string
  /** The server that the client is connected to, if any. */
  readonly server?: string
}

export interface RequestOutcome {
  readonly error?: ZooKeeperError
  /** Length of the request, 0 if it was not sent. */
  readonly requestBytes: number
  /** Length of the reply, 0 if there was none. */
  readonly replyBytes: number
  /** The zxid in the header of the reply. */
  readonly zxid?: bigint
}

/** Called once when a request ends. */
export type RequestEndCallback = (outcome: RequestOutcome) => void

/**
 * Instrumentation hooks without dependencies. They never receive node data or credentials, and their errors are
 * ignored.
 */
export interface Instrumentation {
  /** Called when a request begins; the returned callback is called when it ends. */
  request?(info: RequestInfo): RequestEndCallback | void
  state?(change: StateChange): void
  /** A connection attempt failed. */
  attempt?(info: { server: string; error: Error }): void
  event?(info: { type: string; path?: string; watchers: number }): void
  recipe?(info: { recipe: string; path: string; phase: string; waitedMs?: number }): void
  /** The event loop was blocked: a timer fired `lateMs` milliseconds late. */
  stall?(lateMs: number): void
}
