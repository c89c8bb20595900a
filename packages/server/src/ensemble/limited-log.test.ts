import { ManualClock, silentLogger } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { LimitedLog } from './limited-log.ts'

it('a line about one thing is logged once in 10 s, with the number of others, and other things at any time', () => {
  const clock = new ManualClock()
  const lines: object[] = []
  const log = new LimitedLog(clock, {
    ...silentLogger,
    warn: (facts, message) => lines.push({ ...facts, message }),
  })
  for (let i = 0; i < 4; i++) log.log('warn', 'a', { i }, 'refused')
  log.log('warn', 'b', {}, 'lost')
  clock.advance(10_000)
  log.log('warn', 'a', { i: 9 }, 'refused')
  clock.advance(10_000)
  log.log('warn', 'a', { i: 10 }, 'refused')
  expect(lines).toEqual([
    { i: 0, message: 'refused' },
    { message: 'lost' },
    { i: 9, others: 3, message: 'refused' },
    { i: 10, message: 'refused' },
  ])
})

it('the memory of past lines is bounded', () => {
  const clock = new ManualClock()
  let count = 0
  const log = new LimitedLog(clock, { ...silentLogger, warn: () => count++ })
  for (let i = 0; i < 300; i++) log.log('warn', String(i), {}, 'refused')
  log.log('warn', '299', {}, 'refused')
  expect(count).toBe(300)
  log.log('warn', '0', {}, 'refused')
  expect(count).toBe(301)
})
