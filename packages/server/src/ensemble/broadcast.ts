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

/** What a committed transaction means here. */
export interface LocalCommit {
  commit(zxid: Zxid): void
  activate(configuration: EnsembleConfiguration, designated: ServerId): void
  leadershipConfirmed(ticket: number): void
}

/** Puts what a leader broadcasts on the wires to its learners, then applies it here. */
export function learnerBroadcast(
  links: ReadonlyMap<ConnectionId, LearnerConnection>,
  here: LocalCommit,
): Broadcast {
  const send = (to: readonly ConnectionId[], type: number, zxid: Zxid, data: Uint8Array | null): void => {
    for (const id of to) links.get(id)?.send(type, zxid, data)
  }
  return {
    proposal: (zxid, payload, followers) => send(followers, PacketType.proposal, zxid, payload),
    commit(zxid, payload, followers, observers) {
      send(followers, PacketType.commit, zxid, null)
      send(observers, PacketType.inform, zxid, payload)
      here.commit(zxid)
    },
    activate(zxid, payload, followers, observers, configuration, designated) {
      send(followers, PacketType.commitAndActivate, zxid, encodeDesignatedLeader(designated))
      if (observers.length > 0)
        send(observers, PacketType.informAndActivate, zxid, encodeInformAndActivate(designated, payload))
      here.commit(zxid)
      here.activate(configuration, designated)
    },
    confirmed: (ticket) => here.leadershipConfirmed(ticket),
  }
}
