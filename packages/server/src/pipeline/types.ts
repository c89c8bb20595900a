import type { Reader } from '@zabra/protocol'
import type { Clock, TlsParameters } from '@zabra/runtime'
import type { Preparer, SessionsView } from '../core/prepare/index.ts'
import type { Session, SessionRegistry, SessionTracker } from '../core/sessions/index.ts'
import type { ApplyHint, Tree } from '../core/tree/index.ts'
import type { CloseSessionTxn, Digest, Identity, LoggedTxn, SessionId, SubTxn, Zxid } from '../core/types.ts'
import type { NotifiedWatcher, WatchNotifier } from '../core/watches/index.ts'
import type { WriteStages } from '../core/write-stages.ts'

/** Where a client connects from, for the audit log. */
export interface ClientOrigin {
  readonly ip: string
  /** Undefined where the client connects by way of a proxy, as is `tls`. */
  readonly port?: number
  /** What its TLS connection has agreed on; undefined without TLS. */
  readonly tls?: (TlsParameters & { readonly subject?: string }) | undefined
  /** Over what its request came, unless that is the protocol of clients. */
  readonly via?: 'http'
}

/** Receives the outcome of a write or a sync. */
export interface WriteCallback {
  /** Where the client connects from, if it is recorded. */
  readonly origin?: ClientOrigin | undefined
  /**
   * Called for each part of a multi: with `isApplied`, while the tree shows the part's result; without, when the multi has failed
   * and no part is applied.
   */
  onPart(txn: SubTxn, isApplied: boolean): void
  /** Called when the write is applied, or has failed under its zxid. */
  onApplied(write: AcceptedWrite, err: number): void
  /** Called when the write is known not to have happened: its transaction was lost before it was durable. */
  onLost(write: Pick<AcceptedWrite, 'xid' | 'type'>): void
  /** Called when the oldest sync is done: everything committed before it arrived is applied here. */
  onSynced(): void
}

/** A write between its acceptance and its reply. */
export interface AcceptedWrite {
  readonly logged: LoggedTxn
  /** Results of the preparation, if it was prepared here. */
  readonly hint?: ApplyHint
  readonly xid: number
  /** The op code of the request. */
  readonly type: number
  readonly callback: WriteCallback | undefined
}

/** A write of a client of this server; its body follows separately. */
export interface ClientWrite {
  readonly sessionId: SessionId
  readonly xid: number
  readonly type: number
  readonly identities: readonly Identity[]
}

/** Receives a revalidation result, at most once; possibly synchronously; never if the role ends first. */
export interface RevalidationCallback {
  onRevalidated(valid: boolean): void
  /** The session lives, and may not go on at this server: its client is to go to another one. */
  onRefused(): void
}

/** Digests of the tree at every 128th zxid, the last 1024 of them, for comparing servers. */
export type RecordedDigests = readonly { readonly zxid: Zxid; readonly digest: Digest }[]

/**
 * Executes the requests of clients that are not reads of this server's own tree. Each role has its own pipeline.
 *
 * When the role ends (`end`), in-flight requests get no reply: their outcome is unknown, and their connections close.
 * `WriteCallback.onLost` is only for writes that are known not to have happened.
 */
export interface RequestPipeline {
  /** Counts the writes of this server's clients that are accepted and not answered. */
  readonly outstanding: number
  /** Counts the requests and transactions that wait until they are prepared, committed or applied here, those of other servers included. */
  readonly transactions: number
  /** Counts the requests that wait until they are prepared here; undefined where another server prepares them. */
  readonly unprepared: number | undefined
  /** Counts the transactions that are committed and wait until they are applied here. */
  readonly unapplied: number
  /** How many requests and transactions wait, by what they wait for. */
  readonly queues: Readonly<Record<string, number>>
  /** Whether writes are accepted now: not while the disk is full, and never on a read-only server. */
  readonly isWritable: boolean
  /** The highest zxid that a client may have seen and still be served here. */
  readonly lastVisibleZxid: Zxid
  readonly digests: RecordedDigests

