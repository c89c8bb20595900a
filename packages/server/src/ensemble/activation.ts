import { sameMembership, type EnsembleConfiguration, type ServerId } from '../core/quorum/index.ts'
import type { MemberContext, RoleExit } from './context.ts'

/** What a configuration that comes into force means for the role that this member has. */
export interface Activation {
  /** The role is over, for this reason. */
  readonly exit?: RoleExit
  /** The configuration is on disk when this resolves. */
  readonly persisted: Promise<void>
}

/**
 * Brings a committed configuration into force at a learner (14.5 of the server protocol). A change of this member's role, or of
 * who leads, ends its role: with a designated leader it goes to that one directly, else there is an election.
 */
export function activateConfiguration(
  { membership, configurationChanged: configured }: MemberContext,
  configuration: EnsembleConfiguration,
  { leader, designated }: { leader: ServerId; designated: ServerId | undefined },
): Activation {
  const role = membership.role
  const { changed, before, kept } = membership.activate(configuration)
  configured()
  if (!changed) return { persisted: kept }
  if (designated !== undefined && designated !== leader)
    return {
      persisted: kept,
      exit: { reason: `server ${designated} is to lead under the new configuration`, designated },
    }
  if (membership.role !== role)
    return {
      persisted: kept,
      exit: { reason: `this server is ${membership.role} now`, designated: designated ?? leader },
    }
  if (designated === undefined && hasMoved(leader, before, configuration))
    return { persisted: kept, exit: { reason: 'the leader is no member any more, or somewhere else' } }
  return { persisted: kept }
}

/** Whether a server is a member in one of them only, or has other addresses there. */
function hasMoved(id: ServerId, before: EnsembleConfiguration, after: EnsembleConfiguration): boolean {
  const only = (from: EnsembleConfiguration): EnsembleConfiguration => {
    const member = from.members.get(id)
    return { version: 0, members: new Map(member === undefined ? [] : [[id, member]]) }
  }
  return !sameMembership(only(before), only(after))
}
