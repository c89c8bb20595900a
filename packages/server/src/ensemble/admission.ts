import { decodeLearnerInfo, type QuorumPacket } from '../core/zab/index.ts'
import type { MemberContext } from './context.ts'

/**
 * Who may not come to the quorum port, by what it says of itself: where members do not change at run time, a server that no
 * configuration names. The election port has the same rule, so such a server does not even know who leads.
 */
export function unknownServerRefusal({
  settings,
  membership,
}: MemberContext): (packet: QuorumPacket) => string | undefined {
  return ({ data }) => {
    if (settings.reconfigEnabled) return undefined
    const { serverId } = decodeLearnerInfo(data)
    return membership.member(serverId) === undefined
      ? `server ${serverId} is not in the configuration`
      : undefined
  }
}
