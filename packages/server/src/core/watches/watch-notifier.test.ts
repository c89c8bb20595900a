import { OPEN_ACL_UNSAFE, OpCode, Perms, type ACL } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import { createOf } from '../testing/create-of.ts'
import { Tree } from '../tree/index.ts'
import type { Txn } from '../types.ts'
import {
  WatchFixture,
  CHANGED,
  CHILDREN,
  CREATED,
  DELETED,
  RecordingWatcher,
} from './testing/recording-watcher.ts'

const BOB = { scheme: 'digest', id: 'bob:hash' }
const bobMay = (perms: number): readonly ACL[] => [{ perms, id: BOB }]
const SECRET = bobMay(Perms.READ)

/** A tree whose changes fire watches. */
class TreeWatchFixture extends WatchFixture {
  readonly tree = new Tree({ extendedTypes: true, digest: false })

  apply(txn: Txn, zxid = this.tree.lastZxid + 1): void {
    this.notifier.zxid = zxid
    this.tree.apply({ sessionId: 9n, cxid: 0, zxid, time: 1000 }, txn, this.notifier)
  }

  create(path: string, { ephemeral = false, acl = OPEN_ACL_UNSAFE } = {}): void {
    this.apply(createOf(path, { acl, ephemeral }))
  }
  set(path: string): void {
    this.apply({ type: OpCode.setData, path, data: null, version: 1 })
  }
  remove(path: string): void {
    this.apply({ type: OpCode.delete, path })
  }
}

describe('a notification', () => {
  it('has the bytes of a ZooKeeper 3.9 server for the events of a multi', () => {
    const fixture = new TreeWatchFixture()
    const watcher = new RecordingWatcher()
    fixture.create('/fx')
    fixture.watches.watchRecursively(watcher, '/fx')
    fixture.watches.watchChildren(watcher, '/fx')
    const path = '/fx/m'
    const txns = [
      { type: OpCode.check, path: '/fx', version: 1 },
      createOf(path),
      { type: OpCode.setData, path, data: null, version: 1 },
      { type: OpCode.delete, path },
    ] as const
    fixture.apply({ type: OpCode.multi, txns }, 9)
    expect(watcher.takeFrames()).toEqual([
      '00000021ffffffff000000000000000900000000' + '0000000100000003000000052f66782f6d',
      '0000001fffffffff000000000000000900000000' + '0000000400000003000000032f6678',
      '00000021ffffffff000000000000000900000000' + '0000000300000003000000052f66782f6d',
      '00000021ffffffff000000000000000900000000' + '0000000200000003000000052f66782f6d',
    ])
  })

  it('has zxid -1 for a missed event, and the next one has the zxid of its transaction', () => {
    const [bench, watcher] = [new WatchFixture(), new RecordingWatcher()]
    bench.notifier.zxid = 0x7_0000_0001
    bench.notifier.notify(watcher, CHANGED, '/wx')
    expect(watcher.takeFrames()).toEqual([
      '0000001fffffffffffffffffffffffff00000000' + '0000000300000003000000032f7778',
    ])
    bench.watches.watchData(watcher, '/wx')
    bench.changed('/wx')
    expect(watcher.takeFrames()).toEqual([
      '0000001fffffffff000000070000000100000000' + '0000000300000003000000032f7778',
    ])
  })

  it('carries paths of any length and script, those beyond the basic plane as two surrogates', () => {
    const [bench, watcher] = [new WatchFixture(), new RecordingWatcher()]
    for (const path of ['/ü', '/雪', `/${'long'.repeat(20_000)}`]) {
      bench.watches.watchData(watcher, path)
      bench.changed(path)
      expect(watcher.takeEvents()).toEqual([`${CHANGED} ${path}`])
    }
    watcher.takeFrames()
    bench.watches.watchData(watcher, '/😀')
    bench.changed('/😀')
    expect(watcher.takeFrames()[0]).toMatch(/000000072feda0bdedb880$/)
  })

  it('is encoded once per event, and counted for each watcher', () => {
    const bench = new WatchFixture()
    const watchers = [new RecordingWatcher(), new RecordingWatcher(), new RecordingWatcher()]
    for (const watcher of watchers) bench.watches.watchData(watcher, '/a')
    bench.watches.watchChildren(watchers[0]!, '/')
    bench.deleted('/a')
    expect(new Set(watchers.map(({ views }) => views[0])).size).toBe(1)
    const { delivered, bytes, created, deleted, changed, children } = bench.notifier.stats
    expect([delivered, bytes]).toEqual([4, 3 * 34 + 33])
    expect(deleted.max).toBe(3)
    expect(children.max).toBe(1)
    expect(created.count).toBe(0)
    expect(changed.count).toBe(0)
  })
})

