import {
  ErrorCode,
  EventType,
  OpCode,
  WatcherType,
  WatchMode,
  writeSetWatches,
  writeSetWatches2,
} from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import { ReadFixture } from './testing/read-fixture.ts'

describe('a read that asks for a watch', () => {
  it.each([
    ['exists', OpCode.exists, '/a', [2, 3]],
    ['exists of a node to come', OpCode.exists, '/to-come', [2, 3]],
    ['getData', OpCode.getData, '/a', [2, 3]],
    ['getChildren', OpCode.getChildren, '/a', [1, 3]],
    ['getChildren2', OpCode.getChildren2, '/a', [1, 3]],
  ] as const)('by %s leaves one of its kind, and none unless it asks', (_name, op, path, kinds) => {
    const bench = new ReadFixture()
    bench.look(op, path)
    expect(bench.held(path)).toEqual([])
    bench.look(op, path, true)
    bench.look(op, path, true)
    expect([bench.held(path), bench.watches.size]).toEqual([kinds, 1])
  })

  it('leaves none when it fails, but for exists of an absent node', () => {
    const bench = new ReadFixture()
    for (const op of [OpCode.exists, OpCode.getData, OpCode.getChildren, OpCode.getChildren2]) {
      for (const path of ['/s', null]) bench.look(op, path, true)
      if (op !== OpCode.exists) bench.look(op, '/none', true)
    }
    bench.look(OpCode.exists, '/a\0', true)
    for (const op of [OpCode.getACL, OpCode.getAllChildrenNumber]) bench.look(op, '/a', true)
    expect([bench.watches.size, bench.client.watchedPaths.size]).toEqual([0, 0])
  })

  it('on the empty path keeps a watch that never fires', () => {
    const bench = new ReadFixture()
    bench.look(OpCode.getChildren, '', true)
    bench.look(OpCode.getData, '', true)
    bench.create('/top', null)
    bench.apply({ type: OpCode.setData, path: '/', data: null, version: 1 })
    expect([bench.client.events, bench.held('')]).toEqual([[], [1, 2, 3]])
  })
})

describe('addWatch', () => {
  it('needs no node and no permission, answers with a zero, and is heard from then on', () => {
    const bench = new ReadFixture()
    for (const path of ['/s', '/not/there']) {
      for (const mode of [WatchMode.PERSISTENT, WatchMode.PERSISTENT_RECURSIVE]) {
        expect(bench.number(OpCode.addWatch, path, mode)).toMatchObject({ err: 0, bytes: '00000000' })
      }
      expect(bench.held(path)).toEqual([3, 4, 5])
    }
    bench.create('/not', null)
    bench.create('/not/there', null)
    expect(bench.client.events).toEqual([`${EventType.NodeCreated} /not/there`])
  })

  it('takes a null path and then does nothing, and leaves nothing for a mode that does not exist', () => {
    const bench = new ReadFixture()
    for (const mode of [0, 1])
      expect(bench.number(OpCode.addWatch, null, mode)).toMatchObject({ err: 0, length: 4 })
    for (const mode of [-1, 2])
      expect(bench.number(OpCode.addWatch, '/a', mode)).toMatchObject({
        err: ErrorCode.MARSHALLINGERROR,
        length: 0,
      })
    expect(bench.watches.size).toBe(0)
  })
})

