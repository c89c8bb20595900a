import { ManualClock, silentLogger } from '@zabra/runtime'
import type { MemberConfiguration } from '../core/quorum/index.ts'
import { expect, it } from 'vitest'
import { keyOfPeer, LimitedLog } from './limited-log.ts'

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

it('with a burst, so many lines about one thing are logged in 10 s', () => {
  const clock = new ManualClock()
  const lines: object[] = []
  const log = new LimitedLog(clock, { ...silentLogger, info: (facts) => lines.push(facts) }, 2)
  for (let i = 0; i < 5; i++) log.log('info', 'a', { i }, 'lost')
  clock.advance(10_000)
  for (let i = 5; i < 7; i++) log.log('info', 'a', { i }, 'lost')
  expect(lines).toEqual([{ i: 0 }, { i: 1 }, { i: 5, others: 3 }, { i: 6 }])
})

it('lines about more than 256 things share one line in 10 s, until lines about the others are due again', () => {
  const clock = new ManualClock()
  const lines: object[] = []
  const log = new LimitedLog(clock, { ...silentLogger, warn: (facts) => lines.push(facts) })
  for (let i = 0; i < 300; i++) log.log('warn', String(i), { i }, 'refused')
  expect(lines).toEqual(Array.from({ length: 257 }, (_, i) => ({ i })))
  clock.advance(10_000)
  log.log('warn', '300', { i: 300 }, 'refused')
  log.log('warn', '1', { i: 1 }, 'refused')
  expect(lines.slice(257)).toEqual([{ i: 300 }, { i: 1 }])
})

it.each([
  ['the id of a server that a configuration names', 1, 'lost 1'],
  ['the network of one that none names', 2, 'lost 2001:db8:0:0::/64'],
])('the key of log lines contains %s', (_, serverId, key) => {
  const membership = { member: (id: number) => (id === 1 ? ({} as MemberConfiguration) : undefined) }
  const accepted = { remote: { host: '2001:db8::7', port: 1 } }
  expect(keyOfPeer('lost', { membership }, { serverId, accepted })).toBe(key)
})
