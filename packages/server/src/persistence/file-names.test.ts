import { expect, it } from 'vitest'
import { logName, logsIn, snapshotKind, snapshotName, snapshotsIn } from './file-names.ts'

const ZXIDS = [0, 0xb, 0x1f, 0x1_0000_0000, 0x1f_ffff_ffff_ffff]

it('logs and snapshots are found by the names that they were given, oldest first', () => {
  const newestFirst = ZXIDS.toReversed()
  expect(logsIn(newestFirst.map(logName))).toEqual(ZXIDS.map((zxid) => ({ name: logName(zxid), zxid })))
  for (const kind of ['none', 'gz', 'snappy'] as const) {
    const names = ZXIDS.map((zxid) => snapshotName(zxid, kind))
    expect(snapshotsIn(names.toReversed())).toEqual(ZXIDS.map((zxid, at) => ({ name: names[at], zxid })))
    expect(names.map(snapshotKind)).toEqual(ZXIDS.map(() => kind))
  }
  expect([logName(0x1_0000_000b), snapshotName(0xb, 'none'), snapshotName(0xb, 'gz')]).toEqual([
    'log.10000000b',
    'snapshot.b',
    'snapshot.b.gz',
  ])
})

it('other names are those of no log and no snapshot', () => {
  const others = ['', '.', '.1.tmp', '.gz', '.1.gz.tmp', '.x1', '.1x', '.-1', '.11112222333344445', '.1.zip']
  const names = ['log', 'snapshot'].flatMap((kind) =>
    others.flatMap((other) => [`${kind}${other}`, `x${kind}.1`, `${kind}_1`]),
  )
  expect([logsIn(names), snapshotsIn(names)]).toEqual([[], []])
  expect(logsIn(['snapshot.1', 'log.1.gz', 'log.1.snappy', 'LOG.A'])).toEqual([{ name: 'LOG.A', zxid: 10 }])
  expect(snapshotsIn(['log.1', 'snapshot.1.gz.snappy', 'snapshot.0011222233334444'])).toEqual([
    { name: 'snapshot.0011222233334444', zxid: 0x11_2222_3333_4444 },
  ])
})
