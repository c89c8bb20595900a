import { OPEN_ACL_UNSAFE, OpCode } from '@zabra/protocol'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { randomRuns } from '../../testing/random-runs.ts'
import { createOf } from '../testing/create-of.ts'
import { runToEnd } from '../steps.ts'
import { applyInSteps, Tree } from '../tree/index.ts'
import type { Txn } from '../types.ts'
import { WatchManager } from './index.ts'
import { CROWD } from './watch-table.ts'
import { CHANGED, CHILDREN, DELETED, RecordingWatcher, WatchFixture } from './testing/recording-watcher.ts'

const PATHS = ['/', '/a', '/a/x', '/b']

describe('watchers that are notified in steps', () => {
  it('are those that are notified at once, and have the same watches afterwards', () => {
    const kind = fc.constantFrom('watchData', 'watchChildren', 'watchPersistently', 'watchRecursively')
    const watch = fc.record({ kind, path: fc.constantFrom(...PATHS), watcher: fc.nat(3) })
    const event = fc.constantFrom('fireCreated', 'fireDeleted', 'fireChildrenChanged')
    fc.assert(
      fc.property(fc.array(watch), event, fc.constantFrom(...PATHS), (all, fired, path) => {
        const runs = [false, true].map((inSteps) => {
          const watches = new WatchManager<RecordingWatcher>()
          const watchers = Array.from({ length: 4 }, () => new RecordingWatcher())
          for (const one of all) watches[one.kind](watchers[one.watcher]!, one.path)
          const notified: number[] = []
          const notify = (watcher: RecordingWatcher): void => void notified.push(watchers.indexOf(watcher))
          const tables = { data: fired !== 'fireChildrenChanged', child: fired !== 'fireCreated' }
          if (inSteps) runToEnd(watches.fireInSteps(path, tables, notify))
          else watches[fired](path, notify)
          const left = watchers.map((one) =>
            PATHS.map((at) => [1, 2, 3, 4, 5].map((type) => watches.has(one, at, type))),
          )
          return {
            notified: notified.toSorted((a, b) => a - b),
            left,
            paths: watchers.map((one) => [...one.watchedPaths].sort()),
          }
        })
        expect(runs[1]).toEqual(runs[0])
      }),
      { numRuns: randomRuns(1000) },
    )
  })

  /** A tree with `/a`, and as many watchers of it as are too many to be notified at once. */
  function given(watch: (fixture: WatchFixture, watcher: RecordingWatcher) => void) {
    const fixture = new WatchFixture()
    const tree = new Tree({ extendedTypes: true, digest: false })
    const apply = (txn: Txn): void => {
      const zxid = (fixture.notifier.zxid = tree.lastZxid + 1)
      tree.apply({ sessionId: 9n, cxid: 0, zxid, time: 1000 }, txn, fixture.notifier)
    }
    apply(createOf('/a', { acl: OPEN_ACL_UNSAFE, ephemeral: false }))
    const watchers = Array.from({ length: CROWD + 1 }, () => new RecordingWatcher())
    for (const watcher of watchers) watch(fixture, watcher)
    /** Runs the steps of the events that wait. Returns the events of each step. */
    const steps = (): number[] => {
      const counts: number[] = []
      const steps = fixture.notifier.notifyInSteps()
      for (let isDone = false; !isDone;) {
        const before = fixture.notifier.stats.delivered
        isDone = steps.next().done === true
        counts.push(fixture.notifier.stats.delivered - before)
      }
      return counts
    }
    const { notifier, watches } = fixture
    return { notifier, watches, tree, apply, watchers, steps }
  }

  const setData: Txn = { type: OpCode.setData, path: '/a', data: new Uint8Array(0), version: 1 }
  const remove: Txn = { type: OpCode.delete, path: '/a' }

  it.each([
    ['on its data', `${CHANGED} /a`, (f: WatchFixture, w: RecordingWatcher) => f.watches.watchData(w, '/a')],
    [
      'recursively',
      `${CHANGED} /a,${DELETED} /a`,
      (f: WatchFixture, w: RecordingWatcher) => f.watches.watchRecursively(w, '/'),
    ],
  ])(
    'of a node that very many watch %s get each event once, in their order, hundreds in a step',
    (_, expected, watch) => {
      const { apply, watchers, steps, notifier, watches } = given(watch)
      const other = new RecordingWatcher()
      watches.watchPersistently(other, '/a')
      watches.watchChildren(other, '/')
      apply(setData)
      apply(remove)
      expect([notifier.hasWaiting, watchers.some((one) => one.takeEvents().length > 0)]).toEqual([
        true,
        false,
      ])
      // A step may have the end of one event and the beginning of the next one.
      expect(Math.max(...steps())).toBeLessThanOrEqual(600)
      expect(notifier.hasWaiting).toBe(false)
      expect(other.takeEvents()).toEqual([`${CHANGED} /a`, `${DELETED} /a`, `${CHILDREN} /`])
      const events = new Set(watchers.map((one) => one.takeEvents().join()))
      expect([...events]).toEqual([expected])
    },
  )

  it('are notified at once when they have become few', () => {
    const { apply, watchers, notifier, watches } = given((f, w) => f.watches.watchRecursively(w, '/'))
    watches.removeAll(watchers[0]!)
    for (const watcher of watchers) watches.watchPersistently(watcher, '/a')
    watches.removeAll(watchers[1]!)
    apply(setData)
    expect([notifier.hasWaiting, watchers.at(-1)!.takeEvents()]).toEqual([false, [`${CHANGED} /a`]])
  })

  it('are notified before the end of a multi that changes the node in parts', () => {
    const { tree, watchers, notifier } = given((f, w) => f.watches.watchPersistently(w, '/a'))
    const zxid = (notifier.zxid = tree.lastZxid + 1)
    const multi: Txn = { type: OpCode.multi, txns: [setData, { ...setData, version: 2 }] }
    const steps = applyInSteps(tree, { sessionId: 9n, cxid: 0, zxid, time: 1000 }, multi, notifier)
    let count = 1
    for (; steps.next().done !== true; count++) expect(tree.isApplying).toBe(true)
    expect([count > 10, tree.isApplying, notifier.hasWaiting]).toEqual([true, false, false])
    expect(watchers.at(-1)!.takeEvents()).toEqual([`${CHANGED} /a`, `${CHANGED} /a`])
  })
})