describe('watches that a client puts back', () => {
  it('tell at once what happened since, and wait for the rest', () => {
    const bench = new ReadFixture()
    const request = {
      relativeZxid: 1n,
      dataWatches: ['/a', '/s', '/gone'],
      existWatches: ['/a/b', '/to-come'],
      childWatches: ['/a', '/a/b', '/lost'],
      persistentWatches: ['/p'],
      persistentRecursiveWatches: ['/r'],
    }
    expect(bench.ask(OpCode.setWatches2, (w) => writeSetWatches2(w, request))).toMatchObject({
      err: 0,
      length: 0,
    })
    expect(bench.client.events).toEqual([
      `${EventType.NodeDataChanged} /s`,
      `${EventType.NodeDeleted} /gone`,
      `${EventType.NodeCreated} /a/b`,
      `${EventType.NodeChildrenChanged} /a`,
      `${EventType.NodeChildrenChanged} /a/b`,
      `${EventType.NodeDeleted} /lost`,
    ])
    expect([...bench.client.watchedPaths].sort()).toEqual(['/a', '/p', '/r', '/to-come'])
  })

  it('are refused when a list is missing', () => {
    const lists = {
      dataWatches: [],
      existWatches: [],
      childWatches: [],
      persistentWatches: [],
      persistentRecursiveWatches: [],
    }
    for (const missing of Object.keys(lists)) {
      const bench = new ReadFixture()
      const request = { relativeZxid: 1n, ...lists, [missing]: null }
      expect(bench.ask(OpCode.setWatches2, (w) => writeSetWatches2(w, request)).err).toBe(
        ErrorCode.MARSHALLINGERROR,
      )
    }
  })

  it('are refused when a path is missing among those that are looked up, with nothing told or kept', () => {
    for (const list of ['dataWatches', 'existWatches', 'childWatches']) {
      const bench = new ReadFixture()
      const none = { dataWatches: [], existWatches: [], childWatches: [] }
      const request = { relativeZxid: 0n, ...none, [list]: ['/a', null, '/lost'] }
      expect(bench.ask(OpCode.setWatches, (w) => writeSetWatches(w, request)).err).toBe(
        ErrorCode.MARSHALLINGERROR,
      )
      expect([bench.client.events, [...bench.client.watchedPaths]]).toEqual([[], []])
    }
  })

  it('can be checked and removed, and modes that do not exist cannot be added', () => {
    const bench = new ReadFixture()
    const one = (...asked: [number, string, number]): number => bench.number(...asked).err
    expect([0, 1, 2, -1].map((mode) => one(OpCode.addWatch, '/w', mode))).toEqual([0, 0, -5, -5])
    expect([1, 2, 3, 4, 5, 0, 6].map((type) => one(OpCode.checkWatches, '/w', type))).toEqual([
      -121, -121, 0, 0, 0, -5, -5,
    ])
    expect([4, 4, 3, 3, 0].map((type) => one(OpCode.removeWatches, '/w', type))).toEqual([
      0, -121, 0, -121, -5,
    ])
  })

  it('that were put there twice are told twice, in the order of the lists, before the reply', () => {
    const bench = new ReadFixture()
    const request = {
      relativeZxid: 0n,
      dataWatches: ['/a', '/a', '/gone'],
      existWatches: ['/a'],
      childWatches: ['/a', '/gone'],
    }
    const { err, length } = bench.ask(OpCode.setWatches, (w) => writeSetWatches(w, request))
    expect([err, length]).toEqual([0, 0])
    // As a ZooKeeper 3.9 server tells them.
    expect(bench.client.events).toEqual(['3 /a', '3 /a', '2 /gone', '1 /a', '4 /a', '2 /gone'])
    expect(bench.client.frames.every((frame) => frame.slice(8, 32) === 'f'.repeat(24))).toBe(true)
    expect(bench.watches.size).toBe(0)
  })

  it('count as missed what came behind the zxid that the client has seen, and not that zxid itself', () => {
    for (const [seen, events, kinds] of [
      [6n, ['3 /n', '4 /n'], []],
      [7n, ['4 /n'], [2, 3]],
      [8n, [], [1, 2, 3]],
      [2n ** 60n, [], [1, 2, 3]],
      [-1n, ['3 /n', '4 /n'], []],
    ] as const) {
      const bench = new ReadFixture({ empty: true })
      bench.create('/n', null)
      bench.apply({ type: OpCode.setData, path: '/n', data: null, version: 1 }, 7)
      const child = { path: '/n/k', data: null, acl: [], ephemeral: false, parentCVersion: -1 }
      bench.apply({ type: OpCode.create, ...child }, 8)
      const request = { relativeZxid: seen, dataWatches: ['/n'], existWatches: [], childWatches: ['/n'] }
      bench.ask(OpCode.setWatches, (w) => writeSetWatches(w, request))
      expect([bench.client.events, bench.held('/n')]).toEqual([events, kinds])
    }
  })

  it('of the lasting kinds are put back without a word, whatever happened, and hear of what comes', () => {
    const bench = new ReadFixture()
    const request = {
      relativeZxid: 0n,
      dataWatches: [],
      existWatches: [],
      childWatches: [],
      persistentWatches: ['/a', '/gone', null],
      persistentRecursiveWatches: ['/', '/s', null],
    }
    expect(bench.ask(OpCode.setWatches2, (w) => writeSetWatches2(w, request)).err).toBe(0)
    expect(bench.client.events).toEqual([])
    expect(['/a', '/gone', '/', '/s'].map((path) => bench.held(path))).toEqual([
      [3, 4],
      [3, 4],
      [3, 5],
      [3, 5],
    ])
    bench.create('/a/c', null)
    expect(bench.client.events).toEqual(['1 /a/c', '4 /a'])
  })
})

describe('checkWatches and removeWatches', () => {
  it('answer with a header alone, need no node, and tell nobody', () => {
    const bench = new ReadFixture()
    bench.number(OpCode.addWatch, '/w', WatchMode.PERSISTENT)
    for (const [op, path, err] of [
      [OpCode.checkWatches, '/w', 0],
      [OpCode.checkWatches, '/w/', ErrorCode.NOWATCHER],
      [OpCode.checkWatches, null, ErrorCode.NOWATCHER],
      [OpCode.removeWatches, null, ErrorCode.NOWATCHER],
      [OpCode.removeWatches, '/w', 0],
      [OpCode.removeWatches, '/w', ErrorCode.NOWATCHER],
    ] as const) {
      expect(bench.number(op, path, WatcherType.Persistent)).toMatchObject({ err, length: 0 })
    }
    expect(bench.client.events).toEqual([])
  })

  it('refuse types that do not exist, and leave the watch', () => {
    const bench = new ReadFixture()
    bench.number(OpCode.addWatch, '/w', WatchMode.PERSISTENT)
    for (const op of [OpCode.checkWatches, OpCode.removeWatches]) {
      for (const type of [-1, 0, 6, 2 ** 31 - 1])
        expect(bench.number(op, '/w', type)).toMatchObject({ err: ErrorCode.MARSHALLINGERROR, length: 0 })
    }
    expect(bench.held('/w')).toEqual([3, 4])
  })
})
