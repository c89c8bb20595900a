import { ErrorCode } from '@zabra/protocol'
import {
  printConfiguration,
  ReconfigurationError,
  applyReconfig,
  verifierOf,
  type ReconfigRequest,
} from '../core/quorum/index.ts'
import type { Zxid } from '../core/types.ts'
import type { Leader } from '../core/zab/index.ts'
import type { MemberContext } from './context.ts'

/**
 * Judges a change of the ensemble that would have this zxid (14.1 of the server protocol): the text of the new configuration, or
 * the error number of why not.
 */
export function validateReconfiguration(
  { settings, platform }: MemberContext,
  leader: Pick<Leader, 'activeConfiguration' | 'lastSeenConfiguration' | 'syncedVoters'>,
  request: ReconfigRequest & { readonly curConfigId: bigint },
  zxid: Zxid,
): string | number {
  const { activeConfiguration: active, lastSeenConfiguration: proposed } = leader
  if (proposed.version !== active.version) return ErrorCode.RECONFIGINPROGRESS
  if (request.curConfigId !== -1n && request.curConfigId !== BigInt(proposed.version))
    return ErrorCode.BADVERSION
  try {
    const minVoters = settings.standaloneEnabled ? 2 : 1
    const next = applyReconfig(active, request, { version: zxid, minVoters })
    // A configuration that could decide nothing would stop the ensemble.
    if (!verifierOf(next).isQuorum(leader.syncedVoters())) return ErrorCode.NEWCONFIGNOQUORUM
    return printConfiguration(next)
  } catch (error) {
    if (!(error instanceof ReconfigurationError)) throw error
    platform.logger.info({ reason: error.message }, 'A change of the ensemble was refused')
    return error.code
  }
}
