import { WatcherType } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import type { WatchManager } from './index.ts'
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
    const bench = new WatchFixture()
    const ear = new RecordingWatcher()
    for (const [fire, event] of [
      [() => bench.created('/a'), CREATED],
      [() => bench.changed('/a'), CHANGED],
      [() => bench.deleted('/a'), DELETED],
    ] as const) {
      bench.watches.watchData(ear, '/a')
      fire()
      fire()
      expect(ear.takeEvents()).toEqual([`${event} /a`])
    }
    expect([bench.watches.size, ear.watchedPaths.size]).toEqual([0, 0])
  })

  it('on children fire once, on a created or deleted child or the deletion of the node', () => {
    const bench = new WatchFixture()
    const ear = new RecordingWatcher()
    bench.watches.watchChildren(ear, '/a')
    bench.created('/a/x')
    bench.created('/a/y')
    expect(ear.takeEvents()).toEqual([`${CHILDREN} /a`])
    bench.watches.watchChildren(ear, '/a')
    bench.changed('/a')
    expect(ear.takeEvents()).toEqual([])
    bench.deleted('/a')
    expect(ear.takeEvents()).toEqual([`${DELETED} /a`])
  })

  it('on data and children of one node give one event when the node is deleted', () => {
    const bench = new WatchFixture()
    const ear = new RecordingWatcher()
    bench.watches.watchData(ear, '/a')
    bench.watches.watchChildren(ear, '/a')
    bench.deleted('/a')
    expect(ear.takeEvents()).toEqual([`${DELETED} /a`])
    expect(bench.watches.size).toBe(0)
  })
})

describe('persistent watches', () => {
  it('fire on every change of a node and its list of children, and stay', () => {
    const bench = new WatchFixture()
    const ear = new RecordingWatcher()
    bench.watches.watchPersistently(ear, '/a')
    bench.created('/a')
    bench.created('/a/x')
    bench.changed('/a/x')
    bench.changed('/a')
    bench.deleted('/a/x')
    bench.deleted('/a')
    expect(ear.takeEvents()).toEqual([
      `${CREATED} /a`,
      `${CHILDREN} /a`,
      `${CHANGED} /a`,
      `${CHILDREN} /a`,
      `${DELETED} /a`,
    ])
    expect(bench.watches.size).toBe(2)
  })

  it('that are recursive fire once for each event of any descendant, and not for lists of children', () => {
    const bench = new WatchFixture()
    const ear = new RecordingWatcher()
    bench.watches.watchRecursively(ear, '/a')
    bench.watches.watchRecursively(ear, '/')
    bench.created('/a/x')
    bench.changed('/a/x')
    bench.deleted('/a/x')
    bench.created('/b')
    bench.changed('/ab')
    expect(ear.takeEvents()).toEqual([
      `${CREATED} /a/x`,
      `${CHANGED} /a/x`,
      `${DELETED} /a/x`,
      `${CREATED} /b`,
      `${CHANGED} /ab`,
    ])
  })

  it('coexist with one-shot watches on the same path', () => {
    const bench = new WatchFixture()
    const ear = new RecordingWatcher()
    bench.watches.watchData(ear, '/a')
    bench.watches.watchPersistently(ear, '/a')
    bench.watches.watchRecursively(ear, '/a')
    bench.changed('/a')
    bench.changed('/a')
    expect(ear.takeEvents()).toEqual([`${CHANGED} /a`, `${CHANGED} /a`])
    expect(bench.watches.has(ear, '/a', WatcherType.Data)).toBe(false)
    expect(bench.watches.has(ear, '/a', WatcherType.Persistent)).toBe(true)
    expect(bench.watches.has(ear, '/a', WatcherType.PersistentRecursive)).toBe(true)
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
      add: (watches: WatchManager<RecordingWatcher>, ear: RecordingWatcher) => void,
    ): boolean[] => {
      const { watches } = new WatchFixture()
      const ear = new RecordingWatcher()
      add(watches, ear)
      const holds = kinds.map((kind) => watches.has(ear, '/a', kind))
      expect(kinds.map((kind) => watches.has(ear, '/a/x', kind))).toEqual(kinds.map(() => false))
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
    expect(held((watches, ear) => watches.watchChildren(ear, '/a'))).toEqual([
      true,
      false,
      true,
      false,
      false,
    ])
    expect(held((watches, ear) => watches.watchData(ear, '/a'))).toEqual([false, true, true, false, false])
    expect(held((watches, ear) => watches.watchPersistently(ear, '/a'))).toEqual([
      false,
      false,
      true,
      true,
      false,
    ])
    expect(held((watches, ear) => watches.watchRecursively(ear, '/a'))).toEqual([
      false,
      false,
      true,
      false,
      true,
    ])
  })
})

