import { EventType, OPEN_ACL_UNSAFE, Reader, readWatcherEvent, WatcherType, type ACL } from '@zabra/protocol'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { AclRules } from '../auth/index.ts'
import type { Identity } from '../types.ts'
import { Firing, Watches, type Listener } from './index.ts'

class Ear implements Listener {
  readonly watched = new Set<string>()
  readonly identities: readonly Identity[]
  readonly events: string[] = []
  readonly zxids: number[] = []

  constructor(identities: readonly Identity[] = []) {
    this.identities = identities
  }

  deliver(frame: Uint8Array): void {
    const reader = new Reader(frame)
    expect(reader.int()).toBe(frame.length - 4)
    expect(reader.int()).toBe(-1)
    this.zxids.push(reader.longNumber())
    expect(reader.int()).toBe(0)
    const { type, state, path } = readWatcherEvent(reader)
    expect(state).toBe(3)
    this.events.push(`${type} ${path}`)
  }

  heard(): string[] {
    return this.events.splice(0)
  }
}

const CREATED = EventType.NodeCreated
const DELETED = EventType.NodeDeleted
const CHANGED = EventType.NodeDataChanged
const CHILDREN = EventType.NodeChildrenChanged

class Bench {
  readonly watches = new Watches<Ear>()
  readonly firing = new Firing<Ear>(this.watches, new AclRules({ skipACL: false }))

  created(path: string, acl: readonly ACL[] = OPEN_ACL_UNSAFE): void {
    this.firing.created(path, acl, parentOf(path), OPEN_ACL_UNSAFE)
  }
  deleted(path: string): void {
    this.firing.deleted(path, OPEN_ACL_UNSAFE, parentOf(path), OPEN_ACL_UNSAFE)
  }
  changed(path: string, acl: readonly ACL[] = OPEN_ACL_UNSAFE): void {
    this.firing.dataChanged(path, acl)
  }
}

const parentOf = (path: string): string => path.slice(0, path.lastIndexOf('/')) || '/'

describe('one-shot watches', () => {
  it('of data hear of creation, change and deletion, once', () => {
    const bench = new Bench()
    const ear = new Ear()
    for (const [fire, event] of [
      [() => bench.created('/a'), CREATED],
      [() => bench.changed('/a'), CHANGED],
      [() => bench.deleted('/a'), DELETED],
    ] as const) {
      bench.watches.watchData(ear, '/a')
      fire()
      fire()
      expect(ear.heard()).toEqual([`${event} /a`])
    }
    expect([bench.watches.size, ear.watched.size]).toEqual([0, 0])
  })

  it('of children hear of children that come and go, and of the end of the node, once', () => {
    const bench = new Bench()
    const ear = new Ear()
    bench.watches.watchChildren(ear, '/a')
    bench.created('/a/x')
    bench.created('/a/y')
    expect(ear.heard()).toEqual([`${CHILDREN} /a`])
    bench.watches.watchChildren(ear, '/a')
    bench.changed('/a')
    expect(ear.heard()).toEqual([])
    bench.deleted('/a')
    expect(ear.heard()).toEqual([`${DELETED} /a`])
  })

  it('of data and children on one node give one event when it goes', () => {
    const bench = new Bench()
    const ear = new Ear()
    bench.watches.watchData(ear, '/a')
    bench.watches.watchChildren(ear, '/a')
    bench.deleted('/a')
    expect(ear.heard()).toEqual([`${DELETED} /a`])
    expect(bench.watches.size).toBe(0)
  })
})

