import type { Identity, LoggedTxn, SessionId, Zxid } from '../core/types.ts'
import type { NotifiedWatcher } from '../core/watches/index.ts'
import type { PipelineContext } from './types.ts'

/** Where transactions become durable. */
export interface PipelineLog {
  /** 'open' while it takes transactions. */
  readonly state: string
  /** Appends an encoded transaction, which may be sent to learners too and does not change. `adler` is its Adler-32, where that is known. */
  appendPayload(zxid: Zxid, payload: Uint8Array, adler?: number): void
}

/** The quorum as the leader's pipeline sees it; that of a standalone server is the server itself. Callbacks run inside `ClientService.runTurn`, possibly synchronously. */
export interface QuorumProtocol {
  /** Sends the transaction to the learners. It is appended to the log already. `commit` follows in order of zxids. */
  propose(zxid: Zxid, payload: Uint8Array, logged: LoggedTxn): void
  /**
   * Calls back, in the order of the calls, once all that was proposed before is committed (and told by `commit`) and a
   * quorum has confirmed since that this server leads. Never, when the leadership ends first.
   */
  confirmLeadership(done: () => void): void
  /** A sync of a learner is over: SYNC goes to it behind all that was sent. */
  sendSync(learner: object): void
  /** False once leadership is being handed over or the counter of the epoch is used up: then the role ends soon. */
  readonly isAccepting: boolean
}

/** A request that a learner forwards (REQUEST packet). */
export interface ForwardedRequest {
  readonly sessionId: SessionId
  readonly cxid: number
  readonly type: number
  /** The client's bytes behind the header. */
  readonly body: Uint8Array
  readonly identities: readonly Identity[]
}

/** What a leader is made of. */
export interface LeaderPipelineOptions<L extends NotifiedWatcher> extends PipelineContext<L> {
  readonly log: PipelineLog
  readonly quorum: QuorumProtocol
  /** The zxid before the first transaction: that of the last transaction on a standalone server, else the first zxid of the epoch. */
  readonly lastZxid: Zxid
  readonly serverId: number
  /** Whether a local session becomes global when it needs to (`localSessionsUpgradingEnabled`). */
  readonly canUpgradeSessions?: boolean
}
