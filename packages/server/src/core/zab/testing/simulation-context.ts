import type { ManualClock, SeededRandom } from '@zabra/runtime'
import type { Election, ElectionWork } from '../../election/index.ts'
import type { EnsembleConfiguration, ServerId } from '../../quorum/index.ts'
import type { Zxid } from '../../types.ts'
import type { LeaderWork } from '../leader-types.ts'
import type { InvariantChecker } from './invariant-checker.ts'
import type { LinkEndpoint, SimulatedLink } from './simulated-link.ts'

/** Fault rates of a simulation. */
export interface FaultRates {
  /** Percent of lost election notifications. */
  loss: number
  /** Longest delay of a message in milliseconds. */
  delayMs: number
  /** Longest duration of a write to disk in milliseconds. */
  diskMs: number
  /** One member crashes in so many events; 0 for never. */
  crash: number
  /** One connection breaks in so many events; 0 for never. */
  cut: number
}

export const NO_FAULTS: FaultRates = { loss: 0, delayMs: 5, diskMs: 3, crash: 0, cut: 0 }

/** Bugs that a simulated host can have. The simulation must find each of them. */
export const mutants = [
  'a follower acknowledges a proposal before it is durable',
  'a leader counts a proposal before it is durable',
  'a learner enters the epoch before its history is durable',
  'a learner does not truncate',
  'a leader counts every ACK for its last proposal',
  'a server applies out of order',
  'a learner serves before the leader is established',
  'a server does not store its acceptedEpoch',
  'a leader sends NEWLEADER before the history',
  'a server votes with what is applied, not what is logged',
  'a leader keeps the ACKs of a server that reconnects',
] as const
export type Mutant = (typeof mutants)[number]

/** A member as other members see it. */
export interface Peer extends LinkEndpoint {
  readonly isUp: boolean
  /** Whether it is a leader with an open quorum port. */
  readonly isListening: boolean
  /** Accepts a link from a learner. */
  accept(link: SimulatedLink): void
}

/** The simulated world of a member. */
export interface SimulationContext {
  readonly random: SeededRandom
  readonly clock: ManualClock
  readonly tickMs: number
  readonly configuration: EnsembleConfiguration
  readonly checker: InvariantChecker
  readonly mutants: ReadonlySet<Mutant>
  readonly faultRates: FaultRates
  peer(id: ServerId): Peer
  createElection(self: ServerId): Election
  createLink(leader: LinkEndpoint, learner: LinkEndpoint): SimulatedLink
  areConnected(a: ServerId, b: ServerId): boolean
  sendNotification(from: ServerId, work: Extract<ElectionWork, { do: 'send' }>): void
  /** Counts an occurrence, for the proof that a run was not empty. */
  count(name: string): void
  /** Counts the reason of a dropped connection or a left role. */
  countReason(reason: string): void
  /** Returns work of a leader with the bug of a mutant. */
  mutateWork(work: LeaderWork): LeaderWork
  /** Checks a confirmed leadership check. `tree` is the tree of the leader. */
  leadershipConfirmed(tree: readonly { readonly zxid: Zxid }[], id: number): void
}
