import type { ApiCall } from './api-route.ts'
import { clientPortOf } from './cluster-probe.ts'

/** Returns what a caller should do about an operation that the leader alone does. `ofApache` says what is true where that is an Apache ZooKeeper server. */
export async function leaderAdvice(
  { target, cluster }: Pick<ApiCall, 'target' | 'cluster'>,
  ofApache: string,
): Promise<string> {
  const { leader, role, configuration } = target
  if (leader === undefined) return `It is ${role}. Try again once there is a leader.`
  const member = configuration?.members.get(leader)
  if (member !== undefined && leader !== target.settings.serverId) {
    const { answer } = await cluster.ask(member, clientPortOf(target, member))
    if (answer !== undefined && !answer.version.includes('-zabra-'))
      return `Server ${leader} leads, and it runs Apache ZooKeeper, which does not have this operation. ${ofApache}`
  }
  return `Ask server ${leader}, which leads.`
}
