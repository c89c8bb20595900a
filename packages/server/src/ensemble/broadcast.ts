import type { EnsembleConfiguration, ServerId } from '../core/quorum/index.ts'
import type { Zxid } from '../core/types.ts'
import {
  encodeDesignatedLeader,
  encodeInformAndActivate,
  PacketType,
  type Broadcast,
  type ConnectionId,
} from '../core/zab/index.ts'
import type { LearnerConnection } from './learner-connection.ts'

/** Applies on the leader itself what the leader commits. */
export interface LocalCommit {
  commit(zxid: Zxid): void
  activate(configuration: EnsembleConfiguration, designated: ServerId): void
  leadershipConfirmed(ticket: number): void
}

/** Returns the broadcast of a leader: sends packets to the learners first, then commits locally. */
export function learnerBroadcast(
  connections: ReadonlyMap<ConnectionId, LearnerConnection>,
  local: LocalCommit,
): Broadcast {
  const send = (to: readonly ConnectionId[], type: number, zxid: Zxid, data: Uint8Array | null): void => {
    for (const id of to) connections.get(id)?.send(type, zxid, data)
  }
  return {
    proposal: (zxid, payload, followers) => send(followers, PacketType.proposal, zxid, payload),
    commit(zxid, payload, followers, observers) {
      send(followers, PacketType.commit, zxid, null)
      send(observers, PacketType.inform, zxid, payload)
      local.commit(zxid)
    },
    activate(zxid, payload, followers, observers, configuration, designated) {
      send(followers, PacketType.commitAndActivate, zxid, encodeDesignatedLeader(designated))
      if (observers.length > 0)
        send(observers, PacketType.informAndActivate, zxid, encodeInformAndActivate(designated, payload))
      local.commit(zxid)
      local.activate(configuration, designated)
    },
    confirmed: (ticket) => local.leadershipConfirmed(ticket),
  }
}
