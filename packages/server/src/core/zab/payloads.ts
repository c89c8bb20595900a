import {
  formatZxid,
  OpCode,
  ProtocolError,
  Reader,
  readText,
  textByteLength,
  Writer,
  writeText,
} from '@zabra/protocol'
import { isLogged } from '../operations/index.ts'
import {
  ConfigurationError,
  parseConfiguration,
  type EnsembleConfiguration,
  type ServerId,
} from '../quorum/index.ts'
import type { Identity, SessionId, Zxid } from '../types.ts'
import { NO_ZXID, PacketType, writeIdentities } from './packets.ts'

/** The protocol version of ZooKeeper 3.4 and later, with epoch agreement. Earlier versions are rejected. */
export const PROTOCOL_VERSION = 0x1_0000

/** Data of FOLLOWERINFO and OBSERVERINFO (quorum-protocol 7.2). */
export interface LearnerInfo {
  readonly serverId: ServerId
  readonly protocolVersion: number
  /** Version of the learner's active configuration. */
  readonly configVersion: number
}

/** The length of a `LearnerInfo`, and of the info of a leader. The extension of a member follows. */
export const LEARNER_INFO_BYTES = 20
export const LEADER_INFO_BYTES = 4

export function encodeLearnerInfo({ serverId, protocolVersion, configVersion }: LearnerInfo): Uint8Array {
  const writer = new Writer(LEARNER_INFO_BYTES)
  writer.longNumber(serverId)
  writer.int(protocolVersion)
  writer.longNumber(configVersion)
  return writer.take()
}

/**
 * Decodes a `LearnerInfo`. Old learners omit fields, which get their oldest value. Throws a `ProtocolError` without a
 * server id.
 */
export function decodeLearnerInfo(data: Uint8Array | null): LearnerInfo {
  const reader = readerOf(data, 'the info of a learner')
  const serverId = reader.longNumber()
  const protocolVersion = reader.remaining >= 4 ? reader.int() : 1
  const configVersion = reader.remaining >= 8 ? reader.longNumber() : 0
  return { serverId, protocolVersion, configVersion }
}

export const encodeLeaderInfo = (): Uint8Array => encodeInt(PROTOCOL_VERSION)
/** Decodes the protocol version of the leader. */
export const decodeLeaderInfo = (data: Uint8Array | null): number =>
  readerOf(data, 'the info of a leader').int()

/** Encodes the currentEpoch of a learner, or -1 if it had accepted the epoch before, which does not count again. */
export const encodeAckEpoch = (currentEpoch: number): Uint8Array => encodeInt(currentEpoch)
export const decodeAckEpoch = (data: Uint8Array | null): number =>
  readerOf(data, 'the epoch of a learner').int()

/** A session and its timeout. */
const TOUCH_BYTES = 12
/** Sessions that are touched in a step, in about a tenth of a millisecond. */
const TOUCHES_PER_STEP = 256

/**
 * Returns the steps that call `touch` for each session that was active at a learner since its last PING, with the timeout in
 * milliseconds. Throws a `ProtocolError` for malformed data, at once.
 */
export function touchSteps(
  data: Uint8Array | null,
  touch: (session: SessionId, timeout: number) => void,
): Generator<void> {
  const bytes = data ?? new Uint8Array(0)
  if (bytes.length % TOUCH_BYTES !== 0)
    throw new ProtocolError(
      `Expected a multiple of ${TOUCH_BYTES} bytes, got ${bytes.length}`,
      0,
      'the sessions of a ping',
    )
  return touchAll(new Reader(bytes), touch)
}

function* touchAll(reader: Reader, touch: (session: SessionId, timeout: number) => void): Generator<void> {
  for (let touched = 1; reader.remaining > 0; touched++) {
    touch(reader.long(), reader.int())
    if (touched % TOUCHES_PER_STEP === 0) yield
  }
}

/** Encodes the data of a learner's PING; empty, not null, without sessions. A learner may have a hundred thousand, twice in a tick. */
export function encodeTouches(
  touches: readonly { readonly id: SessionId; readonly timeout: number }[],
): Uint8Array {
  const bytes = new Uint8Array(touches.length * TOUCH_BYTES)
  const view = new DataView(bytes.buffer)
  let at = 0
  for (const { id, timeout } of touches) {
    view.setBigInt64(at, id)
    view.setInt32(at + 8, timeout)
    at += TOUCH_BYTES
  }
  return bytes
}

