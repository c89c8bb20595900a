import { expect, it } from 'vitest'
import { LogMonitor } from './log-monitor.ts'

function violationsOf(count: number, intervalMs: number, sentenceOf: (index: number) => string): string[] {
  const violations: string[] = []
  const monitor = new LogMonitor((what) => violations.push(what))
  for (let index = 0; index < count; index++)
    monitor.record({
      at: index * intervalMs,
      host: 's1',
      level: 'info',
      facts: {},
      sentence: sentenceOf(index),
    })
  return violations
}

it('a server that repeats a sentence without end is a violation', () => {
  const found = violationsOf(101, 10, () => 'Looking for a leader')
  expect(found).toEqual(['s1: Looking for a leader: 101 lines in 10 s, expected at most 100'])
})

it('lines about many members, over a long time, or of clients are none', () => {
  expect(violationsOf(1000, 10, (index) => `Server ${index % 20} is elected`)).toEqual([])
  expect(violationsOf(1000, 10, () => 'A session is connected')).toEqual([])
  expect(violationsOf(1000, 101, () => 'Looking for a leader')).toEqual([])
})