describe('a watcher that may not read the node', () => {
  const events = [
    ['of a creation by the new node', (bench: WatchFixture) => bench.created('/a', SECRET), CREATED],
    ['of a change by the node', (bench: WatchFixture) => bench.changed('/a', SECRET), CHANGED],
    [
      'of a deletion by the last list of the node',
      (bench: WatchFixture) => bench.deleted('/a', SECRET),
      DELETED,
    ],
  ] as const

  it.each(events)('gets no event, checked %s, and loses its one-shot watch', (_what, fire, event) => {
    const bench = new WatchFixture()
    const [stranger, bob] = [new RecordingWatcher(), new RecordingWatcher([BOB])]
    for (const watcher of [stranger, bob]) bench.watches.watchData(watcher, '/a')
    fire(bench)
    expect([stranger.takeEvents(), bob.takeEvents(), bench.watches.size]).toEqual([[], [`${event} /a`], 0])
  })

  it('gets no child event, checked against the ACL of the parent alone', () => {
    const bench = new WatchFixture()
    const [stranger, bob] = [new RecordingWatcher(), new RecordingWatcher([BOB])]
    for (const fire of ['created', 'deleted'] as const) {
      for (const watcher of [stranger, bob]) bench.watches.watchChildren(watcher, '/p')
      bench[fire]('/p/x', OPEN_ACL_UNSAFE, SECRET)
      expect(stranger.takeEvents()).toEqual([])
      expect(bob.takeEvents()).toEqual([`${CHILDREN} /p`])
      expect(bench.watches.size).toBe(0)
      bench.watches.watchChildren(stranger, '/p')
      bench[fire]('/p/x', SECRET, OPEN_ACL_UNSAFE)
      expect([stranger.takeEvents(), bench.watches.size]).toEqual([[`${CHILDREN} /p`], 0])
    }
  })

  it('gets no deletion through its child watch either', () => {
    const [bench, stranger] = [new WatchFixture(), new RecordingWatcher()]
    bench.watches.watchData(stranger, '/a')
    bench.watches.watchChildren(stranger, '/a')
    bench.deleted('/a', SECRET)
    expect([stranger.takeEvents(), bench.watches.size]).toEqual([[], 0])
  })

  it('keeps a persistent watch, and gets events once its identities may read the node', () => {
    const [bench, watcher] = [new WatchFixture(), new RecordingWatcher()]
    bench.watches.watchPersistently(watcher, '/a')
    bench.watches.watchRecursively(watcher, '/a')
    bench.changed('/a', SECRET)
    expect(watcher.takeEvents()).toEqual([])
    watcher.identities = [BOB]
    bench.changed('/a', SECRET)
    expect(watcher.takeEvents()).toEqual([`${CHANGED} /a`])
  })

  it('gets events with READ alone', () => {
    const [bench, bob] = [new WatchFixture(), new RecordingWatcher([BOB])]
    bench.watches.watchPersistently(bob, '/a')
    bench.changed('/a', bobMay(Perms.ALL & ~Perms.READ))
    expect(bob.takeEvents()).toEqual([])
    bench.changed('/a', bobMay(Perms.ALL))
    expect(bob.takeEvents()).toEqual([`${CHANGED} /a`])
  })

  it('gets every event as the super user, with skipACL, and when it missed the event', () => {
    const root = new RecordingWatcher([{ scheme: 'super', id: '' }])
    const lax = new WatchFixture({ skipACL: true })
    const [strict, stranger] = [new WatchFixture(), new RecordingWatcher()]
    strict.watches.watchData(root, '/a')
    strict.changed('/a', SECRET)
    lax.watches.watchData(stranger, '/a')
    lax.changed('/a', SECRET)
    strict.notifier.notify(stranger, DELETED, '/a')
    expect(root.takeEvents()).toEqual([`${CHANGED} /a`])
    expect(stranger.takeEvents()).toEqual([`${CHANGED} /a`, `${DELETED} /a`])
  })
})

