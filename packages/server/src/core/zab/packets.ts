import type { Writer } from '@zabra/protocol'
import type { Identity, Zxid } from '../types.ts'

/** The types of packets on the quorum port (quorum-protocol 7.2). */
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

/** Returns the name of a type for log messages, or the number of an unknown type. */
export const packetName = (type: number): string => names.get(type) ?? `type ${type}`

/** The zxid field of packets without a zxid. */
export const NO_ZXID = -1

/** A packet between a leader and a learner. */
export interface QuorumPacket {
  /** A `PacketType`, or an unknown number: such packets are ignored. */
  readonly type: number
  readonly zxid: Zxid
  readonly data: Uint8Array | null
  /** The identities of the client, in REQUEST packets. */
  readonly auth: readonly Identity[] | null
}

/** Appends a packet (quorum-protocol 7.1). Absent data and identities are written as null, as Apache ZooKeeper does. */
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

/** Appends the identities of a client, the last field of a packet. */
export function writeIdentities(writer: Writer, auth: readonly Identity[] | null): void {
  if (auth === null) return writer.int(-1)
  writer.int(auth.length)
  for (const { scheme, id } of auth) {
    writer.string(scheme)
    writer.string(id)
  }
}

/** Appends a packet given as an object. */
export function encodePacket(writer: Writer, { type, zxid, data, auth }: QuorumPacket): void {
  writePacket(writer, type, zxid, data, auth)
}