/** A learner's question whether a session that has connected to it is alive. `timeout` is in milliseconds. */
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
  /** Whether the session lives and may not go on at the learner; says so to a learner of Zabra alone. */
  readonly isRefused?: boolean
}

export function encodeRevalidationReply({ session, valid, isRefused }: RevalidationReply): Uint8Array {
  const writer = new Writer(10)
  writer.long(session)
  writer.bool(valid)
  if (isRefused === true) writer.bool(true)
  return writer.take()
}

export function decodeRevalidationReply(data: Uint8Array | null): RevalidationReply {
  const reader = readerOf(data, 'a revalidation reply')
  const reply = { session: reader.long(), valid: reader.bool() }
  return reader.remaining > 0 && reader.bool() ? { ...reply, isRefused: true } : reply
}

/** The secret for the passwords of sessions, as members share it (quorum-protocol 18.5). */
export interface SharedSecret {
  /** Grows with each change. Of two secrets the one with the higher generation counts. */
  readonly generation: number
  readonly bytes: Uint8Array
  /** Since when it is used, in milliseconds since 1970; undefined while not all members have it. */
  readonly since: number | undefined
}

/** A secret that a leader offers, without servers, or that a learner has. */
export interface SecretReport {
  readonly secret: SharedSecret
  /** The learner, and its observers, that have the secret on disk. */
  readonly holders: readonly ServerId[]
  /** The observers of the learner that do not share secrets. */
  readonly others: readonly ServerId[]
}

const SECRET_BYTES = 32
/** The most servers in a report. */
const MAX_REPORTED = 1000

export function encodeSecretReport({ secret, holders, others }: SecretReport): Uint8Array {
  const writer = new Writer(128)
  writer.longNumber(secret.generation)
  writer.longNumber(secret.since ?? -1)
  writer.raw(secret.bytes)
  for (const ids of [holders, others]) {
    writer.int(ids.length)
    for (const id of ids) writer.longNumber(id)
  }
  return writer.take()
}

export function decodeSecretReport(data: Uint8Array | null): SecretReport {
  const reader = readerOf(data, 'the secret of sessions')
  const [generation, since] = [reader.longNumber(), reader.longNumber()]
  if (generation < 0 || generation > MAX_GENERATION)
    throw new ProtocolError(
      `Expected a generation from 0 to ${MAX_GENERATION}, got ${generation}`,
      0,
      'a secret',
    )
  const bytes = reader.raw(SECRET_BYTES).slice()
  const readIds = (): ServerId[] => {
    const count = reader.int()
    if (count < 0 || count > MAX_REPORTED)
      throw new ProtocolError(`Expected at most ${MAX_REPORTED} servers, got ${count}`, 0, 'a secret')
    return Array.from({ length: count }, () => reader.longNumber())
  }
  const [holders, others] = [readIds(), readIds()]
  return { secret: { generation, bytes, since: since < 0 ? undefined : since }, holders, others }
}

/** The highest generation that a member takes over: a hundred changes a second for years. */
const MAX_GENERATION = 2 ** 40

/** A write or sync request of a client, which a learner forwards to the leader (REQUEST packet). */
export interface ForwardedRequest {
  readonly sessionId: SessionId
  readonly xid: number
  /** An `OpCode`. */
  readonly type: number
  /** The bytes of the client's request after its header; at the leader a view of the packet. */
  readonly body: Uint8Array
  readonly identities: readonly Identity[]
}

/** Appends a REQUEST packet. Writes its data in place, since a learner sends one for each write of its clients. */
export function writeForwardedRequest(
  writer: Writer,
  { sessionId, xid, type, body, identities }: ForwardedRequest,
): void {
  writer.int(PacketType.request)
  writer.longNumber(NO_ZXID)
  const mark = writer.beginFrame()
  writer.long(sessionId)
  writer.int(xid)
  writer.int(type)
  writer.raw(body)
  writer.endFrame(mark)
  writeIdentities(writer, identities)
}

