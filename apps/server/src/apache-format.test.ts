import { expect, it } from 'vitest'
import { apacheLine } from './apache-format.ts'
import { WORDED_EVENTS } from './apache-words.ts'

const time = Date.UTC(2026, 10, 23, 1, 12, 51, 123)
const line = (fields: object): string =>
  apacheLine(JSON.stringify({ level: 40, time, msg: 'Lost', ...fields }))

it('has the layout of Apache ZooKeeper, and the fields behind the message', () => {
  expect(line({ id: 'quorum.observer-lost', part: 'quorum', member: 1, epoch: 3, peer: 2 })).toBe(
    '2026-11-23 01:12:51,123 [myid:1] - WARN  [main:Quorum] - Lost id=quorum.observer-lost epoch=3 peer=2\n',
  )
  expect(line({ level: 50 })).toBe('2026-11-23 01:12:51,123 [myid:] - ERROR [main:Server] - Lost\n')
})

it('has the words of Apache ZooKeeper before the message, where it has some for the event', () => {
  expect(line({ id: 'log.slow-sync', part: 'log', member: 2, ms: 101, bytes: 5, entries: 1 })).toBe(
    '2026-11-23 01:12:51,123 [myid:2] - WARN  [main:Log] - fsync-ing the write ahead log in SyncThread:2 took 101ms which will adversely effect operation latency. Lost id=log.slow-sync ms=101 bytes=5 entries=1\n',
  )
  const worded = (fields: object): string => line(fields).replace(/^.*?\[main:\w+\] - (.*) id=.*\n$/, '$1')
  expect(worded({ id: 'election.decided', member: 1, role: 'following', ms: 657 })).toBe(
    'FOLLOWING - LEADER ELECTION TOOK - 657 MS. Lost',
  )
  expect(worded({ id: 'server.role', role: 'observing' })).toBe(
    'Peer state changed: observing - broadcast. Lost',
  )
  expect(worded({ id: 'data.digest-differs' })).toBe('Digests are not matching. Value is Zxid. Lost')
  const breach = { id: 'quota.exceeded', path: '/q', what: 'bytes', isHard: true, use: 7, limit: 5 }
  expect(worded(breach)).toBe('Quota exceeded: /q [current bytes=7, hardByteLimit=5]. Lost')
  // Apache ZooKeeper says nothing of the kind for an observer.
  expect(worded({ id: 'election.decided', role: 'observing', ms: 7 })).toBe('Lost')
  expect(worded({ id: 'quorum.learner-lost', peer: 3 })).toBe('******* GOODBYE [sid:3] ********. Lost')
  for (const id of ['quorum.learner-lost', 'client.refused', 'toString', 'server.role'])
    expect(worded({ id })).toBe('Lost')
})

it('quotes values with blanks, and writes others as JSON', () => {
  expect(line({ reason: 'no "space"', bare: '0x1f', empty: '', list: [1, 'a b'] })).toMatch(
    / - Lost reason="no \\"space\\"" bare=0x1f empty="" list=\[1,"a b"\]\n$/,
  )
})

it('escapes what could forge a line', () => {
  const forged = 'x\n2026-11-23 01:12:51,123 [myid:1] - INFO  [main:Admin] - All is well\u2028\u001b[2J\u0085'
  const fields = { msg: forged, reason: forged, [forged]: 1, part: forged, member: forged }
  for (const id of [undefined, ...WORDED_EVENTS]) {
    const written = line({ ...fields, id, path: forged, client: forged, session: forged, peer: forged })
    const ends = ['\n', '\u0085', '\u2028', '\u001b'].map((end) => written.indexOf(end))
    expect(ends).toEqual([written.length - 1, -1, -1, -1])
  }
  const written = line(fields)
  expect(written).toContain(String.raw`x\n2026-11-23`)
})