describe('with every type of watch on one path', () => {
  const everything = (): { bench: WatchFixture; ear: RecordingWatcher } => {
    const [bench, ear] = [new WatchFixture(), new RecordingWatcher()]
    bench.watches.watchData(ear, '/a')
    bench.watches.watchChildren(ear, '/a')
    bench.watches.watchPersistently(ear, '/a')
    bench.watches.watchRecursively(ear, '/a')
    return { bench, ear }
  }
  const held = ({ bench, ear }: ReturnType<typeof everything>): number[] =>
    [1, 2, 3, 4, 5].filter((kind) => bench.watches.has(ear, '/a', kind))

  it.each([
    ['Children', WatcherType.Children, [2, 3, 4, 5]],
    ['Data', WatcherType.Data, [1, 3, 4, 5]],
    ['Any', WatcherType.Any, []],
    ['Persistent', WatcherType.Persistent, [1, 2, 3, 5]],
    ['PersistentRecursive', WatcherType.PersistentRecursive, [1, 2, 3, 4]],
  ])('removing %s (%i) leaves %j, and a second time there is none', (_name, kind, left) => {
    const both = everything()
    expect(both.bench.watches.remove(both.ear, '/a', kind)).toBe(true)
    expect(held(both)).toEqual(left)
    expect(both.bench.watches.remove(both.ear, '/a', kind)).toBe(false)
    expect(held(both)).toEqual(left)
    expect(both.ear.watchedPaths.has('/a')).toBe(left.length > 0)
  })

  it('a change, a deletion and a new child give one event each, and remove the one-shot watches', () => {
    const { bench, ear } = everything()
    bench.created('/a/x')
    expect([ear.takeEvents(), held({ bench, ear })]).toEqual([
      [`${CREATED} /a/x`, `${CHILDREN} /a`],
      [2, 3, 4, 5],
    ])
    bench.watches.watchChildren(ear, '/a')
    bench.deleted('/a')
    expect([ear.takeEvents(), held({ bench, ear })]).toEqual([[`${DELETED} /a`], [3, 4, 5]])
    bench.watches.remove(ear, '/a', WatcherType.Persistent)
    bench.deleted('/a')
    expect([ear.takeEvents(), held({ bench, ear })]).toEqual([[`${DELETED} /a`], [3, 5]])
  })

  it.each([0, 6, -1])('an unknown type (%i) is neither held nor removed', (kind) => {
    const both = everything()
    expect(both.bench.watches.has(both.ear, '/a', kind)).toBe(false)
    expect(both.bench.watches.remove(both.ear, '/a', kind)).toBe(false)
    expect(held(both)).toEqual([1, 2, 3, 4, 5])
  })

  it('another connection has no watch, removes none and gets no event', () => {
    const { bench, ear } = everything()
    const other = new RecordingWatcher()
    for (const kind of [1, 2, 3, 4, 5]) {
      expect(bench.watches.has(other, '/a', kind)).toBe(false)
      expect(bench.watches.remove(other, '/a', kind)).toBe(false)
    }
    bench.watches.removeAll(other)
    bench.changed('/a')
    expect([other.takeEvents(), ear.takeEvents()]).toEqual([[], [`${CHANGED} /a`]])
  })
})

