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
  it('of data hear of creation, change and deletion, once', () => {
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

  it('of children hear of children that come and go, and of the end of the node, once', () => {
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

  it('of data and children on one node give one event when it goes', () => {
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
  it('hear of everything about a node and its children, for ever', () => {
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

  it('that are recursive hear of every node below, each event once, and of no children', () => {
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

  it('live beside one-shot ones on the same path', () => {
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

describe('checking and removing', () => {
  it('tell the kinds apart', () => {
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

describe('with every kind of watch on one path', () => {
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

  it('one event each comes of a change, a deletion and a child, and one-shot ones are used up', () => {
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

  it.each([0, 6, -1])('a kind that does not exist (%i) is neither held nor removed', (kind) => {
    const both = everything()
    expect(both.bench.watches.has(both.ear, '/a', kind)).toBe(false)
    expect(both.bench.watches.remove(both.ear, '/a', kind)).toBe(false)
    expect(held(both)).toEqual([1, 2, 3, 4, 5])
  })

  it('another connection holds and removes nothing, and hears nothing', () => {
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
  it('on an ancestor does not count as one on the path itself', () => {
    const [bench, ear] = [new WatchFixture(), new RecordingWatcher()]
    bench.watches.watchRecursively(ear, '/a')
    expect(bench.watches.has(ear, '/a/b', WatcherType.Any)).toBe(false)
    expect(bench.watches.remove(ear, '/a/b', WatcherType.PersistentRecursive)).toBe(false)
  })

  it("adds nothing where the same connection hears of the path itself, and a parent's child watch adds its own", () => {
    const [bench, ear] = [new WatchFixture(), new RecordingWatcher()]
    for (const path of ['/', '/a', '/a/b']) bench.watches.watchRecursively(ear, path)
    bench.watches.watchData(ear, '/a/b/c')
    bench.watches.watchChildren(ear, '/a/b')
    bench.deleted('/a/b/c')
    expect(ear.takeEvents()).toEqual([`${DELETED} /a/b/c`, `${CHILDREN} /a/b`])
  })

  it('is heard for the last of several, and not once the last is gone', () => {
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
  it('of a connection that goes are all forgotten', () => {
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

  it('work: 100,000 on 10,000 connections', () => {
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
