import { expect, it } from 'vitest'
import { apacheLine } from './apache-format.ts'

const time = Date.UTC(2026, 10, 23, 1, 12, 51, 123)
const line = (fields: object): string =>
  apacheLine(JSON.stringify({ level: 40, time, msg: 'Lost', ...fields }))

it('has the layout of Apache ZooKeeper, and the fields behind the message', () => {
  expect(line({ id: 'quorum.learner-lost', part: 'quorum', member: 1, epoch: 3, peer: 2 })).toBe(
    '2026-11-23 01:12:51,123 [myid:1] - WARN  [main:Quorum] - Lost id=quorum.learner-lost epoch=3 peer=2\n',
  )
  expect(line({ level: 50 })).toBe('2026-11-23 01:12:51,123 [myid:] - ERROR [main:Server] - Lost\n')
})

it('quotes values with blanks, and writes others as JSON', () => {
  expect(line({ reason: 'no "space"', bare: '0x1f', empty: '', list: [1, 'a b'] })).toMatch(
    / - Lost reason="no \\"space\\"" bare=0x1f empty="" list=\[1,"a b"\]\n$/,
  )
})

it('escapes what could forge a line', () => {
  const forged = 'x\n2026-11-23 01:12:51,123 [myid:1] - INFO  [main:Admin] - All is well\u2028\u001b[2J\u0085'
  const written = line({ msg: forged, reason: forged, [forged]: 1, part: forged, member: forged })
  const ends = ['\n', '\u0085', '\u2028', '\u001b'].map((end) => written.indexOf(end))
  expect(ends).toEqual([written.length - 1, -1, -1, -1])
  expect(written).toContain(String.raw`x\n2026-11-23`)
})
