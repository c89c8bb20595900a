import { ProtocolError, Reader, Writer } from '@zabra/protocol'
import type { ServerId } from '../quorum/index.ts'

/** The longest report of a member, in bytes. */
export const MAX_REPORT_BYTES = 8 * 1024
/** The most bytes of all reports in an answer: they delay the proposals behind them. */
export const MAX_REPORTS_BYTES = 256 * 1024

/** Why a leader has no report of a learner, each with the number that it has in a packet. */
const REASONS = ['reported', 'silent', 'syncing', 'foreign', 'left-out'] as const

/**
 * `silent`: it has not reported in time. `syncing`: it is being brought up to date. `foreign`: it sends no extension, as Apache
 * ZooKeeper. `left-out`: the answer has no room for it.
 */
export type ReportReason = Exclude<(typeof REASONS)[number], 'reported'>

/** What a leader knows of a member: its report, or why there is none. */
export type ReportOfMember = { readonly id: ServerId } & (
  | {
      /** What the member says of itself; opaque here. */
      readonly report: Uint8Array
      /** How old the report was when it was sent on, in milliseconds. */
      readonly ageMs: number
    }
  | { readonly report: undefined; readonly reason: ReportReason }
)

/** What a learner sends about reports (quorum-protocol 18.10): it asks for those of all members, or sends its own and those of its observers. */
export type LearnerReportPacket =
  | { readonly kind: 'ask'; readonly number: number }
  | { readonly kind: 'report'; readonly number: number; readonly members: readonly ReportOfMember[] }

/** What a leader sends: it asks a learner for its report, or answers with those of all members. */
export type LeaderReportPacket =
  | { readonly kind: 'collect'; readonly number: number }
  | { readonly kind: 'answer'; readonly number: number; readonly members: readonly ReportOfMember[] }

/** The reports of all members, or why there are none. */
export type ReportsResult =
  | {
      readonly members: readonly ReportOfMember[]
      /** When they were received, on the monotonic clock. */
      readonly receivedAt: number
    }
  | { readonly unavailable: string }

const FIELD = 'a report of a member'
const REQUEST = 1
const REPLY = 2
/** The length of the kind, before the number. */
const KIND_BYTES = 1
/** The most members in an answer. */
const MAX_SERVERS = 1000
const MAX_AGE_MS = 0x7fff_ffff
/** The most bytes of a packet: with up to 17 of each member beside its report, and 13 before all. */
const MAX_DATA_BYTES = MAX_REPORTS_BYTES + 17 * MAX_SERVERS + 13

/** Leaves out reports for which there is no room. */
export function encodeLearnerReportPacket(packet: LearnerReportPacket): Uint8Array {
  return packet.kind === 'ask' ? encode(REQUEST, packet.number) : encode(REPLY, packet.number, packet.members)
}

/** Returns undefined for a packet of a later release. Throws a `ProtocolError` for malformed data. */
export function decodeLearnerReportPacket(data: Uint8Array | null): LearnerReportPacket | undefined {
  const { reader, kind, number } = headOf(data)
  if (kind === REQUEST) return { kind: 'ask', number }
  return kind === REPLY ? { kind: 'report', number, members: readMembers(reader) } : undefined
}

/** Leaves out reports for which there is no room. */
export function encodeLeaderReportPacket(packet: LeaderReportPacket): Uint8Array {
  return packet.kind === 'collect'
    ? encode(REQUEST, packet.number)
    : encode(REPLY, packet.number, packet.members)
}

/** Returns undefined for a packet of a later release. Throws a `ProtocolError` for malformed data. */
export function decodeLeaderReportPacket(data: Uint8Array | null): LeaderReportPacket | undefined {
  const { reader, kind, number } = headOf(data)
  if (kind === REQUEST) return { kind: 'collect', number }
  return kind === REPLY ? { kind: 'answer', number, members: readMembers(reader) } : undefined
}

/** Gives an encoded packet another number, in place. Returns it. */
export function setReportNumber(packet: Uint8Array, number: number): Uint8Array {
  new DataView(packet.buffer, packet.byteOffset).setBigInt64(KIND_BYTES, BigInt(number))
  return packet
}

function encode(kind: number, number: number, members?: readonly ReportOfMember[]): Uint8Array {
  const writer = new Writer(64)
  writer.byte(kind)
  writer.longNumber(number)
  if (members !== undefined) writeMembers(writer, members.slice(0, MAX_SERVERS))
  return writer.take()
}

function writeMembers(writer: Writer, members: readonly ReportOfMember[]): void {
  let left = MAX_REPORTS_BYTES
  writer.int(members.length)
  for (const member of members) {
    const { id, report } = member
    const fits = report !== undefined && report.length <= left
    writer.longNumber(id)
    writer.byte(fits ? 0 : REASONS.indexOf(report === undefined ? member.reason : 'left-out'))
    if (!fits) continue
    left -= report.length
    writer.int(Math.min(MAX_AGE_MS, Math.floor(member.ageMs)))
    writer.buffer(report)
  }
}

function readMembers(reader: Reader): readonly ReportOfMember[] {
  const count = reader.int()
  if (count < 0 || count > MAX_SERVERS)
    throw new ProtocolError(`Expected at most ${MAX_SERVERS} servers, got ${count}`, 0, FIELD)
  return Array.from({ length: count }, () => readMember(reader))
}

function readMember(reader: Reader): ReportOfMember {
  const id = reader.longNumber()
  // A later release may have more reasons.
  const reason = REASONS[reader.byte()] ?? 'silent'
  if (reason !== 'reported') return { id, report: undefined, reason }
  const ageMs = reader.int()
  if (ageMs < 0) throw new ProtocolError(`Expected an age from 0, got ${ageMs}`, 0, FIELD)
  return { id, ageMs, report: readReport(reader) }
}

/** Returns a copy: what it is cut from may be a much longer chunk of the connection. */
function readReport(reader: Reader): Uint8Array {
  const length = reader.int()
  if (length < 0 || length > MAX_REPORT_BYTES)
    throw new ProtocolError(`Expected a report of up to ${MAX_REPORT_BYTES} bytes, got ${length}`, 0, FIELD)
  return reader.raw(length).slice()
}

function headOf(data: Uint8Array | null): {
  readonly reader: Reader
  readonly kind: number
  readonly number: number
} {
  if (data === null) throw new ProtocolError('Expected data, got null', 0, FIELD)
  if (data.length > MAX_DATA_BYTES)
    throw new ProtocolError(`Expected up to ${MAX_DATA_BYTES} bytes, got ${data.length}`, 0, FIELD)
  const reader = new Reader(data)
  return { reader, kind: reader.byte(), number: reader.longNumber() }
}
