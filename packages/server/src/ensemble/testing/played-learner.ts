import { makeZxid, OpCode, Writer } from '@zabra/protocol'
import { NO_CLUSTER } from '../../core/quorum/index.ts'
import type { Identity, SessionId } from '../../core/types.ts'
import {
  encodeAckEpoch,
  encodeLearnerInfo,
  encodePacket,
  packetName,
  PacketSplitter,
  PacketType,
  PROTOCOL_VERSION,
  withExtension,
  type MemberExtension,
} from '../../core/zab/index.ts'
import type { Ensemble } from './ensemble.ts'

/** What a member of Zabra says of itself. */
export const SAID: MemberExtension = { level: 1, sharesSecret: false, hasData: false, cluster: NO_CLUSTER }

export function packetOf(
  type: number,
  zxid: number,
  data: Uint8Array | null,
  auth: readonly Identity[] | null = null,
): Uint8Array {
  const writer = new Writer(64)
  encodePacket(writer, { type, zxid, data, auth })
  return writer.take()
}

/** Returns the first packet of an observer; one of Apache ZooKeeper says nothing of itself. */
export function observerInfo(serverId = 4, said?: MemberExtension): Uint8Array {
  const info = encodeLearnerInfo({ serverId, protocolVersion: PROTOCOL_VERSION, configVersion: 0 })
  const data = said === undefined ? info : withExtension(info, said)
  return packetOf(PacketType.observerInfo, makeZxid(1, 0), data)
}

/** Plays observer 4, or another learner with its first packet, which has the history up to a zxid, on a connection to a port. */
export async function playObserver(ensemble: Ensemble, port: number, has: number, first = observerInfo()) {
  const connection = await ensemble.network.connect({ host: 'x', port })
  const seen = {
    closed: false,
    packets: [] as string[],
    proposed: 0,
    /** The answers to revalidations. */
    revalidated: [] as Uint8Array[],
  }
  const send = (
    type: number,
    zxid: number,
    data: Uint8Array | null,
    auth: readonly Identity[] | null = null,
  ): void => void connection.write(packetOf(type, zxid, data, auth))
  const splitter = new PacketSplitter({
    maxData: 1 << 20,
    packet: (type, zxid, data) => {
      seen.packets.push(packetName(type))
      if (type === PacketType.proposal) seen.proposed = zxid
      if (type === PacketType.revalidate) seen.revalidated.push(data!.slice())
      if (type === PacketType.leaderInfo) send(PacketType.ackEpoch, has, encodeAckEpoch(1))
      if (type === PacketType.newLeader) send(PacketType.ack, zxid, null)
    },
  })
  connection.setHandler({
    data: (chunk) => splitter.push(chunk),
    drain() {},
    closed: () => (seen.closed = true),
  })
  connection.write(first)
  await ensemble.advance(100)
  return { seen, send, connection }
}

/** Returns the request that creates a session. */
export function createSession(session: SessionId, timeout: number): Uint8Array {
  const writer = new Writer(64)
  writer.long(session)
  writer.int(0)
  writer.int(OpCode.createSession)
  writer.int(timeout)
  return writer.take()
}

/** Returns the request that closes a session. */
export function closeSession(session: SessionId): Uint8Array {
  const writer = new Writer(64)
  writer.long(session)
  writer.int(1)
  writer.int(OpCode.closeSession)
  return writer.take()
}
