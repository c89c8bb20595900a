import { ManualClock } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { LearnerSessions } from '../core/sessions/index.ts'
import { SessionMap } from '../core/session-map.ts'
import { touchSteps } from '../core/zab/index.ts'
import { watchFalls } from '../testing/many-connections.ts'
import { mostReported, takeReport } from './session-reports.ts'

function touchedSessions(count: number): LearnerSessions {
  const sessions = new LearnerSessions(new SessionMap())
  for (let id = 0; id < count; id++) sessions.resume(BigInt(id), 5000, 0)
  return sessions
}

function idsOf(report: Uint8Array): number[] {
  const ids: number[] = []
  for (const _ of touchSteps(report, (id) => void ids.push(Number(id))));
  return ids
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, id) => id)

it('a few touched sessions are reported at once', () => {
  const report = takeReport(touchedSessions(3), 10, new ManualClock())
  expect(idsOf(report as Uint8Array)).toEqual(upTo(3))
})

it('fifty thousand touched sessions are taken over turns, for one report, without those that are touched meanwhile', async () => {
  const [sessions, clock] = [touchedSessions(50_000), new ManualClock()]
  const mostTaken = watchFalls(clock, () => sessions.unreported)
  const report = takeReport(sessions, 100_000, clock)
  sessions.resume(50_000n, 5000, 0)
  await clock.untilIdle()
  expect(idsOf(await report)).toEqual(upTo(50_000))
  expect([mostTaken(), sessions.unreported]).toEqual([5000, 1])
})

it('a leader of Apache ZooKeeper gets as many in a report as it reads, and the others with the next one', async () => {
  const [sessions, clock] = [touchedSessions(90_000), new ManualClock()]
  for (const expected of [upTo(80_000), upTo(90_000).slice(80_000)]) {
    const report = takeReport(sessions, mostReported(false, 0xfffff), clock)
    await clock.untilIdle()
    expect(idsOf(await report)).toEqual(expected)
  }
})
