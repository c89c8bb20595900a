import type { ZooKeeperError } from './errors.ts'
import type { StateChange, Zxid } from './types.ts'

export interface RequestInfo {
  readonly operation: string
  readonly path?: string | undefined
  /** The server that the client is connected to, if any. */
  readonly server?: string | undefined
}

export interface RequestOutcome {
  readonly error?: ZooKeeperError | undefined
  /** Length of the request, 0 if it was not sent. */
  readonly requestBytes: number
  /** Length of the reply, 0 if there was none. */
  readonly replyBytes: number
  /** The zxid in the header of the reply. */
  readonly zxid?: Zxid | undefined
}

/** Called once when a request ends. */
export type RequestEndCallback = (outcome: RequestOutcome) => void

/**
 * Instrumentation hooks without dependencies. They never receive node data or credentials. What they throw, and what a promise of them
 * rejects with, is ignored.
 */
export interface Instrumentation {
  /** Called when a request begins; the returned callback is called when it ends. */
  request?(info: RequestInfo): RequestEndCallback | void
  state?(change: StateChange): void
  /** A connection attempt failed. */
  attempt?(info: { server: string; error: Error }): void
  event?(info: { type: string; path?: string | undefined; watchers: number }): void
  recipe?(info: { recipe: string; path: string; phase: string; waitedMs?: number | undefined }): void
  /** The event loop was blocked: a timer fired `lateMs` milliseconds late. */
  stall?(lateMs: number): void
}
