import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { LoadError } from './pump.ts'
import { pace } from './pace.ts'
import type { RawSession } from './raw-session.ts'

let aborted = new AbortController()

beforeEach(() => {
  aborted = new AbortController()
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
})
afterEach(() => {
  aborted.abort(new Error('called off'))
  vi.advanceTimersByTime(1)
  expect(vi.getTimerCount()).toBe(0)
  vi.useRealTimers()
})

/** Connections that pace themselves at 100 a second each, and when each of them sent what. */
function paced(count: number, depth = 8) {
  const sent: string[] = []
  const times: number[] = []
  const began = performance.now()
  const sessions = Array.from({ length: count }, () => ({ flush() {} }) as RawSession)
  let over = false
  const ends = sessions.map((session, at) =>
    pace(session, {
      depth,
      latency: { add: (time) => times.push(time) },
      what: 'a request',
      signal: aborted.signal,
      perSecond: 100,
      phase: at / count,
      send: (index) => !over && sent.push(`${at}.${index} at ${performance.now() - began}`) > 0,
    }),
  )
  for (const ended of ends) ended.catch(() => {})
  const end = (): void => void (over = true)
  return { sessions, sent, times, ends, end }
}

it('spreads the requests of connections over the interval', () => {
  const { sent } = paced(5)
  vi.advanceTimersByTime(20)
  expect(sent).toEqual([
    '0.0 at 1',
    '1.0 at 2',
    '2.0 at 4',
    '3.0 at 6',
    '4.0 at 8',
    '0.1 at 10',
    '1.1 at 12',
    '2.1 at 14',
    '3.1 at 16',
    '4.1 at 18',
    '0.2 at 20',
  ])
})

it('measures latency from when a request was due, however late it was sent', () => {
  const { sessions, sent, times } = paced(1, 1)
  vi.advanceTimersByTime(25)
  sessions[0]!.onReply(0)
  vi.advanceTimersByTime(1)
  expect(sent).toEqual(['0.0 at 1', '0.1 at 26'])
  sessions[0]!.onReply(0)
  expect(times).toEqual([25_000, 16_000])
})

it('ends when all requests are sent and answered, and clears its timer', async () => {
  const { sessions, ends, end } = paced(2)
  vi.advanceTimersByTime(8)
  end()
  for (const session of sessions) session.onReply(0)
  vi.advanceTimersByTime(10)
  await Promise.all(ends)
  expect(vi.getTimerCount()).toBe(0)
})

it('ends one connection when its request fails, and all on abort', async () => {
  const { sessions, sent, ends } = paced(2)
  vi.advanceTimersByTime(8)
  sessions[0]!.onReply(-101)
  await expect(ends[0]).rejects.toThrow(LoadError)
  vi.advanceTimersByTime(20)
  expect(sent.at(-1)).toBe('1.2 at 25')
  aborted.abort(new Error('called off'))
  vi.advanceTimersByTime(1)
  await expect(ends[1]).rejects.toThrow('called off')
})
