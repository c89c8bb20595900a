import { WatcherType } from '@zabra/protocol'
import { describe, expect, it, vi } from 'vitest'
import { WatchManager } from './index.ts'
import {
  WatchFixture,
  CHANGED,
  CHILDREN,
  CREATED,
  DELETED,
  RecordingWatcher,
} from './testing/recording-watcher.ts'

describe('one-shot watches', () => {
  it('on data fire once, on creation, change or deletion', () => {
    const [fixture, watcher] = [new WatchFixture(), new RecordingWatcher()]
    for (const [fire, event] of [
      [() => fixture.created('/a'), CREATED],
      [() => fixture.changed('/a'), CHANGED],
      [() => fixture.deleted('/a'), DELETED],
    ] as const) {
      fixture.watches.watchData(watcher, '/a')
      fire()
      fire()
      expect(watcher.takeEvents()).toEqual([`${event} /a`])
    }
    expect([fixture.watches.size, watcher.watchedPaths.size]).toEqual([0, 0])
  })

  it('on a missing node are counted apart until they fire or are removed', () => {
    const [fixture, watcher] = [new WatchFixture(), new RecordingWatcher()]
    const { watches } = fixture
    const counts = (): number[] => [watches.data.counts.oneShot, watches.data.counts.missing]
    for (const end of [
      () => fixture.created('/a'),
      () => watches.remove(watcher, '/a', WatcherType.Data),
      () => watches.remove(watcher, '/a', WatcherType.Any),
      () => watches.removeAll(watcher),
    ]) {
      watches.watchMissing(watcher, '/a')
      watches.watchMissing(watcher, '/a')
      expect(counts()).toEqual([1, 1])
      end()
      expect(counts()).toEqual([0, 0])
      expect([watches.size, watcher.watchedPaths.size]).toEqual([0, 0])
    }
  })

  it('on children fire once, on a created or deleted child or the deletion of the node', () => {
    const [fixture, watcher] = [new WatchFixture(), new RecordingWatcher()]
    fixture.watches.watchChildren(watcher, '/a')
    fixture.created('/a/x')
    fixture.created('/a/y')
    expect(watcher.takeEvents()).toEqual([`${CHILDREN} /a`])
    fixture.watches.watchChildren(watcher, '/a')
    fixture.changed('/a')
    expect(watcher.takeEvents()).toEqual([])
    fixture.deleted('/a')
    expect(watcher.takeEvents()).toEqual([`${DELETED} /a`])
  })

  it('on data and children of one node give one event when the node is deleted', () => {
    const [fixture, watcher] = [new WatchFixture(), new RecordingWatcher()]
    fixture.watches.watchData(watcher, '/a')
    fixture.watches.watchChildren(watcher, '/a')
    fixture.deleted('/a')
    expect(watcher.takeEvents()).toEqual([`${DELETED} /a`])
    expect(fixture.watches.size).toBe(0)
  })
})

describe('persistent watches', () => {
  it('fire on every change of a node and its list of children, and stay', () => {
    const [fixture, watcher] = [new WatchFixture(), new RecordingWatcher()]
    fixture.watches.watchPersistently(watcher, '/a')
    fixture.created('/a')
    fixture.created('/a/x')
    fixture.changed('/a/x')
    fixture.changed('/a')
    fixture.deleted('/a/x')
    fixture.deleted('/a')
    expect(watcher.takeEvents()).toEqual([
      `${CREATED} /a`,
      `${CHILDREN} /a`,
      `${CHANGED} /a`,
      `${CHILDREN} /a`,
      `${DELETED} /a`,
    ])
    expect(fixture.watches.size).toBe(2)
  })

  it('that are recursive fire once for each event of any descendant, and not for lists of children', () => {
    const [fixture, watcher] = [new WatchFixture(), new RecordingWatcher()]
    fixture.watches.watchRecursively(watcher, '/a')
    fixture.watches.watchRecursively(watcher, '/')
    fixture.created('/a/x')
    fixture.changed('/a/x')
    fixture.deleted('/a/x')
    fixture.created('/b')
    fixture.changed('/ab')
    expect(watcher.takeEvents()).toEqual([
      `${CREATED} /a/x`,
      `${CHANGED} /a/x`,
      `${DELETED} /a/x`,
      `${CREATED} /b`,
      `${CHANGED} /ab`,
    ])
  })

  it('coexist with one-shot watches on the same path', () => {
    const [fixture, watcher] = [new WatchFixture(), new RecordingWatcher()]
    fixture.watches.watchData(watcher, '/a')
    fixture.watches.watchPersistently(watcher, '/a')
    fixture.watches.watchRecursively(watcher, '/a')
    fixture.changed('/a')
    fixture.changed('/a')
    expect(watcher.takeEvents()).toEqual([`${CHANGED} /a`, `${CHANGED} /a`])
    expect(fixture.watches.has(watcher, '/a', WatcherType.Data)).toBe(false)
    expect(fixture.watches.has(watcher, '/a', WatcherType.Persistent)).toBe(true)
    expect(fixture.watches.has(watcher, '/a', WatcherType.PersistentRecursive)).toBe(true)
  })
})

