import { votersOf, type EnsembleConfiguration, type ServerId } from '../quorum/index.ts'
import type { Zxid } from '../types.ts'

/**
 * Returns the designated leader of a configuration (quorum-protocol 14.4): the current leader `self` if it is still a voter
 * and its quorum addresses are unchanged, otherwise the voter that has acknowledged the reconfig `zxid` and the most after
 * it, or the current leader if there is none. `ackedBy` returns the last zxid that a server has acknowledged.
 */
export function designateLeader(
  self: ServerId,
  current: EnsembleConfiguration,
  next: EnsembleConfiguration,
  ackedBy: (server: ServerId) => Zxid,
  zxid: Zxid,
): ServerId {
  const voters = votersOf(next)
  if (voters.includes(self) && quorumAddresses(self, current) === quorumAddresses(self, next)) return self
  let best: ServerId = self
  let highest = zxid - 1
  for (const server of voters) {
    const acked = ackedBy(server)
    if (server === self || acked < zxid) continue
    if (acked > highest || (acked === highest && server > best)) {
      best = server
      highest = acked
    }
  }
  return best
}

/** Returns the quorum addresses of a member as one string. */
function quorumAddresses(server: ServerId, { members }: EnsembleConfiguration): string {
  const addresses = members.get(server)?.addresses ?? []
  return addresses.map(({ host, quorumPort }) => `${host} ${quorumPort}`).join()
}