describe('the events of each type of watch on /x', () => {
  type Add = (fixture: TreeWatchFixture, watcher: RecordingWatcher) => void
  const data: Add = ({ watches }, watcher) => watches.watchData(watcher, '/x')
  const child: Add = ({ watches }, watcher) => watches.watchChildren(watcher, '/x')
  const persistent: Add = ({ watches }, watcher) => watches.watchPersistently(watcher, '/x')
  const recursive: Add = ({ watches }, watcher) => watches.watchRecursively(watcher, '/x')
  const x = (event: number): string => `${event} /x`
  const k = (event: number): string => `${event} /x/k`
  const d = (event: number): string => `${event} /x/k/d`
  type Row = readonly [
    change: string,
    data: string[],
    child: string[],
    persistent: string[],
    recursive: string[],
  ]
  const rows: Row[] = [
    ['create /x', [x(CREATED)], [], [x(CREATED)], [x(CREATED)]],
    ['set /x', [x(CHANGED)], [], [x(CHANGED)], [x(CHANGED)]],
    ['remove /x', [x(DELETED)], [x(DELETED)], [x(DELETED)], [x(DELETED)]],
    ['create /x/k', [], [x(CHILDREN)], [x(CHILDREN)], [k(CREATED)]],
    ['set /x/k', [], [], [], [k(CHANGED)]],
    ['remove /x/k', [], [x(CHILDREN)], [x(CHILDREN)], [k(DELETED)]],
    ['create /x/k/d', [], [], [], [d(CREATED)]],
    ['set /x/k/d', [], [], [], [d(CHANGED)]],
    ['remove /x/k/d', [], [], [], [d(DELETED)]],
    ['create /xx', [], [], [], []],
  ]

  it.each(rows)('%s', (change, ...expected) => {
    const [verb, path] = change.split(' ') as ['create' | 'set' | 'remove', string]
    const heard = [data, child, persistent, recursive].map((add) => {
      const [fixture, watcher] = [new TreeWatchFixture(), new RecordingWatcher()]
      const needed = ['/x', '/x/k', '/x/k/d'].filter((one) => (verb === 'create' ? one < path : one <= path))
      for (const one of needed) fixture.create(one)
      add(fixture, watcher)
      const before = fixture.watches.size
      fixture[verb](path)
      const events = watcher.takeEvents()
      const oneShot = add === data || add === child
      expect(fixture.watches.size).toBe(oneShot && events.length > 0 ? 0 : before)
      return events
    })
    expect(heard).toEqual(expected)
  })

  it('closing a session deletes each of its nodes and changes the children of their parents', () => {
    const [fixture, watcher] = [new TreeWatchFixture(), new RecordingWatcher()]
    fixture.create('/x')
    for (const path of ['/x/a', '/x/b', '/e']) fixture.create(path, { ephemeral: true })
    for (const add of [persistent, recursive]) add(fixture, watcher)
    fixture.watches.watchChildren(watcher, '/')
    fixture.apply({ type: OpCode.closeSession, paths2Delete: ['/x/a', '/x/b', '/e'] }, 77)
    expect(watcher.takeEvents().sort()).toEqual(
      [`${DELETED} /x/a`, x(CHILDREN), `${DELETED} /x/b`, x(CHILDREN), `${CHILDREN} /`].sort(),
    )
    expect(new Set(watcher.zxids)).toEqual(new Set([77]))
  })

  it('a setACL, a check and a failed multi give no event', () => {
    const [fixture, watcher] = [new TreeWatchFixture(), new RecordingWatcher()]
    fixture.create('/x')
    for (const add of [data, child, persistent, recursive]) add(fixture, watcher)
    fixture.apply({ type: OpCode.setACL, path: '/x', acl: SECRET, version: 1 })
    fixture.apply({ type: OpCode.multi, txns: [{ type: OpCode.check, path: '/x', version: 0 }] })
    const failed = [{ type: OpCode.error, err: 0 } as const, { type: OpCode.error, err: -101 } as const]
    fixture.apply({ type: OpCode.multi, txns: failed })
    fixture.apply({ type: OpCode.error, err: -101 })
    expect(watcher.takeEvents()).toEqual([])
    expect(fixture.watches.has(watcher, '/x', 2)).toBe(true)
  })

  it('a change is checked against the current ACL, a deletion against the last one', () => {
    const [fixture, watcher] = [new TreeWatchFixture(), new RecordingWatcher()]
    fixture.create('/x')
    persistent(fixture, watcher)
    fixture.apply({ type: OpCode.setACL, path: '/x', acl: SECRET, version: 1 })
    fixture.set('/x')
    fixture.create('/x/k')
    fixture.remove('/x/k')
    fixture.remove('/x')
    expect(watcher.takeEvents()).toEqual([])
    fixture.create('/x')
    expect(watcher.takeEvents()).toEqual([x(CREATED)])
  })
})

it('the statistics count recipients of each event that has any, and the bytes, until they are reset', () => {
  const fixture = new WatchFixture()
  const [one, two] = [new RecordingWatcher(), new RecordingWatcher()]
  for (const watcher of [one, two]) fixture.watches.watchPersistently(watcher, '/a')
  fixture.created('/a')
  fixture.created('/a/x')
  fixture.changed('/a')
  fixture.changed('/b')
  fixture.deleted('/a')
  const { stats } = fixture.notifier
  const counts = (): number[][] =>
    [stats.created, stats.children, stats.changed, stats.deleted].map(({ count, sum }) => [count, sum])
  expect([counts(), stats.delivered]).toEqual([
    [
      [1, 2],
      [1, 2],
      [1, 2],
      [1, 2],
    ],
    8,
  ])
  const bytes = [...one.views, ...two.views].reduce((sum, { length }) => sum + length, 0)
  expect(stats.bytes).toBe(bytes)
  stats.reset()
  expect([stats.bytes, stats.total('bytes'), counts().flat()]).toEqual([0, bytes, [0, 0, 0, 0, 0, 0, 0, 0]])
})