describe('has and remove', () => {
  it('distinguish the types of watches', () => {
    const kinds = [
      WatcherType.Children,
      WatcherType.Data,
      WatcherType.Any,
      WatcherType.Persistent,
      WatcherType.PersistentRecursive,
    ]
    const held = (
      add: (watches: WatchManager<RecordingWatcher>, watcher: RecordingWatcher) => void,
    ): boolean[] => {
      const { watches } = new WatchFixture()
      const watcher = new RecordingWatcher()
      add(watches, watcher)
      const holds = kinds.map((kind) => watches.has(watcher, '/a', kind))
      expect(kinds.map((kind) => watches.has(watcher, '/a/x', kind))).toEqual(kinds.map(() => false))
      for (const [i, kind] of kinds.entries()) {
        const again = new WatchFixture().watches
        const other = new RecordingWatcher()
        add(again, other)
        expect(again.remove(other, '/a', kind)).toBe(holds[i])
        expect(again.remove(other, '/a', kind)).toBe(false)
        if (holds[i]) expect([again.size, other.watchedPaths.size]).toEqual([0, 0])
      }
      return holds
    }
    expect(held((watches, watcher) => watches.watchChildren(watcher, '/a'))).toEqual([
      true,
      false,
      true,
      false,
      false,
    ])
    expect(held((watches, watcher) => watches.watchData(watcher, '/a'))).toEqual([
      false,
      true,
      true,
      false,
      false,
    ])
    expect(held((watches, watcher) => watches.watchPersistently(watcher, '/a'))).toEqual([
      false,
      false,
      true,
      true,
      false,
    ])
    expect(held((watches, watcher) => watches.watchRecursively(watcher, '/a'))).toEqual([
      false,
      false,
      true,
      false,
      true,
    ])
  })
})

describe('with every type of watch on one path', () => {
  const everything = (): { fixture: WatchFixture; watcher: RecordingWatcher } => {
    const [fixture, watcher] = [new WatchFixture(), new RecordingWatcher()]
    fixture.watches.watchData(watcher, '/a')
    fixture.watches.watchChildren(watcher, '/a')
    fixture.watches.watchPersistently(watcher, '/a')
    fixture.watches.watchRecursively(watcher, '/a')
    return { fixture, watcher }
  }
  const held = ({ fixture, watcher }: ReturnType<typeof everything>): number[] =>
    [1, 2, 3, 4, 5].filter((kind) => fixture.watches.has(watcher, '/a', kind))

  it.each([
    ['Children', WatcherType.Children, [2, 3, 4, 5]],
    ['Data', WatcherType.Data, [1, 3, 4, 5]],
    ['Any', WatcherType.Any, []],
    ['Persistent', WatcherType.Persistent, [1, 2, 3, 5]],
    ['PersistentRecursive', WatcherType.PersistentRecursive, [1, 2, 3, 4]],
  ])('removing %s (%i) leaves %j, and a second time there is none', (_name, kind, left) => {
    const both = everything()
    expect(both.fixture.watches.remove(both.watcher, '/a', kind)).toBe(true)
    expect(held(both)).toEqual(left)
    expect(both.fixture.watches.remove(both.watcher, '/a', kind)).toBe(false)
    expect(held(both)).toEqual(left)
    expect(both.watcher.watchedPaths.has('/a')).toBe(left.length > 0)
  })

  it('a change, a deletion and a new child give one event each, and remove the one-shot watches', () => {
    const { fixture, watcher } = everything()
    fixture.created('/a/x')
    expect(watcher.takeEvents()).toEqual([`${CREATED} /a/x`, `${CHILDREN} /a`])
    expect(held({ fixture, watcher })).toEqual([2, 3, 4, 5])
    fixture.watches.watchChildren(watcher, '/a')
    fixture.deleted('/a')
    expect([watcher.takeEvents(), held({ fixture, watcher })]).toEqual([[`${DELETED} /a`], [3, 4, 5]])
    fixture.watches.remove(watcher, '/a', WatcherType.Persistent)
    fixture.deleted('/a')
    expect([watcher.takeEvents(), held({ fixture, watcher })]).toEqual([[`${DELETED} /a`], [3, 5]])
  })

  it.each([0, 6, -1])('an unknown type (%i) is neither held nor removed', (kind) => {
    const both = everything()
    expect(both.fixture.watches.has(both.watcher, '/a', kind)).toBe(false)
    expect(both.fixture.watches.remove(both.watcher, '/a', kind)).toBe(false)
    expect(held(both)).toEqual([1, 2, 3, 4, 5])
  })

  it('another connection has no watch, removes none and gets no event', () => {
    const { fixture, watcher } = everything()
    const other = new RecordingWatcher()
    for (const kind of [1, 2, 3, 4, 5]) {
      expect(fixture.watches.has(other, '/a', kind)).toBe(false)
      expect(fixture.watches.remove(other, '/a', kind)).toBe(false)
    }
    fixture.watches.removeAll(other)
    fixture.changed('/a')
    expect([other.takeEvents(), watcher.takeEvents()]).toEqual([[], [`${CHANGED} /a`]])
  })
})

