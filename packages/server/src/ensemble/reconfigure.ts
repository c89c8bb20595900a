import { ErrorCode } from '@zabra/protocol'
import {
  applyReconfig,
  printConfiguration,
  ReconfigurationError,
  sameMembership,
  verifierOf,
  type EnsembleConfiguration,
  type ReconfigRequest,
  type ServerId,
} from '../core/quorum/index.ts'
import type { Zxid } from '../core/types.ts'
import type { Leader } from '../core/zab/index.ts'
import { fewestVoters } from '../settings/members.ts'
import type { MemberContext, RoleExit } from './context.ts'

/**
 * Validates a change of the ensemble at its leader (quorum-protocol 14.1). Returns the text of the new configuration, whose version is
 * `zxid`, or the code of the error with which the change is refused.
 */
export function validateReconfiguration(
  { settings, platform }: MemberContext,
  leader: Pick<Leader, 'activeConfiguration' | 'lastSeenConfiguration' | 'syncedVoters'>,
  request: ReconfigRequest & { readonly curConfigId: bigint },
  zxid: Zxid,
): string | number {
  const { activeConfiguration: active, lastSeenConfiguration: lastSeen } = leader
  if (lastSeen.version !== active.version) return ErrorCode.RECONFIGINPROGRESS
  if (request.curConfigId !== -1n && request.curConfigId !== BigInt(lastSeen.version))
    return ErrorCode.BADVERSION
  try {
    const next = applyReconfig(active, request, { version: zxid, minVoters: fewestVoters(settings) })
    // A configuration without a synced quorum would stop the ensemble.
    if (!verifierOf(next).isQuorum(leader.syncedVoters())) return ErrorCode.NEWCONFIGNOQUORUM
    return printConfiguration(next)
  } catch (error) {
    if (!(error instanceof ReconfigurationError)) throw error
    platform.logger.info({ reason: error.message }, 'A change of the ensemble was refused')
    return error.code
  }
}

/** The effects of a newly active configuration on the role of this member. */
export interface Activation {
  /** The reason to leave the role; undefined if the role continues. */
  readonly exit?: RoleExit
  /** Resolves when the configuration is on disk. */
  readonly persisted: Promise<void>
}

/**
 * Activates a committed configuration at a learner (quorum-protocol 14.5). A change of this member's role, or of the leader, ends the
 * role: a designated leader is joined without an election.
 */
export function activateConfiguration(
  { membership, configurationChanged }: MemberContext,
  configuration: EnsembleConfiguration,
  { leader, designated }: { leader: ServerId; designated: ServerId | undefined },
): Activation {
  const { role } = membership
  const { changed, before, persisted } = membership.activate(configuration)
  configurationChanged()
  if (!changed) return { persisted }
  const exit = exitAfter(membership.role === role ? undefined : membership.role)
  return exit === undefined ? { persisted } : { persisted, exit }

  function exitAfter(newRole: string | undefined): RoleExit | undefined {
    if (designated !== undefined && designated !== leader)
      return { reason: `server ${designated} is to lead under the new configuration`, designated }
    if (newRole !== undefined)
      return { reason: `this server is ${newRole} now`, designated: designated ?? leader }
    if (designated === undefined && hasMoved(leader, before, configuration))
      return { reason: 'the leader is no longer a member, or has another address' }
    return undefined
  }
}

/** Whether a server is a member in only one of two configurations, or has another role or other addresses. */
function hasMoved(id: ServerId, before: EnsembleConfiguration, after: EnsembleConfiguration): boolean {
  const only = (from: EnsembleConfiguration): EnsembleConfiguration => {
    const member = from.members.get(id)
    return { version: 0, members: new Map(member === undefined ? [] : [[id, member]]) }
  }
  return !sameMembership(only(before), only(after))
}
