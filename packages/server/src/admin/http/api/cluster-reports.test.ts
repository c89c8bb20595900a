import { ManualClock } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import { parseConfiguration } from '../../../core/quorum/index.ts'
import type { ReportOfMember, ReportsResult } from '../../../core/zab/index.ts'
import type { AdminTarget } from '../../admin-target.ts'
import { SlicedAnswers } from '../../sliced-answers.ts'
import { FULL_REPORT } from '../../testing/full-report.ts'
import type { ProbedMember } from './cluster-probe.ts'
import { ClusterReports } from './cluster-reports.ts'
import { encodeReport } from './member-report.ts'

const LINES = (size: number): string =>
  Array.from({ length: size }, (_, index) => `server.${index + 1}=h${index + 1}:2888:3888`).join('\n')
const ANSWER = { mode: 'follower', zxid: '0x5', version: '3.9.5', connections: 1, znodes: 2 }
const REFUSED: ProbedMember = { answer: undefined, answeredAt: 0, problem: 'refused' }

function fixture(size: number) {
  const clock = new ManualClock()
  const asked: number[] = []
  const state: { result: ReportsResult; probed: ProbedMember } = {
    result: { unavailable: 'no leader' },
    probed: REFUSED,
  }
  const target = {
    configuration: parseConfiguration(LINES(size)),
    settings: { serverId: 1, clientPort: 2181 },
    memberReports: async () => state.result,
  } as unknown as AdminTarget
  const probe = { ask: async ({ id }: { id: number }) => (asked.push(id), state.probed) }
  const reports = new ClusterReports(clock, probe, new SlicedAnswers(clock))
  const read = async () => {
    const reading = reports.read(target)
    await clock.untilIdle()
    return (await reading).get(2)!
  }
  const receive = (...members: readonly ReportOfMember[]): void => {
    state.result = { members, receivedAt: clock.monotonic() }
  }
  return { clock, asked, state, target, reports, read, receive }
}

const reported = (id: number, ageMs = 0): ReportOfMember => ({
  id,
  report: encodeReport(FULL_REPORT),
  ageMs,
})

describe('what is known of another member', () => {
  it('is its report, with its age, and why it is not ready', async () => {
    const { clock, asked, reports, read, receive } = fixture(2)
    receive(reported(2, 300))
    clock.advance(200)
    const known = await read()
    expect(known).toMatchObject({
      report: FULL_REPORT,
      source: 'report',
      isCurrent: true,
      reason: null,
      problem: 'log: the disk is full, writes are refused',
    })
    expect(reports.ageOf(known)).toBe(500)
    expect(asked).toEqual([])
  })

  it('is what it answers to srvr where it has no report, with the reason', async () => {
    const { clock, asked, state, read, receive } = fixture(2)
    state.probed = { answer: ANSWER, answeredAt: clock.monotonic(), problem: undefined }
    for (const [members, reason] of [
      [[{ id: 2, report: undefined, reason: 'foreign' }], 'it runs Apache ZooKeeper, which makes no reports'],
      [[{ id: 2, report: undefined, reason: 'syncing' }], 'the leader is bringing it up to date'],
      [[], 'it is not connected to the leader'],
    ] as const) {
      receive(...members)
      expect(await read()).toMatchObject({
        report: { state: 'follower', zxid: '0x5', znodes: 2, disk: null, ready: null },
        source: 'srvr',
        isCurrent: true,
        reason,
        problem: null,
      })
    }
    expect(asked).toEqual([2, 2, 2])
  })

  it('is what was known last where it answers nothing, whichever is newer', async () => {
    const { clock, state, reports, read, receive } = fixture(2)
    const begin = clock.monotonic()
    expect(await read()).toMatchObject({ source: undefined, problem: 'no leader; refused', isCurrent: false })
    clock.advance(1000)
    receive(reported(2))
    await read()
    clock.advance(1000)
    receive()
    state.probed = { answer: ANSWER, answeredAt: begin + 500, problem: 'refused' }
    const before = await read()
    expect(before).toMatchObject({ report: FULL_REPORT, source: 'report', isCurrent: false })
    expect(reports.ageOf(before)).toBe(1000)
    state.probed = { answer: ANSWER, answeredAt: begin + 1500, problem: 'refused' }
    const after = await read()
    expect(after).toMatchObject({ report: { zxid: '0x5' }, source: 'srvr', isCurrent: false })
    expect(reports.ageOf(after)).toBe(500)
  })

  it('is forgotten with the member', async () => {
    const { target, reports, read, receive, state } = fixture(2)
    receive(reported(2))
    await read()
    state.result = { unavailable: 'no leader' }
    await reports.read({ ...target, configuration: parseConfiguration(LINES(1)) })
    expect(await read()).toMatchObject({ source: undefined })
  })

  it('is read over several turns where reports take long', async () => {
    const { clock, target, reports, receive } = fixture(33)
    receive(...Array.from({ length: 32 }, (_, index) => reported(index + 2)))
    // Each reading of the clock takes a millisecond.
    const monotonic = clock.monotonic.bind(clock)
    let now = monotonic()
    clock.monotonic = () => now++
    let turns = 0
    const immediate = clock.immediate.bind(clock)
    clock.immediate = (action) => immediate(() => (turns++, action()))
    const reading = reports.read(target)
    await clock.untilIdle()
    expect((await reading).size).toBe(32)
    expect(turns).toBeGreaterThan(10)
  })
})