  /**
   * Accepts a write. Returns 0 when `callback` will be called, else the error number of a request that takes no zxid: it cannot
   * be decoded, there is no space for it, or this server accepts no writes. `body` is valid only during the call.
   */
  write(write: ClientWrite, body: Reader, callback: WriteCallback): number
  /** Creates a session. Returns false while nothing can be written. */
  createSession(id: SessionId, timeout: number, callback: WriteCallback): boolean
  /** Closes a session and removes its ephemeral nodes. Returns false while nothing can be written. */
  closeSession(id: SessionId, xid: number, callback: WriteCallback | undefined): boolean
  /**
   * Calls `callback.onSynced` once this server has applied everything that was committed at the time of the call, never during the
   * call. Returns undefined then, 0 when everything is applied already, and an error number when this server cannot sync.
   */
  sync(write: ClientWrite, callback: WriteCallback): number | undefined
  /** Checks whether a session may continue here, and makes this server its owner if so. `timeout` is the newly negotiated one. */
  revalidate(id: SessionId, timeout: number, callback: RevalidationCallback): void
  /** Whether to answer the ping of a client at `now` on the monotonic clock: not when its session may have expired elsewhere. */
  canAnswerPing(timeout: number, now: number): boolean
  /**
   * Removes a container or an expired TTL node, unless a change of it is pending, or `isDue` returns false when the request is
   * prepared. Absent where another server does that.
   */
  deleteContainer?(path: string, isDue: () => boolean): boolean
  /**
   * Ends the role: no callback is called any more. Returns the steps that the transaction which is being applied has left. They must be
   * done before the next role: the tree and its sessions must not stay inconsistent.
   */
  end(): Generator<void> | undefined
}

/** The dependencies of the pipelines of all roles. */
export interface PipelineContext<L extends NotifiedWatcher> {
  readonly tree: Tree
  readonly watchNotifier: WatchNotifier<L>
  readonly clock: Clock
  readonly sessions: SessionRegistry
  /** Sessions that only this server knows; undefined when the settings allow none. */
  readonly localSessions: SessionTracker | undefined
  /** Creates the preparer on the leader; `sessions` decides which sessions may write. */
  readonly createPreparer: (sessions: SessionsView) => Preparer
  readonly stages: WriteStages
  /** Returns when the current turn of the event loop began, on the monotonic clock. */
  readonly turnTime: () => number
  /** Runs an action in a later turn of the event loop. */
  readonly defer: (action: () => void) => void
  /** Whether reads wait that came while a transaction was applied in steps: no other is applied before them. */
  readonly hasDeferredReads: () => boolean
  /** Called when a session is global; it may have been a local one until then. */
  readonly onSessionCreated: (session: Session) => void
  /** Called when the user of a session is stored in the tree. */
  readonly onSessionUserStored: (id: SessionId) => void
  /** Called when a session is closed. Its connection here closes, unless it is the one that gets the reply. */
  readonly onSessionClosed: (id: SessionId, callback: WriteCallback | undefined, txn: CloseSessionTxn) => void
  /** Called when a session may not become global that was a local one until then. It is none any more. */
  readonly onUpgradeRefused: (id: SessionId) => void
}

/** The transaction log, as far as the leader's pipeline writes it. */
export interface PipelineLog {
  /** 'open' while it accepts transactions. */
  readonly state: string
  /** Appends a transaction that no other server gets. */
  append(logged: LoggedTxn): void
  /** Appends an encoded transaction, which goes to learners too and must not change until it is durable. `adler` is its Adler-32, if it is known. */
  appendPayload(zxid: Zxid, payload: Uint8Array, adler?: number): void
}

/**
 * The quorum, as far as the leader's pipeline uses it; that of a standalone server is the server itself. Callbacks run inside
 * `ClientService.runTurn`, possibly synchronously.
 */
export interface QuorumProtocol {
  /** Whether transactions go to other servers. If not, they are encoded into the log only, and `propose` gets an empty payload. */
  readonly sendsPayloads: boolean
  /** Sends a transaction, which is appended to the log already, to the learners. `commit` follows in the order of zxids. */
  propose(zxid: Zxid, payload: Uint8Array, logged: LoggedTxn): void
  /**
   * Calls back, in the order of the calls, once everything proposed before is committed and a quorum has confirmed since that
   * this server leads. Never calls back if the leadership ends first.
   */
  confirmLeadership(done: () => void): void
  /** Sends SYNC to a learner, after everything sent to it before. */
  sendSync(learner: object): void
  /** False once leadership is being transferred or the counter of the epoch is exhausted: then the role ends soon. */
  readonly isAccepting: boolean
}

export interface LeaderPipelineOptions<L extends NotifiedWatcher> extends PipelineContext<L> {
  readonly log: PipelineLog
  readonly quorum: QuorumProtocol
  /** The zxid before the first transaction: that of the last transaction on a standalone server, else the first of the epoch. */
  readonly lastZxid: Zxid
  readonly serverId: number
  /** Whether a local session becomes global when it needs to (`localSessionsUpgradingEnabled`). */
  readonly canUpgradeSessions?: boolean
}
