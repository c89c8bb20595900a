import { votersOf, type EnsembleConfiguration, type ServerId } from '../quorum/index.ts'
import type { Zxid } from '../types.ts'

/**
 * R1 (14.4) Who is to lead once `next` is in force: the leader itself when it still votes and is found where it was, otherwise
 * the voter among those that have the change which has most of what came after it. `has` tells how far a server has
 * everything. With nobody else to choose, the leader.
 */
export function designateLeader(
  self: ServerId,
  current: EnsembleConfiguration,
  next: EnsembleConfiguration,
  has: (server: ServerId) => Zxid,
  zxid: Zxid,
): ServerId {
  const voters = votersOf(next)
  if (voters.includes(self) && quorumAddresses(self, current) === quorumAddresses(self, next)) return self
  let best: ServerId = self
  let most = zxid - 1
  for (const server of voters) {
    if (server === self || has(server) < zxid) continue
    if (has(server) > most || (has(server) === most && server > best)) {
      best = server
      most = has(server)
    }
  }
  return best
}

/** Where learners find a member. */
function quorumAddresses(server: ServerId, { members }: EnsembleConfiguration): string {
  const addresses = members.get(server)?.addresses ?? []
  return addresses.map(({ host, quorumPort }) => `${host} ${quorumPort}`).join()
}
