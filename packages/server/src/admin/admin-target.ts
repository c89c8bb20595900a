import type { OwnCertificate, Platform } from '@zabra/runtime'
import type { EnsembleConfiguration, ServerId } from '../core/quorum/index.ts'
import type { Tree } from '../core/tree/index.ts'
import type { Zxid } from '../core/types.ts'
import type { ReportsResult, StopPermitResult } from '../core/zab/index.ts'
import type { ExactSnapshot, RawTxn } from '../persistence/index.ts'
import type { ServerSettings } from '../settings/index.ts'
import type { WritesBackups } from './backup-report.ts'
import type { DirectoryReport, ServerReport } from './server-report.ts'

/** One check of readiness. */
export interface HealthCheck {
  readonly name: string
  readonly isOk: boolean
  /** What is wrong, with its limit; `ok` or a fact otherwise. */
  readonly detail: string
}

/** Says that the data of a server are not replaced. The message says what to do. */
export class RestoreRefusal extends Error {
  override readonly name = 'RestoreRefusal'
  /** Whether the reason is one that passes, such as an election, so that the same request may succeed later, at the leader. */
  readonly isPassing: boolean

  constructor(message: string, { isPassing = false } = {}) {
    super(message)
    this.isPassing = isPassing
  }
}

/** Says that the data may be the old or the new ones: the server has ended before that was decided. */
export class RestoreUndecided extends Error {
  override readonly name = 'RestoreUndecided'
}

/** The feature level of a member of the configuration, as the leader knows it. */
export interface MemberLevel {
  readonly id: ServerId
  /** That of its release: 0 for Apache ZooKeeper; undefined for a member that is away. */
  readonly release: number | undefined
  /** Why a level cannot be finalized with this member; undefined where nothing is in the way. */
  readonly obstacle: string | undefined
}

/** What finalizing a level would do, and what is in the way. */
export interface FinalizePlan {
  readonly level: number
  /** The level that is finalized already. */
  readonly finalized: number
  readonly members: readonly MemberLevel[]
  /** Why the level cannot be finalized now; empty where it can. */
  readonly obstacles: readonly string[]
  /** For how long all members could have finalized a higher level, as this leader has seen it, in milliseconds. */
  readonly readyForMs: number | undefined
}

/** What came of an attempt to finalize a level. */
export interface FinalizeResult {
  readonly plan: FinalizePlan
  readonly isFinalized: boolean
  /** The members that have not stored the level yet. It is finalized once they have; undefined where it was not proposed. */
  readonly waitsFor: readonly ServerId[] | undefined
}

/** The feature levels of a server and of its ensemble. */
export interface FeatureReport {
  /** The level of this release. */
  readonly release: number
  /** The level whose formats and packets may be used; 0 for none beyond those of Apache ZooKeeper. */
  readonly finalized: number
  /** A level that waits for members to store it; 0 for none. */
  readonly proposed: number
  /** Returns what finalizing would do, of the highest possible level by default; undefined on a server that does not lead. */
  plan(level?: number): FinalizePlan | undefined
  /** Finalizes a level, after which no member can go back below it; undefined on a server that does not lead. */
  finalize(level?: number): Promise<FinalizeResult | undefined>
}

/** What has become of a leadership transfer. */
export type TransferResult =
  /** This server follows another leader, who may be another one than was asked for. */
  | { readonly leader: ServerId }
  /** This server leads on, or again, and why. */
  | { readonly refusal: string }
  /** Why it is not known who leads. */
  | { readonly unknown: string }

