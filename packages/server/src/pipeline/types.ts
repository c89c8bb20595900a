import type { Reader } from '@zabra/protocol'
import type { Clock } from '@zabra/runtime'
import type { Preparer, SessionsView } from '../core/prepare/index.ts'
import type { Session, SessionRegistry, SessionTracker } from '../core/sessions/index.ts'
import type { ApplyHint, Tree } from '../core/tree/index.ts'
import type { Digest, Identity, LoggedTxn, SessionId, SubTxn, Zxid } from '../core/types.ts'
import type { WatchNotifier, NotifiedWatcher } from '../core/watches/index.ts'

/** Who waits for a write or a sync. */
export interface WriteCallback {
  /** A part of the requester's multi is applied, and the tree shows its result; or none is, since one has failed. */
  onPart(txn: SubTxn, isApplied: boolean): void
  /** The write is applied, or has failed, under its zxid. */
  onApplied(entry: AcceptedWrite, err: number): void
  /** The write did not happen and never will: its transaction is lost before it was durable. */
  onLost(entry: Pick<AcceptedWrite, 'xid' | 'type' | 'startedAt'>): void
  /** The oldest sync of the requester is over: what was committed when it came is applied here. */
  onSynced(): void
}

/** A write on its way from acceptance to its reply. */
export interface AcceptedWrite {
  readonly logged: LoggedTxn
  /** What is known of it, where it was prepared here. */
  readonly hint?: ApplyHint
  readonly xid: number
  /** Op code of the request. */
  readonly type: number
  readonly callback: WriteCallback | undefined
  /** On the monotonic clock. */
  readonly startedAt: number
}

/** A write as a client asks for it. */
export interface ClientWrite {
  readonly sessionId: SessionId
  readonly xid: number
  readonly type: number
  readonly identities: readonly Identity[]
}

/** Hears whether a session that its client brings along is still alive. Called once, at once or later, or never when the role ends. */
export interface RevalidationCallback {
  onRevalidated(valid: boolean): void
}

/** Digests of the tree at every 128th zxid, the last 1024 of them, for comparing servers. */
export type RecordedDigests = readonly { readonly zxid: Zxid; readonly digest: Digest }[]

/**
 * Everything that the client side asks for and that is not a read of this server's own tree. One for each term of a role.
 *
 * When the role ends (`end`) nothing that is on its way is answered any more: its fate is open, and a requester's connection is
 * closed, which tells exactly that. `WriteCallback.onLost` is only for what certainly did not happen.
 */
export interface RequestPipeline {
  /** Writes of this server's clients that are accepted and not answered. */
  readonly outstanding: number
  /** Whether writes are accepted now; not while the disk is full, and never on a read-only server. */
  readonly isWritable: boolean
  /** The highest zxid that a client may have seen and be served here; it is at most this server's own state or its epoch's begin. */
  readonly lastVisibleZxid: Zxid
  readonly digests: RecordedDigests

  /**
   * Accepts a write. Returns 0 when its requester will be called, else the error of a request that takes no zxid: it could
   * not be decoded, there is no space for it, or this server takes no writes. `body` may be read only during the call.
   */
  write(write: ClientWrite, body: Reader, requester: WriteCallback, startedAt: number): number
  /** Begins a session. False while nothing can be written. */
  createSession(id: SessionId, timeout: number, requester: WriteCallback, startedAt: number): boolean
  /** Ends a session with its ephemeral nodes. False while nothing can be written. */
  closeSession(id: SessionId, xid: number, requester: WriteCallback | undefined, startedAt: number): boolean
  /**
   * Calls `requester.synced` once this server has applied all that was committed when the call came, never within the call.
   * Returns undefined then, 0 when that is so already, and an error number when it cannot be done here.
   */
  sync(write: ClientWrite, requester: WriteCallback): number | undefined
  /** Finds out whether a session may go on here, and makes this server its owner if so. `timeout` is the one negotiated now. */
  revalidate(id: SessionId, timeout: number, asker: RevalidationCallback): void
  /** Whether a ping of a client may be answered: not when its session may be over elsewhere (`now` on the monotonic clock). */
  canAnswerPing(timeout: number, now: number): boolean
  /**
   * Removes a container or a node whose time is over, unless a change of it is on its way or `isDue` says otherwise when its turn
   * comes. Absent where another server does that.
   */
  deleteContainer?(path: string, startedAt: number, isDue: () => boolean): boolean
  /** The role is over: nobody is called any more. */
  end(): void
}

/** What a core lends to its writes. */
export interface PipelineContext<L extends NotifiedWatcher> {
  readonly tree: Tree
  readonly watchNotifier: WatchNotifier<L>
  readonly clock: Clock
  readonly sessions: SessionRegistry
  /** Sessions that only this server knows; undefined when there are none by the settings. */
  readonly localSessions: SessionTracker | undefined
  /** Makes the preparer of a server that decides; the view says which sessions may write. */
  readonly createPreparer: (sessions: SessionsView) => Preparer
  /** Runs something in a turn of its own. */
  readonly defer: (action: () => void) => void
  /** A session is known to everybody now; it may have been a local one until then. */
  readonly onSessionCreated: (session: Session) => void
  /** A session is over: its connection here goes, unless it is the one that is being told so. */
  readonly onSessionClosed: (id: SessionId, told: WriteCallback | undefined) => void
}
