import type { Ports } from '@zabra/runtime'
import type { ServerId } from '../../core/quorum/index.ts'
import type { SessionIds } from '../../core/sessions/index.ts'
import type { CommittedWindow } from '../../core/zab/index.ts'
import type { ServerSettings } from '../../settings/index.ts'
import type { ServerStats } from '../stats.ts'
import type { Vault } from '../vault/index.ts'
import type { ClientDoor } from './client-door.ts'
import type { MemberSnapshots } from './member-snapshots.ts'
import type { Membership } from './membership.ts'

/** What stays the same through all roles of a member. */
export interface MemberKit {
  readonly settings: ServerSettings
  readonly ports: Ports
  readonly vault: Vault
  /** The last committed transactions, for whoever has to be brought up to date. Without holes, and up to `vault.lastZxid` between roles. */
  readonly window: CommittedWindow
  readonly membership: Membership
  readonly door: ClientDoor
  readonly stats: ServerStats
  /** One source for all roles, so that no id is given twice. */
  readonly sessionIds: SessionIds
  readonly snapshots: MemberSnapshots
  /** The member can no longer vouch for its state: the process is to end. */
  readonly failed: (error: unknown) => void
  /** Members, roles or addresses have changed, or a newer configuration was proposed. */
  readonly configured: () => void
}

/** Why a role is over. */
export interface Over {
  readonly reason: string
  /** A committed change of the configuration says who leads: no election is needed. */
  readonly designated?: ServerId
  /** Leadership was handed over: others are to be elected first. */
  readonly handedOver?: boolean
  /** The connection to the leader went before it had said anything. */
  readonly unheard?: boolean
  /** The leader is to be asked again, by a connection of its own. */
  readonly again?: boolean
  /** What to wait before the next election, in milliseconds. */
  readonly pauseMs?: number
}

/** What a role tells its member. */
export interface TermEvents {
  /** The role is filled, in this epoch. */
  installed(epoch: number): void
  /** The role is over; `end` is to follow. Comes once. */
  over(because: Over): void
}

/** One role, from the end of an election to the next one. */
export interface Term {
  begin(): Promise<void>
  /** Closes everything that belongs to the role. Nothing of it happens after this resolves. */
  end(): Promise<void>
}
