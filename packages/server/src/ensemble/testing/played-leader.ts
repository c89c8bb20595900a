import { makeZxid, Reader, Writer } from '@zabra/protocol'
import type { Connection } from '@zabra/runtime'
import type { Identity, Txn, Zxid } from '../../core/types.ts'
import {
  decodeForwardedRequest,
  LEADER_INFO_BYTES,
  PacketSplitter,
  PacketType,
  PROTOCOL_VERSION,
  withExtension,
  writePacket,
  type MemberExtension,
} from '../../core/zab/index.ts'
import { encodeLoggedTxn } from '../../persistence/index.ts'
import type { Ensemble } from './ensemble.ts'

/** Sends a packet to the learner. */
export type SendPacket = (type: number, zxid: Zxid, data?: Uint8Array | null) => void

/** A leader that a test plays for member 1. */
export interface PlayedLeader {
  /** What the learner has acknowledged, NEWLEADER and UPTODATE included. */
  readonly acknowledged: Zxid[]
  /** The numbers of the requests that were forwarded. */
  readonly forwarded: number[]
  /** The identities in each of these requests. */
  readonly identities: (readonly Identity[] | null)[]
  /** The connection of the learner, once it has accepted the epoch. */
  readonly connection: () => Connection | undefined
}

export interface PlayedLeaderOptions {
  /** What the leader says of itself; one of Apache ZooKeeper says nothing. */
  readonly said?: MemberExtension | undefined
  readonly epoch?: () => number
  /** Sends the history, before NEWLEADER; an empty DIFF by default. */
  readonly sync?: (send: SendPacket, connection: Connection) => void
  /** Returns whether the leader answers a sync. */
  readonly answersSyncs?: () => boolean
}

/** Starts the members, and plays the leader that member 1 elects. */
export async function startPlayedLeader(
  ensemble: Ensemble,
  {
    said,
    epoch = () => 1,
    sync = (send) => send(PacketType.diff, 0),
    answersSyncs = () => true,
  }: PlayedLeaderOptions = {},
): Promise<PlayedLeader> {
  const acknowledged: Zxid[] = []
  const forwarded: number[] = []
  const identities: (readonly Identity[] | null)[] = []
  let leading: Connection | undefined
  await ensemble.network.listen({ port: 9 }, (connection) => {
    const send: SendPacket = (type, zxid, data = null) => {
      const writer = new Writer(64)
      writePacket(writer, type, zxid, data)
      connection.write(writer.take())
    }
    const version = new Uint8Array(LEADER_INFO_BYTES)
    new DataView(version.buffer).setInt32(0, PROTOCOL_VERSION)
    const info = said === undefined ? version : withExtension(version, said)
    let isUpToDate = false
    const splitter = new PacketSplitter({
      maxData: 1 << 20,
      packet: (type, zxid, data, auth) => {
        if (type === PacketType.request) {
          forwarded.push(decodeForwardedRequest(data, [], new Reader()).xid)
          identities.push(auth)
          if (answersSyncs()) send(PacketType.sync, -1)
        }
        if (type === PacketType.followerInfo) send(PacketType.leaderInfo, makeZxid(epoch(), 0), info)
        if (type === PacketType.ackEpoch) {
          leading = connection
          sync(send, connection)
          send(PacketType.newLeader, makeZxid(epoch(), 0))
        }
        if (type !== PacketType.ack) return
        acknowledged.push(zxid)
        if (!isUpToDate) send(PacketType.upToDate, -1)
        isUpToDate = true
      },
    })
    connection.setHandler({ data: (chunk) => splitter.push(chunk), drain() {}, closed() {} })
  })
  ensemble.detour = (id, port) => (id === 1 && port === 2003 ? 9 : port)
  for (const member of ensemble.members.values()) await member.start()
  return { acknowledged, forwarded, identities, connection: () => leading }
}

/** Returns the payload of a transaction of session 1. */
export function payloadOf(zxid: Zxid, txn: Txn): Uint8Array {
  const writer = new Writer(128)
  encodeLoggedTxn(writer, {
    header: { sessionId: 1n, cxid: 1, zxid, time: 7 },
    txn,
    digest: undefined,
  })
  return writer.take()
}
