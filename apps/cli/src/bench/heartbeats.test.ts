import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { pingInTurns } from './heartbeats.ts'
import type { RawSession } from './raw-session.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
})
afterEach(() => {
  expect(vi.getTimerCount()).toBe(0)
  vi.useRealTimers()
})

/** Sessions that count their pings, and the number of pings that are sent at each moment. */
function countedSessions(count: number) {
  const pings = Array.from({ length: count }, () => 0)
  const atOnce = new Map<number, number>()
  const sessions = pings.map((_, at) => {
    const ping = (): void => {
      pings[at]!++
      const now = performance.now()
      atOnce.set(now, (atOnce.get(now) ?? 0) + 1)
    }
    return { ping, flush() {} } as RawSession
  })
  return { sessions, pings, most: () => Math.max(...atOnce.values()) }
}

it('pings each of 10,000 sessions once in an interval, never many at a time', () => {
  const { sessions, pings, most } = countedSessions(10_000)
  const end = pingInTurns(sessions, 10_000)
  vi.advanceTimersByTime(30_000)
  end()
  expect(new Set(pings)).toEqual(new Set([3]))
  expect(most()).toBeLessThanOrEqual(11)
})

it('pings each session once after a pause of several intervals', () => {
  const { sessions, pings } = countedSessions(20)
  const end = pingInTurns(sessions, 1000)
  const now = performance.now()
  const stopped = vi.spyOn(performance, 'now').mockImplementation(() => now + 5000)
  vi.advanceTimersToNextTimer()
  stopped.mockRestore()
  end()
  expect(new Set(pings)).toEqual(new Set([1]))
})
