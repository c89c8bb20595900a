import { ProtocolError } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import {
  decodeLeaderReportPacket,
  decodeLearnerReportPacket,
  encodeLeaderReportPacket,
  encodeLearnerReportPacket,
  MAX_REPORT_BYTES,
  MAX_REPORTS_BYTES,
  type ReportOfMember,
} from './member-report.ts'

const bytes = (length: number): Uint8Array => new Uint8Array(length).fill(7)

/** Behind kind, number, count, id, reason and age. */
const LENGTH_OFFSET = 1 + 8 + 4 + 8 + 1 + 4

describe('a packet about reports', () => {
  it.each([
    { kind: 'ask', number: 5 },
    { kind: 'report', number: 2 ** 40, members: [{ id: 1, report: bytes(3), ageMs: 0 }] },
    { kind: 'report', number: 1, members: [{ id: 1, report: bytes(MAX_REPORT_BYTES), ageMs: 5 }] },
    { kind: 'report', number: 1, members: [{ id: 1, report: bytes(0), ageMs: 5 }] },
  ] as const)('of a learner is decoded as it was encoded: $kind $number', (packet) => {
    expect(decodeLearnerReportPacket(encodeLearnerReportPacket(packet))).toEqual(packet)
  })

  it('of a leader is decoded as it was encoded', () => {
    const members: ReportOfMember[] = [
      { id: 1, report: bytes(3), ageMs: 7 },
      ...(['silent', 'syncing', 'foreign', 'left-out'] as const).map((reason, index) => ({
        id: index + 2,
        report: undefined,
        reason,
      })),
    ]
    for (const packet of [
      { kind: 'collect', number: 3 },
      { kind: 'answer', number: 4, members },
      { kind: 'answer', number: 4, members: [] },
    ] as const)
      expect(decodeLeaderReportPacket(encodeLeaderReportPacket(packet))).toEqual(packet)
  })

  it('leaves out the reports for which an answer has no room, and says so', () => {
    const members = Array.from({ length: 40 }, (_, id) => ({ id, report: bytes(MAX_REPORT_BYTES), ageMs: 0 }))
    const encoded = encodeLeaderReportPacket({ kind: 'answer', number: 1, members })
    expect(encoded.length).toBeLessThan(MAX_REPORTS_BYTES + 2000)
    const decoded = decodeLeaderReportPacket(encoded) as { members: readonly ReportOfMember[] }
    expect(decoded.members.map(({ id, report }) => [id, report?.length])).toEqual(
      members.map(({ id }) => [id, id < 32 ? MAX_REPORT_BYTES : undefined]),
    )
    expect(decoded.members[39]).toEqual({ id: 39, report: undefined, reason: 'left-out' })
  })

  it('keeps no part of the chunk that it was decoded from', () => {
    const chunk = new Uint8Array(100_000)
    const encoded = encodeLearnerReportPacket({
      kind: 'report',
      number: 1,
      members: [{ id: 1, report: bytes(3), ageMs: 0 }],
    })
    chunk.set(encoded)
    const decoded = decodeLearnerReportPacket(chunk.subarray(0, encoded.length)) as {
      members: readonly { report: Uint8Array }[]
    }
    expect(decoded.members[0]!.report.buffer.byteLength).toBe(3)
  })

  it('is refused when it is cut, null, or longer than allowed', () => {
    const report = encodeLearnerReportPacket({
      kind: 'report',
      number: 1,
      members: [{ id: 1, report: bytes(9), ageMs: 0 }],
    })
    const long = report.slice()
    new DataView(long.buffer).setInt32(LENGTH_OFFSET, MAX_REPORT_BYTES + 1)
    const none = report.slice()
    new DataView(none.buffer).setInt32(LENGTH_OFFSET, -1)
    const aged = report.slice()
    new DataView(aged.buffer).setInt32(LENGTH_OFFSET - 4, -1)
    const huge = new Uint8Array(300_000)
    huge.set(report)
    const many = encodeLeaderReportPacket({ kind: 'answer', number: 1, members: [] })
    new DataView(many.buffer).setInt32(9, 1001)
    for (const data of [null, report.subarray(0, -1), report.subarray(0, 4), long, none, aged, huge])
      expect(() => decodeLearnerReportPacket(data)).toThrow(ProtocolError)
    for (const data of [null, many, many.subarray(0, 10)])
      expect(() => decodeLeaderReportPacket(data)).toThrow(ProtocolError)
  })

  it('of a later release is ignored, and so is what it says of the reason for no report', () => {
    const unknown = Uint8Array.of(9, 0, 0, 0, 0, 0, 0, 0, 1)
    expect(decodeLearnerReportPacket(unknown)).toBeUndefined()
    expect(decodeLeaderReportPacket(unknown)).toBeUndefined()
    const answer = encodeLeaderReportPacket({
      kind: 'answer',
      number: 1,
      members: [{ id: 2, report: undefined, reason: 'syncing' }],
    })
    answer[answer.length - 1] = 77
    expect(decodeLeaderReportPacket(answer)).toMatchObject({ members: [{ id: 2, reason: 'silent' }] })
  })
})
