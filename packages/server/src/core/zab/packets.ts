import type { Writer } from '@zabra/protocol'
import type { Identity, Zxid } from '../types.ts'

/** P1 (7.2) What members say on the quorum port. There are no other types. */
export const PacketType = {
  request: 1,
  proposal: 2,
  ack: 3,
  commit: 4,
  ping: 5,
  revalidate: 6,
  sync: 7,
  inform: 8,
  commitAndActivate: 9,
  newLeader: 10,
  followerInfo: 11,
  upToDate: 12,
  diff: 13,
  trunc: 14,
  snap: 15,
  observerInfo: 16,
  leaderInfo: 17,
  ackEpoch: 18,
  informAndActivate: 19,
} as const
export type PacketType = (typeof PacketType)[keyof typeof PacketType]

const names = new Map(Object.entries(PacketType).map(([name, type]) => [type as number, name]))

/** The name of a type for a log line, or the number of one that does not exist. */
export const packetName = (type: number): string => names.get(type) ?? `type ${type}`

/** The zxid field of packets that speak of no transaction. */
export const NO_ZXID = -1

/** One record of the stream between a leader and a learner. */
export interface QuorumPacket {
  /** One of `PacketType`, or a number that nobody has given a meaning yet: such packets are ignored. */
  readonly type: number
  readonly zxid: Zxid
  readonly data: Uint8Array | null
  /** Who a client is, with its requests. */
  readonly auth: readonly Identity[] | null
}

/** P2 (7.1) Appends a packet. Absent data and identities are written as null, as Apache ZooKeeper does. */
export function writePacket(
  writer: Writer,
  type: number,
  zxid: Zxid,
  data: Uint8Array | null = null,
  auth: readonly Identity[] | null = null,
): void {
  writer.int(type)
  writer.longNumber(zxid)
  writer.buffer(data)
  writeIdentities(writer, auth)
}

/** Who a client is, behind the data of a packet. */
export function writeIdentities(writer: Writer, auth: readonly Identity[] | null): void {
  if (auth === null) return writer.int(-1)
  writer.int(auth.length)
  for (const { scheme, id } of auth) {
    writer.string(scheme)
    writer.string(id)
  }
}

/** The same for a packet that is a value. */
export function encodePacket(writer: Writer, { type, zxid, data, auth }: QuorumPacket): void {
  writePacket(writer, type, zxid, data, auth)
}
