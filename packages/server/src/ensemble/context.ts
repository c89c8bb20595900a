import type { HealthCheck } from '../admin/index.ts'
import type { Platform } from '@zabra/runtime'
import type { AuditLog } from '../audit/index.ts'
import type { ClientPorts } from '../connections/client-ports.ts'
import type { ServerStats } from '../connections/stats.ts'
import type { ServerId } from '../core/quorum/index.ts'
import type { SessionIdGenerator, SessionPasswords } from '../core/sessions/index.ts'
import type { CommittedWindow } from '../core/zab/index.ts'
import type {
  Database,
  PreparedReplacement,
  SharedSessionSecret,
  SnapshotScheduler,
} from '../database/index.ts'
import type { ServerSettings } from '../settings/index.ts'
import type { ClusterIdentity } from './cluster-identity.ts'
import type { FeatureLevels } from './feature-levels.ts'
import type { MemberSecurity } from './member-security.ts'
import type { MemberReports } from './member-reports.ts'
import type { Membership } from './membership.ts'
import type { PeerAddresses } from './peer-addresses.ts'
import type { StopPermit } from './stop-permits.ts'

/** The dependencies that all roles of a member share. */
export interface MemberContext {
  readonly settings: ServerSettings
  readonly platform: Platform
  readonly database: Database
  /** The last committed transactions, from which learners are synced. Has no gaps, and reaches `database.lastZxid` between roles. */
  readonly window: CommittedWindow
  readonly membership: Membership
  readonly security: MemberSecurity
  readonly peerAddresses: PeerAddresses
  readonly cluster: ClusterIdentity
  readonly features: FeatureLevels
  readonly stopPermit: StopPermit
  readonly reports: MemberReports
  readonly clientPorts: ClientPorts
  readonly stats: ServerStats
  /** Shared by all roles, so that no session id is used twice. */
  readonly sessionIds: SessionIdGenerator
  readonly passwords: SessionPasswords
  /** The secret behind `passwords` where the members share one. */
  readonly sharedSecret: SharedSessionSecret | undefined
  readonly snapshots: SnapshotScheduler
  /** Undefined where the settings ask for no audit log. */
  readonly audit: AuditLog | undefined
  /** Called when the state of the member can no longer be trusted: stops the member. */
  readonly failed: (error: unknown) => void
  /** Called when members, roles or addresses have changed, or a newer configuration was proposed. */
  readonly configurationChanged: () => void
}

/** Why a role ends. */
export interface RoleExit {
  readonly reason: string
  /** The leader that a committed change of the configuration designates: no election is needed. */
  readonly designated?: ServerId
  /** Whether this leader has handed leadership over: the others elect first. */
  readonly hasHandedOver?: boolean
  /** Whether the connection to the leader was lost before the leader sent anything. */
  readonly isLeaderSilent?: boolean
  /** Whether the learner may connect to the same leader again, without an election. */
  readonly canReconnect?: boolean
  /** The epoch of an established leader that is earlier than the accepted one: it can be followed without a vote only. */
  readonly earlierEpoch?: number
  /** The data with which this server takes part in the next election. */
  readonly replacement?: PreparedReplacement
  /** How long to wait before the next election, in milliseconds. */
  readonly electionDelayMs?: number
}

/** Receives the events of a role. */
export interface RoleEvents {
  /** The role is established in this epoch: the leader has a synced quorum, or the learner is synced. */
  established(epoch: number): void
  /** The role has to end; the owner then calls `end`. Called at most once. */
  exited(exit: RoleExit): void
}

/** One role, from the end of an election to the next one. */
export interface ActiveRole {
  begin(): Promise<void>
  /** Returns the checks of readiness that depend on the role. */
  checks(): readonly HealthCheck[]
  /** Replies to the requests of clients that have arrived, and closes the connections: the server stops. Takes no longer than `syncLimit`. */
  finishRequests(): Promise<void>
  /**
   * Closes everything that belongs to the role. The role does nothing after this resolves. `reason` is logged for closed client
   * connections.
   */
  end(reason?: string): Promise<void>
}