describe('a recursive watch', () => {
  it('on an ancestor is not held on the path itself', () => {
    const [bench, ear] = [new WatchFixture(), new RecordingWatcher()]
    bench.watches.watchRecursively(ear, '/a')
    expect(bench.watches.has(ear, '/a/b', WatcherType.Any)).toBe(false)
    expect(bench.watches.remove(ear, '/a/b', WatcherType.PersistentRecursive)).toBe(false)
  })

  it('gives no second event when the same connection watches the path itself, and a child watch of the parent gives its own', () => {
    const [bench, ear] = [new WatchFixture(), new RecordingWatcher()]
    for (const path of ['/', '/a', '/a/b']) bench.watches.watchRecursively(ear, path)
    bench.watches.watchData(ear, '/a/b/c')
    bench.watches.watchChildren(ear, '/a/b')
    bench.deleted('/a/b/c')
    expect(ear.takeEvents()).toEqual([`${DELETED} /a/b/c`, `${CHILDREN} /a/b`])
  })

  it('fires while one of several is left, and not after the last is removed', () => {
    const [bench, one, two] = [new WatchFixture(), new RecordingWatcher(), new RecordingWatcher()]
    for (const ear of [one, two, one]) bench.watches.watchRecursively(ear, '/a')
    bench.watches.remove(one, '/a', WatcherType.Any)
    bench.changed('/a/x')
    expect([one.takeEvents(), two.takeEvents()]).toEqual([[], [`${CHANGED} /a/x`]])
    bench.watches.removeAll(two)
    bench.changed('/a/x')
    expect([two.takeEvents(), bench.watches.size]).toEqual([[], 0])
    bench.watches.watchRecursively(two, '/')
    bench.changed('/a/x')
    expect(two.takeEvents()).toEqual([`${CHANGED} /a/x`])
  })
})

describe('many watches', () => {
  it('of a closed connection are all removed', () => {
    const bench = new WatchFixture()
    const [ear, other] = [new RecordingWatcher(), new RecordingWatcher()]
    for (const each of [ear, other]) {
      bench.watches.watchData(each, '/a')
      bench.watches.watchChildren(each, '/b')
      bench.watches.watchPersistently(each, '/c')
      bench.watches.watchRecursively(each, '/d')
    }
    bench.watches.removeAll(ear)
    expect(bench.watches.size).toBe(5)
    bench.changed('/a')
    bench.changed('/d/x')
    expect([ear.takeEvents(), other.takeEvents()]).toEqual([[], [`${CHANGED} /a`, `${CHANGED} /d/x`]])
    bench.watches.removeAll(other)
    expect(bench.watches.size).toBe(0)
    expect([...bench.watches.data.entries(), ...bench.watches.child.entries()]).toEqual([])
  })

  it('fire correctly: 100,000 on 10,000 connections', () => {
    const bench = new WatchFixture()
    const ears = Array.from({ length: 10_000 }, () => new RecordingWatcher())
    for (const [i, ear] of ears.entries()) {
      for (let k = 0; k < 9; k++) bench.watches.watchData(ear, `/own/${i}/${k}`)
      bench.watches.watchData(ear, '/shared')
    }
    expect(bench.watches.size).toBe(100_000)
    bench.changed('/shared')
    expect(ears.every((ear) => ear.takeEvents().length === 1)).toBe(true)
    expect(bench.watches.size).toBe(90_000)
    for (const [i, ear] of ears.entries()) {
      for (let k = 0; k < 6; k++) bench.changed(`/own/${i}/${k}`)
      expect(ear.takeEvents().length).toBe(6)
    }
    expect([bench.watches.size, bench.notifier.delivered]).toEqual([30_000, 70_000])
    for (const [i, ear] of ears.entries())
      expect(bench.watches.remove(ear, `/own/${i}/6`, WatcherType.Data)).toBe(true)
    expect(bench.watches.size).toBe(20_000)
    for (const ear of ears) bench.watches.removeAll(ear)
    expect([bench.watches.size, bench.watches.data.pathCount]).toEqual([0, 0])
    expect(ears.every(({ watchedPaths: watched }) => watched.size === 0)).toBe(true)
  })
})
