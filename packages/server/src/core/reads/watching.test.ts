import {
  ErrorCode,
  EventType,
  OpCode,
  WatcherType,
  WatchMode,
  writeSetWatches,
  writeSetWatches2,
} from '@zabra/protocol'
import { describe, expect } from 'vitest'
import { createOf } from '../testing/create-of.ts'
import { ReadFixture, it } from './testing/read-fixture.ts'

describe('a read that sets a watch', () => {
  it.each([
    ['exists', OpCode.exists, '/a', [2, 3]],
    ['exists of a node to come', OpCode.exists, '/to-come', [2, 3]],
    ['getData', OpCode.getData, '/a', [2, 3]],
    ['getChildren', OpCode.getChildren, '/a', [1, 3]],
    ['getChildren2', OpCode.getChildren2, '/a', [1, 3]],
  ] as const)('sets one of its kind only if it requests one: %s', (_name, op, path, kinds) => {
    const fixture = new ReadFixture()
    fixture.look(op, path)
    expect(fixture.held(path)).toEqual([])
    fixture.look(op, path, true)
    fixture.look(op, path, true)
    expect([fixture.held(path), fixture.watches.size]).toEqual([kinds, 1])
  })

  it('sets none when it fails, except exists of an absent node', ({ fixture }) => {
    for (const op of [OpCode.exists, OpCode.getData, OpCode.getChildren, OpCode.getChildren2]) {
      for (const path of ['/s', null]) fixture.look(op, path, true)
      if (op !== OpCode.exists) fixture.look(op, '/none', true)
    }
    fixture.look(OpCode.exists, '/a\0', true)
    for (const op of [OpCode.getACL, OpCode.getAllChildrenNumber]) fixture.look(op, '/a', true)
    expect([fixture.watches.size, fixture.client.watchedPaths.size]).toEqual([0, 0])
  })

  it('of the empty path sets a watch that never fires', ({ fixture }) => {
    fixture.look(OpCode.getChildren, '', true)
    fixture.look(OpCode.getData, '', true)
    fixture.create('/top', null)
    fixture.apply({ type: OpCode.setData, path: '/', data: null, version: 1 })
    expect([fixture.client.events, fixture.held('')]).toEqual([[], [1, 2, 3]])
  })
})

describe('addWatch', () => {
  it('needs neither node nor permission, replies 0, and delivers events from then on', ({ fixture }) => {
    for (const path of ['/s', '/not/there']) {
      for (const mode of [WatchMode.PERSISTENT, WatchMode.PERSISTENT_RECURSIVE])
        expect(fixture.number(OpCode.addWatch, path, mode)).toMatchObject({ err: 0, bytes: '00000000' })
      expect(fixture.held(path)).toEqual([3, 4, 5])
    }
    fixture.create('/not', null)
    fixture.create('/not/there', null)
    expect(fixture.client.events).toEqual([`${EventType.NodeCreated} /not/there`])
  })

  it('accepts a null path without effect, and rejects an unknown mode without effect', ({ fixture }) => {
    for (const mode of [0, 1])
      expect(fixture.number(OpCode.addWatch, null, mode)).toMatchObject({ err: 0, length: 4 })
    for (const mode of [-1, 2])
      expect(fixture.number(OpCode.addWatch, '/a', mode)).toMatchObject({
        err: ErrorCode.MARSHALLINGERROR,
        length: 0,
      })
    expect(fixture.watches.size).toBe(0)
  })
})