describe('a recursive watch', () => {
  it('on an ancestor is not held on the path itself', () => {
    const [fixture, watcher] = [new WatchFixture(), new RecordingWatcher()]
    fixture.watches.watchRecursively(watcher, '/a')
    expect(fixture.watches.has(watcher, '/a/b', WatcherType.Any)).toBe(false)
    expect(fixture.watches.remove(watcher, '/a/b', WatcherType.PersistentRecursive)).toBe(false)
  })

  it('gives no second event when the same connection watches the path itself, and a child watch of the parent gives its own', () => {
    const [fixture, watcher] = [new WatchFixture(), new RecordingWatcher()]
    for (const path of ['/', '/a', '/a/b']) fixture.watches.watchRecursively(watcher, path)
    fixture.watches.watchData(watcher, '/a/b/c')
    fixture.watches.watchChildren(watcher, '/a/b')
    fixture.deleted('/a/b/c')
    expect(watcher.takeEvents()).toEqual([`${DELETED} /a/b/c`, `${CHILDREN} /a/b`])
  })

  it('on a path that only has the hash of an ancestor does not fire', () => {
    const notify = vi.fn()
    // With this key the hash of a path does not depend on the order of its letters.
    const watches = new WatchManager<RecordingWatcher>(1)
    watches.watchRecursively(new RecordingWatcher(), '/ab')
    watches.fireDataChanged('/ba/x', notify)
    expect([watches.ancestorsVisited, notify.mock.calls.length]).toEqual([1, 0])
    watches.fireDataChanged('/ab/x', notify)
    expect([watches.ancestorsVisited, notify.mock.calls.length]).toEqual([2, 1])
  })

  it('costs nothing after it is removed while another connection has a persistent watch on the path', () => {
    const [fixture, one, two] = [new WatchFixture(), new RecordingWatcher(), new RecordingWatcher()]
    fixture.watches.watchPersistently(two, '/a')
    fixture.watches.watchRecursively(one, '/a')
    fixture.watches.remove(one, '/a', WatcherType.Any)
    fixture.changed('/a/x')
    expect([fixture.notifier.ancestorsVisited, fixture.watches.size]).toEqual([0, 2])
  })

  it('fires while one of several is left, and not after the last is removed', () => {
    const [fixture, one, two] = [new WatchFixture(), new RecordingWatcher(), new RecordingWatcher()]
    for (const watcher of [one, two, one]) fixture.watches.watchRecursively(watcher, '/a')
    fixture.watches.remove(one, '/a', WatcherType.Any)
    fixture.changed('/a/x')
    expect([one.takeEvents(), two.takeEvents()]).toEqual([[], [`${CHANGED} /a/x`]])
    fixture.watches.removeAll(two)
    fixture.changed('/a/x')
    expect([two.takeEvents(), fixture.watches.size]).toEqual([[], 0])
    fixture.watches.watchRecursively(two, '/')
    fixture.changed('/a/x')
    expect(two.takeEvents()).toEqual([`${CHANGED} /a/x`])
  })
})

