import { ManualClock, MemoryDisk } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import { MAX_REPORT_BYTES } from '../../../core/zab/index.ts'
import { TestServer } from '../../../testing/test-server.ts'
import type { AdminTarget } from '../../admin-target.ts'
import { FULL_REPORT } from '../../testing/full-report.ts'
import { DiskFigures } from '../disk-figures.ts'
import {
  decodeReport,
  EMPTY_REPORT,
  encodeReport,
  MAX_ENTRIES,
  MAX_TEXT,
  notReady,
  OwnReport,
} from './member-report.ts'

const encode = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value))

describe('the report of a member', () => {
  it('is decoded as it was encoded', () => {
    expect(decodeReport(encodeReport(FULL_REPORT))).toEqual({ report: FULL_REPORT, problem: null })
  })

  it('has at most 8 KiB, whatever its texts are, and is read by other members then', () => {
    for (const text of ['x', '"', '\\', '\u0000', '字', '😀', '\u2028']) {
      const detail = text.repeat(10_000)
      const long = {
        ...FULL_REPORT,
        checks: Array.from({ length: 100 }, () => ({ name: 'certificate', ok: false, detail })),
        findings: Array.from({ length: 100 }, () => ({ id: 'backup-unusable', detail })),
      }
      const encoded = encodeReport(long)
      expect(encoded.length).toBeLessThanOrEqual(MAX_REPORT_BYTES)
      const { report, problem } = decodeReport(encoded)
      expect(problem).toBeNull()
      expect([report.checks!.length, report.findings!.length]).toEqual([MAX_ENTRIES, MAX_ENTRIES])
    }
  })

  it.each([
    ['state', 7],
    ['state', 'x'.repeat(MAX_TEXT + 1)],
    ['state', 'leader\u001b[2J'],
    ['zxid', '100000007'],
    ['zxid', '0x10000000000000000'],
    ['zxidLag', -1],
    ['zxidLag', 1.5],
    ['zxidLag', '3'],
    ['uptimeMs', 1e300],
    ['ready', 'yes'],
    ['checks', {}],
    ['checks', [{ name: 'log', ok: true }]],
    ['checks', [{ name: 'log', ok: true, detail: null }]],
    ['checks', Array.from({ length: MAX_ENTRIES + 1 }, () => FULL_REPORT.checks[0])],
    ['disk', null],
    ['disk', { data: { free: 1 }, log: null }],
    ['disk', { data: { free: 1, size: -1 }, log: null }],
    ['certificates', { client: 'soon', quorum: null, http: null }],
    ['certificates', { client: null, quorum: null }],
    ['certificates', { client: null, quorum: null, http: '2026-99-99T99:99:99.000Z' }],
    ['memory', { used: 1, limit: 'none' }],
    ['findings', ['disk']],
  ] as const)('is named wrong in %s where that is %j, and taken in the others', (name, value) => {
    expect(decodeReport(encode({ ...FULL_REPORT, [name]: value }))).toEqual({
      report: { ...FULL_REPORT, [name]: null },
      problem: `its report is wrong in ${name}`,
    })
  })

  it('may have more fields, or fewer, as those of other releases', () => {
    const { znodes, ...older } = FULL_REPORT
    expect(znodes).toBe(4)
    expect(decodeReport(encode({ ...older, newer: { a: 1 } }))).toEqual({
      report: { ...FULL_REPORT, znodes: null },
      problem: null,
    })
    expect(decodeReport(encode(JSON.parse('{"__proto__":{"state":"leader"}}'))).report).toEqual(EMPTY_REPORT)
  })

  it.each(['', '[]', '7', 'null', '{"state":', '{"state":"\u00ff"'])('is not understood: %j', (text) => {
    const bytes = new Uint8Array(Buffer.from(text, 'latin1'))
    expect(decodeReport(bytes)).toEqual({
      report: EMPTY_REPORT,
      problem: `its report is not understood: expected a JSON object, got ${bytes.length} bytes of something else`,
    })
  })

  it('says why a member is not ready', () => {
    expect(notReady(FULL_REPORT)).toBe('log: the disk is full, writes are refused')
    expect(notReady({ ready: false, checks: null })).toBe('not ready')
    expect(notReady({ ready: true, checks: null })).toBeNull()
    expect(notReady({ ready: null, checks: null })).toBeNull()
  })

  it('is made without the figures of a disk that does not answer in half a second', async () => {
    const server = await TestServer.start()
    const target = server.server as unknown as AdminTarget
    const clock = new ManualClock()
    const disk = new MemoryDisk()
    disk.space = () => new Promise(() => {})
    const made = new OwnReport(new DiskFigures(clock, disk), () => undefined).make(target)
    clock.advance(499)
    await clock.untilIdle()
    let isMade = false
    void made.then(() => (isMade = true))
    await clock.untilIdle()
    expect(isMade).toBe(false)
    clock.advance(1)
    expect(await made).toMatchObject({
      state: 'standalone',
      disk: { data: null, log: null },
      findings: [{ id: 'disk-unknown' }],
    })
    await server.stop()
  })
})
