import type { Zxid } from '../core/types.ts'
import {
  encodeDesignatedLeader,
  encodeInformAndActivate,
  PacketType,
  type ConnectionId,
  type LeaderWork,
} from '../core/zab/index.ts'
import type { LearnerConnection } from './learner-connection.ts'

/** The work of a leader that goes to all followers and observers. */
export type BroadcastWork = Extract<LeaderWork, { do: 'propose' | 'commit' | 'commitReconfig' }>

/** Sends a proposal or a commit to the learners of a leader. */
export function broadcast(
  connections: ReadonlyMap<ConnectionId, LearnerConnection>,
  work: BroadcastWork,
): void {
  const { followers } = work
  switch (work.do) {
    case 'propose':
      return send(connections, followers, PacketType.proposal, work.zxid, work.payload)
    case 'commit': {
      const { first, payloads, observers } = work
      for (let i = 0; i < payloads.length; i++) {
        send(connections, followers, PacketType.commit, first + i, null)
        send(connections, observers, PacketType.inform, first + i, payloads[i]!)
      }
      return
    }
    case 'commitReconfig': {
      const { zxid, payload, designated, observers } = work
      send(connections, followers, PacketType.commitAndActivate, zxid, encodeDesignatedLeader(designated))
      if (observers.length === 0) return
      const data = encodeInformAndActivate(designated, payload)
      return send(connections, observers, PacketType.informAndActivate, zxid, data)
    }
  }
}

function send(
  connections: ReadonlyMap<ConnectionId, LearnerConnection>,
  to: readonly ConnectionId[],
  type: number,
  zxid: Zxid,
  data: Uint8Array | null,
): void {
  for (const id of to) connections.get(id)?.send(type, zxid, data)
}
