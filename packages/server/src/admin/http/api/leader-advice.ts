import type { ServerId } from '../../../core/quorum/index.ts'
import type { ApiCall } from './api-route.ts'
import { clientPortOf } from './cluster-probe.ts'

/** Returns what a caller should do about an operation that the leader alone does. `ofApache` says what is true where that is an Apache ZooKeeper server. */
export async function leaderAdvice(
  { target, cluster }: Pick<ApiCall, 'target' | 'cluster'>,
  ofApache: string,
): Promise<string> {
  const { leader, role, isLeaderForeign } = target
  if (leader === undefined) return `It is ${role}. Try again once there is a leader.`
  const isApache = isLeaderForeign ?? (await answersAsApache(leader, { target, cluster }))
  return isApache
    ? `Server ${leader} leads, and it runs Apache ZooKeeper, which does not have this operation. ${ofApache}`
    : `Ask server ${leader}, which leads.`
}

/** Asks a server on its client port; one that does not answer counts as one of Zabra. */
async function answersAsApache(
  leader: ServerId,
  { target, cluster }: Pick<ApiCall, 'target' | 'cluster'>,
): Promise<boolean> {
  const member = target.configuration?.members.get(leader)
  if (member === undefined || leader === target.settings.serverId) return false
  const { answer } = await cluster.ask(member, clientPortOf(target, member))
  return answer !== undefined && !answer.version.includes('-zabra-')
}
