import type { Session } from '../core/sessions/index.ts'
import type { Identity } from '../core/types.ts'
import type { NotifiedWatcher } from '../core/watches/index.ts'
import type { ClientOrigin, WriteCallback } from '../pipeline/index.ts'
import type { CloseCause } from './close-cause.ts'
import type { FlowControl } from './flow-control.ts'
import type { Flushable } from './flush-queue.ts'
import type { MemoryHolder } from './memory-budget.ts'
import type { ReplyWriter } from './reply-writer.ts'
import type { CountedClient } from './top-requests.ts'
import type { WaitingChannel } from './turn-shares.ts'

/**
 * The states of a client connection. `new`: no handshake yet. `connecting`: the handshake has no response yet. `open`: requests
 * are processed. `closing`: buffered replies are sent and nothing is read. `closed`: the socket is gone.
 */
export type ConnectionPhase = 'new' | 'connecting' | 'open' | 'closing' | 'closed'

/** Handles the requests of one connection. Receives the results of its writes. */
export interface ChannelRequests extends WriteCallback {
  /** The number of requests without a reply. */
  readonly length: number
  /** Processes the queued requests that need not wait. */
  process(): void
}

/** The interface of a client connection for the rest of the server. */
export interface ClientChannel extends NotifiedWatcher, Flushable, WaitingChannel, MemoryHolder {
  readonly phase: ConnectionPhase
  /** The identities that the client has proved; those of a queued request while that request is processed. */
  identities: readonly Identity[]
  /** Where the client connects from; undefined where nothing is audited. */
  readonly origin: ClientOrigin | undefined
  /** Whether the connection is encrypted. */
  readonly isSecure: boolean
  /** When the connection was accepted: wall clock, milliseconds since 1970. */
  readonly establishedAt: number
  /** The session, once the handshake is complete. A local session is replaced when it becomes a global one. */
  session: Session | undefined
  readonly flow: FlowControl
  readonly requests: ChannelRequests
  readonly replyWriter: ReplyWriter
  /** Memory that its watches take, in bytes; 0 without any. */
  readonly watchBytes: number
  /** What `TopRequests` knows of the connection. */
  counted: CountedClient | undefined
  /** Leaves the requests that wait, and those that are not parsed yet, to a later turn of the event loop. */
  waitForTurn(): void
  /** Sends the buffered bytes, then closes. Logs the reason with the fields of `context`. The session continues without a connection. */
  closeAfterFlush(cause: CloseCause, reason: string, context?: object): void
  /** Reads no more. Calls `onAnswered` once each request that has arrived has its reply, or the connection closes. */
  finishRequests(onAnswered: () => void): void
  /** Closes at once. The session continues without a connection. */
  destroy(cause: CloseCause, reason: string, context?: object): void
}