/** What the HTTP port reports about a server, in every role and between two roles, and asks of it. */
export interface AdminTarget {
  readonly settings: ServerSettings
  readonly platform: Pick<Platform, 'clock' | 'disk' | 'system'>
  readonly directories: DirectoryReport
  /** When the server started, on the monotonic clock. */
  readonly startedAt: number
  /** The service of the current role; undefined between two roles. */
  readonly service: ServerReport | undefined
  readonly role: 'standalone' | 'looking' | 'leading' | 'following' | 'observing' | 'read-only'
  /** The id of the leader, if there is one. */
  readonly leader: ServerId | undefined
  /** Whether another server leads that runs Apache ZooKeeper; undefined where this one does not know. */
  readonly isLeaderForeign: boolean | undefined
  /** The active configuration; undefined on a standalone server. */
  readonly configuration: EnsembleConfiguration | undefined
  /** The id of the ensemble, such as `0-` and 32 hexadecimal digits; undefined while no quorum is known to have one. */
  readonly clusterId: string | undefined
  readonly features: FeatureReport
  /** Whether the ports of clients have been opened. */
  readonly isListening: boolean
  /** Whether the server has begun to stop. */
  readonly isStopping: boolean
  /** Whether the server has stopped because it cannot trust its state: only a restart helps. */
  readonly hasFailed: boolean
  /** Whether the server drains: it accepts no new sessions, so that it can be stopped. */
  readonly isDraining: boolean
  /** Returns the checks of the current role, or of the search for one. */
  roleChecks(): readonly HealthCheck[]
  /** The certificates of this server; undefined for one that it does not have. */
  readonly certificates: {
    readonly client: OwnCertificate | undefined
    readonly quorum: OwnCertificate | undefined
  }
  /** Lines of the audit log that could not be kept; undefined where nothing is audited. */
  readonly auditLinesLost: number | undefined
  /** The log of the current role; undefined without one. */
  readonly log:
    | {
        /** Bytes that are appended and not durable. */
        readonly pendingBytes: number
        /** When the write in flight began, on the monotonic clock; undefined while there is none. */
        readonly writingSince: number | undefined
      }
    | undefined
  /** Committed transactions that this server knows of and has not applied. */
  readonly zxidLag: number
  /**
   * Starts to drain: refuses new sessions and closes the connections of clients at an even rate within `ms`; 0 closes none. The drain ends
   * after `forMs`, without them with `undrain`. That of a server that stops goes on as it is.
   */
  drain(ms: number, forMs?: number): void
  /** Takes the settings anew that are not read each time when they are needed. */
  applySettings(): void
  /** Begins a new part of the window over which metrics report percentiles, also while there is no role. */
  rotateStatistics(): void
  /** Ends `drain`: accepts sessions again, unless the server stops. */
  undrain(): void
  /** Asks the leader for a permit to stop within `ms`. */
  requestStop(ms: number): Promise<StopPermitResult>
  /** Gives the permit to stop back. */
  releaseStop(): void
  /** Asks the leader for the reports of all members; once a second at most. */
  memberReports(): Promise<ReportsResult>
  /** How long a permit to stop is still held, in milliseconds; 0 without one. */
  readonly stopPermitMs: number
  /** The backups that this server writes; undefined where the settings name no target. */
  readonly backups: WritesBackups | undefined
  /** Takes a snapshot. Resolves to whether it is on disk; a failure is logged. */
  takeSnapshot(): Promise<boolean>
  /** Returns an empty tree, for `replaceTree`. */
  createTree(): Tree
  /**
   * Returns the zxid above which a tree for `replaceTree` ends its sessions. `lastZxid` is its last transaction. Throws a
   * `RestoreRefusal` when the data cannot be replaced by this server now.
   */
  replacementStart(lastZxid: Zxid): Zxid
  /**
   * Replaces all data, of the whole ensemble where this server leads one, and closes all connections; sessions are gone. `start` is the
   * zxid of `replacementStart`, above which `tree` ends. Resolves when a quorum has the new data. Rejects with a `RestoreUndecided` where
   * the server ends before that is known, and with another error where they are the old ones.
   */
  replaceTree(tree: Tree, start: Zxid): Promise<void>
  /**
   * Hands leadership over to the voter `to`, or else to the one that the others elect. Resolves once this server follows another leader,
   * when that cannot be, or after some time.
   */
  transferLeadership(to?: ServerId): Promise<TransferResult>
  /** The transactions that `readHistory` can return without `hasLogAfter`; later ones may not be committed. */
  readonly logRange: {
    readonly after: Zxid
    readonly epochEnds: readonly Zxid[]
    /** Returns about how many bytes of log lie after a transaction; never too few. */
    bytesAfter(zxid: Zxid): number
  }
  /**
   * Reads the transactions after `after` up to `upTo` from the log. Throws a `DamageError` where they are missing. Call `return`, also
   * when it was never started: until then the files are kept.
   */
  readHistory(after: Zxid, upTo: Zxid): AsyncIterableIterator<RawTxn>
  /** Resolves to whether `readHistory` can read all transactions after a zxid, also those before the snapshot that was loaded. */
  hasLogAfter(after: Zxid): Promise<boolean>
  /** The snapshot file after which `logRange` began; undefined where it holds parts of later transactions. A purge may have removed it. */
  readonly baseSnapshot: ExactSnapshot | undefined
}

/** State that commands change and that outlives roles. */
export interface CommandState {
  /** Stored and shown; this server traces nothing. */
  traceMask: bigint
}

/** The trace mask with which Apache ZooKeeper starts. */
export const INITIAL_TRACE_MASK = 306n