describe('persistent watches', () => {
  it('hear of everything about a node and its children, for ever', () => {
    const bench = new Bench()
    const ear = new Ear()
    bench.watches.watchPersistently(ear, '/a')
    bench.created('/a')
    bench.created('/a/x')
    bench.changed('/a/x')
    bench.changed('/a')
    bench.deleted('/a/x')
    bench.deleted('/a')
    expect(ear.heard()).toEqual([
      `${CREATED} /a`,
      `${CHILDREN} /a`,
      `${CHANGED} /a`,
      `${CHILDREN} /a`,
      `${DELETED} /a`,
    ])
    expect(bench.watches.size).toBe(2)
  })

  it('that are recursive hear of every node below, each event once, and of no children', () => {
    const bench = new Bench()
    const ear = new Ear()
    bench.watches.watchRecursively(ear, '/a')
    bench.watches.watchRecursively(ear, '/')
    bench.created('/a/x')
    bench.changed('/a/x')
    bench.deleted('/a/x')
    bench.created('/b')
    bench.changed('/ab')
    expect(ear.heard()).toEqual([
      `${CREATED} /a/x`,
      `${CHANGED} /a/x`,
      `${DELETED} /a/x`,
      `${CREATED} /b`,
      `${CHANGED} /ab`,
    ])
  })

  it('live beside one-shot ones on the same path', () => {
    const bench = new Bench()
    const ear = new Ear()
    bench.watches.watchData(ear, '/a')
    bench.watches.watchPersistently(ear, '/a')
    bench.watches.watchRecursively(ear, '/a')
    bench.changed('/a')
    bench.changed('/a')
    expect(ear.heard()).toEqual([`${CHANGED} /a`, `${CHANGED} /a`])
    expect(bench.watches.holds(ear, '/a', WatcherType.Data)).toBe(false)
    expect(bench.watches.holds(ear, '/a', WatcherType.Persistent)).toBe(true)
    expect(bench.watches.holds(ear, '/a', WatcherType.PersistentRecursive)).toBe(true)
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
    const held = (add: (watches: Watches<Ear>, ear: Ear) => void): boolean[] => {
      const { watches } = new Bench()
      const ear = new Ear()
      add(watches, ear)
      const holds = kinds.map((kind) => watches.holds(ear, '/a', kind))
      expect(kinds.map((kind) => watches.holds(ear, '/a/x', kind))).toEqual(kinds.map(() => false))
      for (const [i, kind] of kinds.entries()) {
        const again = new Bench().watches
        const other = new Ear()
        add(again, other)
        expect(again.remove(other, '/a', kind)).toBe(holds[i])
        expect(again.remove(other, '/a', kind)).toBe(false)
        if (holds[i]) expect([again.size, other.watched.size]).toEqual([0, 0])
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

describe('an event', () => {
  const secret: readonly ACL[] = [{ perms: 1, id: { scheme: 'ip', id: '10.0.0.1' } }]

  it('is kept from those who may not read the node, and their one-shot watch is used up', () => {
    const bench = new Bench()
    const [stranger, friend] = [new Ear(), new Ear([{ scheme: 'ip', id: '10.0.0.1' }])]
    for (const ear of [stranger, friend]) bench.watches.watchData(ear, '/a')
    bench.changed('/a', secret)
    bench.changed('/a')
    expect([stranger.heard(), friend.heard()]).toEqual([[], [`${CHANGED} /a`]])
  })

  it('has the zxid of its transaction, and -1 when it only tells what was missed', () => {
    const bench = new Bench()
    const ear = new Ear()
    bench.firing.zxid = 0x1_0000_0007
    bench.watches.watchData(ear, '/a')
    bench.changed('/a')
    bench.firing.tell(ear, DELETED, '/b')
    expect(ear.zxids).toEqual([0x1_0000_0007, -1])
  })
})

describe('many watches', () => {
  it('of a connection that goes are all forgotten', () => {
    const bench = new Bench()
    const [ear, other] = [new Ear(), new Ear()]
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
    expect([ear.heard(), other.heard()]).toEqual([[], [`${CHANGED} /a`, `${CHANGED} /d/x`]])
    bench.watches.removeAll(other)
    expect(bench.watches.size).toBe(0)
    expect([...bench.watches.data.entries(), ...bench.watches.child.entries()]).toEqual([])
  })

  it('work: 100,000 on 10,000 connections', () => {
    const bench = new Bench()
    const ears = Array.from({ length: 10_000 }, () => new Ear())
    for (const [i, ear] of ears.entries()) {
      for (let k = 0; k < 9; k++) bench.watches.watchData(ear, `/own/${i}/${k}`)
      bench.watches.watchData(ear, '/shared')
    }
    expect(bench.watches.size).toBe(100_000)
    bench.changed('/shared')
    expect(ears.every((ear) => ear.heard().length === 1)).toBe(true)
    bench.changed('/own/77/3')
    expect(ears[77]!.heard()).toEqual([`${CHANGED} /own/77/3`])
    for (const ear of ears) bench.watches.removeAll(ear)
    expect(bench.watches.size).toBe(0)
  })
})

describe('in random histories', () => {
  type Kind = 'data' | 'child' | 'persistent' | 'recursive'
  const path = fc.constantFrom('/', '/a', '/a/x', '/a/x/p', '/b')
  const ear = fc.nat(2)
  const step = fc.oneof(
    {
      weight: 3,
      arbitrary: fc.record({
        do: fc.constant('watch' as const),
        kind: fc.constantFrom<Kind>('data', 'child', 'persistent', 'recursive'),
        path,
        ear,
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        do: fc.constantFrom('created' as const, 'deleted' as const, 'changed' as const),
        path: path.filter((one) => one !== '/'),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        do: fc.constant('remove' as const),
        type: fc.integer({ min: 1, max: 5 }),
        path,
        ear,
      }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('gone' as const), ear }) },
  )

  it('tells what a list of watches would tell, in 5,000 of them', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const bench = new Bench()
        const ears = [new Ear(), new Ear(), new Ear()]
        let held: { kind: Kind; path: string; ear: number }[] = []
        const take = (matches: (one: (typeof held)[number]) => boolean): number[] => {
          const hit = held.filter(matches)
          held = held.filter(
            (one) => !hit.includes(one) || one.kind === 'persistent' || one.kind === 'recursive',
          )
          return [...new Set(hit.map((one) => one.ear))]
        }
        const below = (top: string, at: string): boolean =>
          top === at || at.startsWith(top === '/' ? '/' : `${top}/`)
        for (const one of steps) {
          const expected: string[][] = [[], [], []]
          if (one.do === 'watch') {
            const same = held.some(
              (other) => other.kind === one.kind && other.path === one.path && other.ear === one.ear,
            )
            if (!same) held.push({ kind: one.kind, path: one.path, ear: one.ear })
            const { watches } = bench
            if (one.kind === 'data') watches.watchData(ears[one.ear]!, one.path)
            else if (one.kind === 'child') watches.watchChildren(ears[one.ear]!, one.path)
            else if (one.kind === 'persistent') watches.watchPersistently(ears[one.ear]!, one.path)
            else watches.watchRecursively(ears[one.ear]!, one.path)
          } else if (one.do === 'gone') {
            held = held.filter((other) => other.ear !== one.ear)
            bench.watches.removeAll(ears[one.ear]!)
          } else if (one.do === 'remove') {
            const kinds: Kind[] = (
              [
                ['child'],
                ['data'],
                ['child', 'data', 'persistent', 'recursive'],
                ['persistent'],
                ['recursive'],
              ] as Kind[][]
            )[one.type - 1]!
            const before = held.length
            held = held.filter(
              (other) => !(other.ear === one.ear && other.path === one.path && kinds.includes(other.kind)),
            )
            expect(bench.watches.remove(ears[one.ear]!, one.path, one.type)).toBe(held.length < before)
          } else {
            const event = one.do === 'created' ? CREATED : one.do === 'deleted' ? DELETED : CHANGED
            const own = take(
              (other) =>
                (other.path === one.path &&
                  (other.kind === 'data' ||
                    other.kind === 'persistent' ||
                    (other.kind === 'child' && one.do === 'deleted'))) ||
                (other.kind === 'recursive' && below(other.path, one.path)),
            )
            for (const index of own) expected[index]!.push(`${event} ${one.path}`)
            if (one.do !== 'changed') {
              const parent = parentOf(one.path)
              const more = take(
                (other) => other.path === parent && (other.kind === 'child' || other.kind === 'persistent'),
              )
              for (const index of more) expected[index]!.push(`${CHILDREN} ${parent}`)
            }
            bench[one.do](one.path)
          }
          expect(ears.map((each) => each.heard())).toEqual(expected)
        }
      }),
      { numRuns: 5000 },
    )
  })
})
