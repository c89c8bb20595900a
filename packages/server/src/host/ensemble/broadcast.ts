import type { EnsembleConfiguration, ServerId } from '../../core/quorum/index.ts'
import type { Zxid } from '../../core/types.ts'
import {
  encodeDesignated,
  encodeInformAndActivate,
  PacketType,
  type Broadcast,
  type ConnectionId,
} from '../../core/zab/index.ts'
import type { LearnerLink } from './learner-link.ts'

/** What a committed transaction means here. */
export interface Committed {
  commit(zxid: Zxid): void
  activate(configuration: EnsembleConfiguration, designated: ServerId): void
  confirmed(ticket: number): void
}

/** Puts what a leader broadcasts on the wires to its learners, then applies it here. */
export function broadcastTo(links: ReadonlyMap<ConnectionId, LearnerLink>, here: Committed): Broadcast {
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
      send(followers, PacketType.commitAndActivate, zxid, encodeDesignated(designated))
      if (observers.length > 0)
        send(observers, PacketType.informAndActivate, zxid, encodeInformAndActivate(designated, payload))
      here.commit(zxid)
      here.activate(configuration, designated)
    },
    confirmed: (ticket) => here.confirmed(ticket),
  }
}