/** Decodes the data of a REQUEST packet. `reader` is used for all of them, since a new one costs more than the rest. */
export function decodeForwardedRequest(
  data: Uint8Array | null,
  identities: readonly Identity[],
  reader: Reader,
): ForwardedRequest {
  readerOf(data, 'a forwarded request', reader)
  return {
    sessionId: reader.long(),
    xid: reader.int(),
    type: reader.int(),
    body: reader.raw(reader.remaining),
    identities,
  }
}

/** Encodes the data of COMMITANDACTIVATE: the designated leader (quorum-protocol 14.4). */
export function encodeDesignatedLeader(leader: ServerId): Uint8Array {
  const writer = new Writer(8)
  writer.longNumber(leader)
  return writer.take()
}

export const decodeDesignatedLeader = (data: Uint8Array | null): ServerId =>
  readerOf(data, 'the designated leader').longNumber()

/** Encodes the data of INFORMANDACTIVATE: the designated leader and the transaction as in PROPOSAL. */
export function encodeInformAndActivate(leader: ServerId, payload: Uint8Array): Uint8Array {
  const writer = new Writer(8 + payload.length)
  writer.longNumber(leader)
  writer.raw(payload)
  return writer.take()
}

export function decodeInformAndActivate(data: Uint8Array | null): { leader: ServerId; payload: Uint8Array } {
  const reader = readerOf(data, 'a configuration to be activated')
  return { leader: reader.longNumber(), payload: reader.raw(reader.remaining) }
}

/** Encodes the data of NEWLEADER: the text of a configuration, or an empty text. */
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

function readerOf(data: Uint8Array | null, field: string, reader = new Reader()): Reader {
  if (data === null) throw new ProtocolError('Expected data, got null', 0, field)
  return reader.resetToView(data)
}

/** Offsets of the zxid and the type in a transaction header, after session and cxid, and after zxid and time. */
const ZXID_OFFSET = 12
const TYPE_OFFSET = 28
const TYPE_BYTES = 4

/**
 * Throws a `ProtocolError` unless a payload is a transaction of this zxid, of a type that this release knows. Its record is checked before it
 * is logged.
 */
export function checkTransaction(zxid: Zxid, payload: Uint8Array): void {
  const type = payload.length < TYPE_OFFSET + TYPE_BYTES ? undefined : readInt(payload, TYPE_OFFSET)
  const inside = readInt(payload, ZXID_OFFSET) * 2 ** 32 + (readInt(payload, ZXID_OFFSET + 4) >>> 0)
  if (type !== undefined && isLogged(type) && inside === zxid) return
  const got = type === undefined ? `${payload.length} bytes` : `0x${formatZxid(inside)} of type ${type}`
  throw new ProtocolError(
    `Expected a transaction with the zxid 0x${formatZxid(zxid)}, of a type of this release, got ${got}`,
    0,
    'a transaction of the leader',
  )
}

const readInt = (bytes: Uint8Array, at: number): number =>
  (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!

/**
 * Returns the configuration in the payload of a reconfig transaction, or undefined for any other transaction, of which only
 * the type is read. Throws a `ProtocolError` if the configuration is invalid.
 */
export function proposedConfiguration(payload: Uint8Array): EnsembleConfiguration | undefined {
  if (readInt(payload, TYPE_OFFSET) !== OpCode.reconfig) return undefined
  const reader = new Reader(payload, TYPE_OFFSET + TYPE_BYTES)
  reader.string()
  const text = reader.buffer() ?? new Uint8Array(0)
  return decodeConfiguration(readText(text, 0, text.length))
}

/** Parses the text of a configuration. Throws a `ProtocolError` if it is invalid. */
export function decodeConfiguration(text: string): EnsembleConfiguration {
  try {
    return parseConfiguration(text)
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error
    throw new ProtocolError(error.message, 0, 'a configuration')
  }
}

/** Encodes what a SNAP packet says of its snapshot to a learner of Zabra: the number of its nodes. */
export function encodeSnapshotInfo(nodes: number): Uint8Array {
  const writer = new Writer(8)
  writer.longNumber(nodes)
  return writer.take()
}

/** Returns the number of nodes that a SNAP packet announces; undefined where it says nothing, as that of Apache ZooKeeper. */
export function decodeSnapshotInfo(data: Uint8Array | null): number | undefined {
  if (data === null || data.length < 8) return undefined
  const nodes = Number(new DataView(data.buffer, data.byteOffset).getBigInt64(0))
  return nodes > 0 ? nodes : undefined
}