describe('a change 6,000 levels deep', () => {
  const deep = '/n'.repeat(6000)

  it('looks up no path but the changed one, and visits those ancestors alone that have recursive watches', () => {
    const [fixture, watcher] = [new WatchFixture(), new RecordingWatcher()]
    for (const path of ['/', '/n', '/n/m', '/n/n/n']) fixture.watches.watchRecursively(watcher, path)
    const lookup = vi.spyOn(fixture.watches.data, 'forEach')
    fixture.changed(deep)
    expect(watcher.takeEvents()).toEqual([`${CHANGED} ${deep}`])
    expect([lookup.mock.calls.map(([path]) => path), fixture.notifier.ancestorsVisited]).toEqual([[deep], 3])
  })
})

describe('many watches', () => {
  it('of a closed connection are all removed', () => {
    const fixture = new WatchFixture()
    const [watcher, other] = [new RecordingWatcher(), new RecordingWatcher()]
    for (const each of [watcher, other]) {
      fixture.watches.watchData(each, '/a')
      fixture.watches.watchChildren(each, '/b')
      fixture.watches.watchPersistently(each, '/c')
      fixture.watches.watchRecursively(each, '/d')
    }
    fixture.watches.removeAll(watcher)
    expect(fixture.watches.size).toBe(5)
    fixture.changed('/a')
    fixture.changed('/d/x')
    expect([watcher.takeEvents(), other.takeEvents()]).toEqual([[], [`${CHANGED} /a`, `${CHANGED} /d/x`]])
    fixture.watches.removeAll(other)
    expect(fixture.watches.size).toBe(0)
    expect([...fixture.watches.data.entries(), ...fixture.watches.child.entries()]).toEqual([])
  })

  it('fire correctly: 100,000 on 10,000 connections', () => {
    const fixture = new WatchFixture()
    const watchers = Array.from({ length: 10_000 }, () => new RecordingWatcher())
    for (const [i, watcher] of watchers.entries()) {
      for (let k = 0; k < 9; k++) fixture.watches.watchData(watcher, `/own/${i}/${k}`)
      fixture.watches.watchData(watcher, '/shared')
    }
    expect(fixture.watches.size).toBe(100_000)
    fixture.changed('/shared')
    expect(watchers.every((watcher) => watcher.takeEvents().length === 1)).toBe(true)
    expect(fixture.watches.size).toBe(90_000)
    for (const [i, watcher] of watchers.entries()) {
      for (let k = 0; k < 6; k++) fixture.changed(`/own/${i}/${k}`)
      expect(watcher.takeEvents().length).toBe(6)
    }
    expect([fixture.watches.size, fixture.notifier.stats.delivered]).toEqual([30_000, 70_000])
    for (const [i, watcher] of watchers.entries())
      expect(fixture.watches.remove(watcher, `/own/${i}/6`, WatcherType.Data)).toBe(true)
    expect(fixture.watches.size).toBe(20_000)
    for (const watcher of watchers) fixture.watches.removeAll(watcher)
    expect([fixture.watches.size, fixture.watches.data.pathCount]).toEqual([0, 0])
    expect(watchers.every(({ watchedPaths: watched }) => watched.size === 0)).toBe(true)
  })
})

describe('the watches of a closed connection', () => {
  it('are removed on so many paths at a time, until none is left', () => {
    const [fixture, watcher] = [new WatchFixture(), new RecordingWatcher()]
    for (const path of ['/a', '/b', '/c']) fixture.watches.watchRecursively(watcher, path)
    expect([fixture.watches.removeSome(watcher, 2), watcher.watchedPaths.size]).toEqual([false, 1])
    expect([fixture.watches.removeSome(watcher, 1), fixture.watches.size]).toEqual([true, 0])
    fixture.changed('/a/x')
    expect(watcher.takeEvents()).toEqual([])
  })

  it('are removed on fewer paths at a time the longer these are', () => {
    const [fixture, watcher] = [new WatchFixture(), new RecordingWatcher()]
    for (let i = 0; i < 40; i++) fixture.watches.watchData(watcher, `/${'x'.repeat(17_000)}${i}`)
    const counts: number[] = []
    do counts.push(watcher.watchedPaths.size)
    while (!fixture.watches.removeSome(watcher, 1000))
    const removed = counts.map((count, i) => count - (counts[i + 1] ?? 0))
    expect([Math.max(...removed), fixture.watches.size]).toEqual([15, 0])
  })

  it('leave a recursive watch of another connection on the same path', () => {
    const fixture = new WatchFixture()
    const [one, two] = [new RecordingWatcher(), new RecordingWatcher()]
    for (const watcher of [one, two]) fixture.watches.watchRecursively(watcher, '/a')
    fixture.watches.removeAll(one)
    fixture.changed('/a/x')
    expect([one.takeEvents(), two.takeEvents()]).toEqual([[], [`${CHANGED} /a/x`]])
  })
})
