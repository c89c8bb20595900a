import { ProtocolError, Reader, readText, textByteLength, Writer, writeText } from '@zabra/protocol'
import type { ServerId } from '../quorum/index.ts'
import type { Identity, SessionId } from '../types.ts'
import { NO_ZXID, PacketType, writeIdentities } from './packets.ts'

/** The version of the protocol that knows epochs. Earlier ones are refused. */
export const PROTOCOL_VERSION = 0x1_0000

/** (7.2) How a learner introduces itself. */
export interface LearnerInfo {
  readonly serverId: ServerId
  readonly protocolVersion: number
  /** The version of the configuration that is in force at the learner. */
  readonly configVersion: number
}

export function encodeLearnerInfo({ serverId, protocolVersion, configVersion }: LearnerInfo): Uint8Array {
  const writer = new Writer(20)
  writer.longNumber(serverId)
  writer.int(protocolVersion)
  writer.longNumber(configVersion)
  return writer.take()
}

/** Old learners say less: what is missing is as old as can be. Throws a `ProtocolError` without a server id. */
export function decodeLearnerInfo(data: Uint8Array | null): LearnerInfo {
  const reader = readerOf(data, 'the introduction of a learner')
  const serverId = reader.longNumber()
  const protocolVersion = reader.remaining >= 4 ? reader.int() : 1
  const configVersion = reader.remaining >= 8 ? reader.longNumber() : 0
  return { serverId, protocolVersion, configVersion }
}

export const encodeLeaderInfo = (): Uint8Array => encodeInt(PROTOCOL_VERSION)
/** The leader's version of the protocol. */
export const decodeLeaderInfo = (data: Uint8Array | null): number =>
  readerOf(data, 'the introduction of a leader').int()

/** The epoch that a learner was in, or -1 when it gives no promise because it has given it before. */
export const encodeAckEpoch = (currentEpoch: number): Uint8Array => encodeInt(currentEpoch)
export const decodeAckEpoch = (data: Uint8Array | null): number =>
  readerOf(data, 'the epoch of a learner').int()

/** Hands out each session that a learner has heard of since the last PING, with its timeout in milliseconds. */
export function decodeTouches(
  data: Uint8Array | null,
  touch: (session: SessionId, timeout: number) => void,
): void {
  if (data === null) return
  if (data.length % 12 !== 0)
    throw new ProtocolError(
      `Expected a multiple of 12 bytes, got ${data.length}`,
      0,
      'the sessions of a ping',
    )
  const reader = new Reader(data)
  while (reader.remaining > 0) touch(reader.long(), reader.int())
}

/** The data of a PING answer; empty, not null, without sessions. */
export function encodeTouches(touches: Iterable<readonly [SessionId, number]>): Uint8Array {
  const writer = new Writer(256)
  for (const [session, timeout] of touches) {
    writer.long(session)
    writer.int(timeout)
  }
  return writer.take()
}

/** Whether a session that came back to a learner is alive; its timeout in milliseconds. */
export interface Revalidation {
  readonly session: SessionId
  readonly timeout: number
}

export function encodeRevalidation({ session, timeout }: Revalidation): Uint8Array {
  const writer = new Writer(12)
  writer.long(session)
  writer.int(timeout)
  return writer.take()
}

export function decodeRevalidation(data: Uint8Array | null): Revalidation {
  const reader = readerOf(data, 'a session to be revalidated')
  return { session: reader.long(), timeout: reader.int() }
}

export interface RevalidationReply {
  readonly session: SessionId
  readonly valid: boolean
}

export function encodeRevalidationReply({ session, valid }: RevalidationReply): Uint8Array {
  const writer = new Writer(9)
  writer.long(session)
  writer.bool(valid)
  return writer.take()
}

export function decodeRevalidationReply(data: Uint8Array | null): RevalidationReply {
  const reader = readerOf(data, 'the answer for a session')
  return { session: reader.long(), valid: reader.bool() }
}

/** A write, or a sync, of a learner's client. */
export interface ForwardedRequest {
  readonly session: SessionId
  readonly cxid: number
  /** An `OpCode`. */
  readonly type: number
  /** The bytes of the client's request after its header; a view. */
  readonly body: Uint8Array
}

/** Appends a REQUEST. Its data are written where they go, since a learner sends one for each write of its clients. */
export function writeForwardedRequest(
  writer: Writer,
  { session, cxid, type, body }: ForwardedRequest,
  auth: readonly Identity[] | null,
): void {
  writer.int(PacketType.request)
  writer.longNumber(NO_ZXID)
  const mark = writer.beginFrame()
  writer.long(session)
  writer.int(cxid)
  writer.int(type)
  writer.raw(body)
  writer.endFrame(mark)
  writeIdentities(writer, auth)
}

export function decodeForwardedRequest(data: Uint8Array | null): ForwardedRequest {
  const reader = readerOf(data, 'a forwarded request')
  const [session, cxid, type] = [reader.long(), reader.int(), reader.int()]
  return { session, cxid, type, body: reader.raw(reader.remaining) }
}

/** COMMITANDACTIVATE: who is to lead under the new configuration. */
export function encodeDesignatedLeader(leader: ServerId): Uint8Array {
  const writer = new Writer(8)
  writer.longNumber(leader)
  return writer.take()
}

export const decodeDesignatedLeader = (data: Uint8Array | null): ServerId =>
  readerOf(data, 'the designated leader').longNumber()

/** INFORMANDACTIVATE: the same, and the transaction, as PROPOSAL has it. */
export function encodeInformAndActivate(leader: ServerId, payload: Uint8Array): Uint8Array {
  const writer = new Writer(8 + payload.length)
  writer.longNumber(leader)
  writer.raw(payload)
  return writer.take()
}

export function decodeInformAndActivate(data: Uint8Array | null): { leader: ServerId; payload: Uint8Array } {
  const reader = readerOf(data, 'a configuration that comes into force')
  return { leader: reader.longNumber(), payload: reader.raw(reader.remaining) }
}

/** NEWLEADER: the text of a configuration, or of none. */
export function encodeConfigurationText(text: string): Uint8Array {
  const bytes = new Uint8Array(textByteLength(text))
  writeText(text, bytes, 0)
  return bytes
}

export const decodeConfigurationText = (data: Uint8Array | null): string =>
  data === null ? '' : readText(data, 0, data.length)

function encodeInt(value: number): Uint8Array {
  const writer = new Writer(4)
  writer.int(value)
  return writer.take()
}

function readerOf(data: Uint8Array | null, field: string): Reader {
  if (data === null) throw new ProtocolError('Expected data, got null', 0, field)
  return new Reader(data)
}
