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
  const { zxid, payload, followers } = work
  switch (work.do) {
    case 'propose':
      return send(connections, followers, PacketType.proposal, zxid, payload)
    case 'commit':
      send(connections, followers, PacketType.commit, zxid, null)
      return send(connections, work.observers, PacketType.inform, zxid, payload)
    case 'commitReconfig': {
      const { designated, observers } = work
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
