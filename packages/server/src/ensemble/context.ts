import type { Platform } from '@zabra/runtime'
import type { ServerId } from '../core/quorum/index.ts'
import type { SessionIdGenerator } from '../core/sessions/index.ts'
import type { CommittedWindow } from '../core/zab/index.ts'
import type { ServerSettings } from '../settings/index.ts'
import type { ServerStats } from '../connections/stats.ts'
import type { Database } from '../database/index.ts'
import type { ClientPorts } from '../connections/client-ports.ts'
import type { SnapshotScheduler } from '../database/index.ts'
import type { Membership } from './membership.ts'

/** What stays the same through all roles of a member. */
export interface MemberContext {
  readonly settings: ServerSettings
  readonly ports: Platform
  readonly database: Database
  /** The last committed transactions, for whoever has to be brought up to date. Without holes, and up to `vault.lastZxid` between roles. */
  readonly window: CommittedWindow
  readonly membership: Membership
  readonly clientPorts: ClientPorts
  readonly stats: ServerStats
  /** One source for all roles, so that no id is given twice. */
  readonly sessionIds: SessionIdGenerator
  readonly snapshots: SnapshotScheduler
  /** The member can no longer vouch for its state: the process is to end. */
  readonly failed: (error: unknown) => void
  /** Members, roles or addresses have changed, or a newer configuration was proposed. */
  readonly configurationChanged: () => void
}

/** Why a role is over. */
export interface RoleExit {
  readonly reason: string
  /** A committed change of the configuration says who leads: no election is needed. */
  readonly designated?: ServerId
  /** Leadership was handed over: others are to be elected first. */
  readonly handedOver?: boolean
  /** The connection to the leader went before it had said anything. */
  readonly leaderSilent?: boolean
  /** The leader is to be asked again, by a connection of its own. */
  readonly reconnect?: boolean
  /** What to wait before the next election, in milliseconds. */
  readonly electionDelayMs?: number
}

/** What a role tells its member. */
export interface RoleEvents {
  /** The role is filled, in this epoch. */
  established(epoch: number): void
  /** The role is over; `end` is to follow. Comes once. */
  exited(because: RoleExit): void
}

/** One role, from the end of an election to the next one. */
export interface MemberRole {
  begin(): Promise<void>
  /** Closes everything that belongs to the role. Nothing of it happens after this resolves. */
  end(): Promise<void>
}
