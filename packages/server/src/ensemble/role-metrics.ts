import { votersOf, printConfiguration, type ServerId } from '../core/quorum/index.ts'
import type { LeaderStatus, MemberStatus, RoleMetrics } from '../admin/index.ts'
import type { MemberContext } from './context.ts'

/** What a role says of itself when a word asks. */
export interface RoleStatus {
  readonly mode: 'leader' | 'follower' | 'observer' | 'read-only'
  /** The phase, in the words of Apache ZooKeeper. */
  readonly peerState: () => string
  readonly leader?: () => LeaderStatus
  /** Whom an observer follows. */
  readonly observerMasterId?: ServerId
  readonly yieldLeadership?: () => string
  readonly extra?: () => MemberStatus['extraMetrics']
  /** Observers that this server keeps up to date. */
  readonly syncedObservers?: () => number | undefined
}

/** The figures of a member, put together when they are asked for. */
export function roleMetrics({ settings, membership }: MemberContext, facts: RoleStatus): RoleMetrics {
  return {
    mode: facts.mode,
    get member() {
      const [own] = membership.member(membership.self)?.addresses ?? []
      return {
        peerState: facts.peerState(),
        quorumSize: votersOf(membership.active).length,
        conf: {
          serverId: membership.self,
          initLimit: settings.initLimit,
          syncLimit: settings.syncLimit,
          electionAlg: settings.electionAlg,
          electionPort: own?.electionPort ?? 0,
          quorumPort: own?.quorumPort ?? 0,
          isObserver: membership.role === 'observer',
          membership: printConfiguration(membership.active),
        },
        ...(facts.leader === undefined ? {} : { leader: facts.leader() }),
        ...(facts.observerMasterId === undefined ? {} : { observerMasterId: facts.observerMasterId }),
        ...syncedObserversOf(facts),
        extra: facts.extra?.() ?? [],
        yieldLeadership: facts.yieldLeadership ?? (() => 'Not a leader: there is nothing to yield.'),
        requestLeadership: () => 'Leadership cannot be asked for here; send ydld to the leader.',
      }
    },
  }
}

function syncedObserversOf({ syncedObservers }: RoleStatus): { syncedObservers?: number } {
  const count = syncedObservers?.()
  return count === undefined ? {} : { syncedObservers: count }
}