describe('setWatches and setWatches2', () => {
  it('notify of missed changes at once and set the other watches', ({ fixture }) => {
    const request = {
      relativeZxid: 1n,
      dataWatches: ['/a', '/s', '/gone'],
      existWatches: ['/a/b', '/to-come'],
      childWatches: ['/a', '/a/b', '/lost'],
      persistentWatches: ['/p'],
      persistentRecursiveWatches: ['/r'],
    }
    expect(fixture.ask(OpCode.setWatches2, (w) => writeSetWatches2(w, request))).toMatchObject({
      err: 0,
      length: 0,
    })
    expect(fixture.client.events).toEqual([
      `${EventType.NodeDeleted} /s`,
      `${EventType.NodeDeleted} /gone`,
      `${EventType.NodeCreated} /a/b`,
      `${EventType.NodeChildrenChanged} /a`,
      `${EventType.NodeChildrenChanged} /a/b`,
      `${EventType.NodeDeleted} /lost`,
    ])
    expect([...fixture.client.watchedPaths].sort()).toEqual(['/a', '/p', '/r', '/to-come'])
  })

  it('have the same result for a node that the client may not read as for one that does not exist', () => {
    const outcome = (path: string): unknown => {
      const fixture = new ReadFixture()
      const lists = { dataWatches: [path], existWatches: [path], childWatches: [path] }
      const events = [0n, 100n].map((relativeZxid) => {
        fixture.ask(OpCode.setWatches, (w) => writeSetWatches(w, { relativeZxid, ...lists }))
        return fixture.client.events.splice(0).map((event) => event.replace(path, 'it'))
      })
      return [events, fixture.held(path)]
    }
    expect(outcome('/s')).toEqual(outcome('/none'))
  })

  it('fail when a list is missing', () => {
    const lists = {
      dataWatches: [],
      existWatches: [],
      childWatches: [],
      persistentWatches: [],
      persistentRecursiveWatches: [],
    }
    for (const missing of Object.keys(lists)) {
      const fixture = new ReadFixture()
      const request = { relativeZxid: 1n, ...lists, [missing]: null }
      expect(fixture.ask(OpCode.setWatches2, (w) => writeSetWatches2(w, request)).err).toBe(
        ErrorCode.MARSHALLINGERROR,
      )
    }
  })

  it('fail without notifications or watches when a path to look up is null', () => {
    for (const list of ['dataWatches', 'existWatches', 'childWatches']) {
      const fixture = new ReadFixture()
      const none = { dataWatches: [], existWatches: [], childWatches: [] }
      const request = { relativeZxid: 0n, ...none, [list]: ['/a', null, '/lost'] }
      expect(fixture.ask(OpCode.setWatches, (w) => writeSetWatches(w, request)).err).toBe(
        ErrorCode.MARSHALLINGERROR,
      )
      expect([fixture.client.events, [...fixture.client.watchedPaths]]).toEqual([[], []])
    }
  })

  it('set watches that checkWatches finds and removeWatches removes', ({ fixture }) => {
    const one = (...asked: [number, string, number]): number => fixture.number(...asked).err
    expect([0, 1, 2, -1].map((mode) => one(OpCode.addWatch, '/w', mode))).toEqual([0, 0, -5, -5])
    expect([1, 2, 3, 4, 5, 0, 6].map((type) => one(OpCode.checkWatches, '/w', type))).toEqual([
      -121, -121, 0, 0, 0, -5, -5,
    ])
    expect([4, 4, 3, 3, 0].map((type) => one(OpCode.removeWatches, '/w', type))).toEqual([
      0, -121, 0, -121, -5,
    ])
  })

  it('notify twice of a path listed twice, in the order of the lists, before the reply', ({ fixture }) => {
    const request = {
      relativeZxid: 0n,
      dataWatches: ['/a', '/a', '/gone'],
      existWatches: ['/a'],
      childWatches: ['/a', '/gone'],
    }
    const { err, length } = fixture.ask(OpCode.setWatches, (w) => writeSetWatches(w, request))
    expect([err, length]).toEqual([0, 0])
    // As a ZooKeeper 3.9 server sends them.
    expect(fixture.client.events).toEqual(['3 /a', '3 /a', '2 /gone', '1 /a', '4 /a', '2 /gone'])
    expect(fixture.client.frames.every((frame) => frame.slice(8, 32) === 'f'.repeat(24))).toBe(true)
    expect(fixture.watches.size).toBe(0)
  })

  it('take changes after the last seen zxid for missed, and not that of the zxid itself', () => {
    for (const [seen, events, kinds] of [
      [6n, ['3 /n', '4 /n'], []],
      [7n, ['4 /n'], [2, 3]],
      [8n, [], [1, 2, 3]],
      [2n ** 60n, [], [1, 2, 3]],
      [-1n, ['3 /n', '4 /n'], []],
    ] as const) {
      const fixture = new ReadFixture({ empty: true })
      fixture.create('/n', null)
      fixture.apply({ type: OpCode.setData, path: '/n', data: null, version: 1 }, 7)
      fixture.apply(createOf('/n/k', { acl: [] }), 8)
      const request = { relativeZxid: seen, dataWatches: ['/n'], existWatches: [], childWatches: ['/n'] }
      fixture.ask(OpCode.setWatches, (w) => writeSetWatches(w, request))
      expect([fixture.client.events, fixture.held('/n')]).toEqual([events, kinds])
    }
  })

  it('set persistent watches without notifications, whatever has changed', ({ fixture }) => {
    const request = {
      relativeZxid: 0n,
      dataWatches: [],
      existWatches: [],
      childWatches: [],
      persistentWatches: ['/a', '/gone', null],
      persistentRecursiveWatches: ['/', '/s', null],
    }
    expect(fixture.ask(OpCode.setWatches2, (w) => writeSetWatches2(w, request)).err).toBe(0)
    expect(fixture.client.events).toEqual([])
    expect(['/a', '/gone', '/', '/s'].map((path) => fixture.held(path))).toEqual([
      [3, 4],
      [3, 4],
      [3, 5],
      [3, 5],
    ])
    fixture.create('/a/c', null)
    expect(fixture.client.events).toEqual(['1 /a/c', '4 /a'])
  })
})

describe('checkWatches and removeWatches', () => {
  it('reply with a header only, need no node, and fire no event', ({ fixture }) => {
    fixture.number(OpCode.addWatch, '/w', WatchMode.PERSISTENT)
    for (const [op, path, err] of [
      [OpCode.checkWatches, '/w', 0],
      [OpCode.checkWatches, '/w/', ErrorCode.NOWATCHER],
      [OpCode.checkWatches, null, ErrorCode.NOWATCHER],
      [OpCode.removeWatches, null, ErrorCode.NOWATCHER],
      [OpCode.removeWatches, '/w', 0],
      [OpCode.removeWatches, '/w', ErrorCode.NOWATCHER],
    ] as const)
      expect(fixture.number(op, path, WatcherType.Persistent)).toMatchObject({ err, length: 0 })
    expect(fixture.client.events).toEqual([])
  })

  it('reject unknown types and keep the watch', ({ fixture }) => {
    fixture.number(OpCode.addWatch, '/w', WatchMode.PERSISTENT)
    for (const op of [OpCode.checkWatches, OpCode.removeWatches]) {
      for (const type of [-1, 0, 6, 2 ** 31 - 1])
        expect(fixture.number(op, '/w', type)).toMatchObject({ err: ErrorCode.MARSHALLINGERROR, length: 0 })
    }
    expect(fixture.held('/w')).toEqual([3, 4])
  })
})
