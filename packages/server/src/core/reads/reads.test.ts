import {
  ErrorCode,
  EventType,
  OPEN_ACL_UNSAFE,
  OpCode,
  Reader,
  readMultiResponse,
  readStat,
  readWatcherEvent,
  writeMultiHeader,
  Writer,
  writeSetWatches,
  writeSetWatches2,
  type ACL,
} from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import { AclRules } from '../auth/index.ts'
import { Tree } from '../tree/index.ts'
import type { Identity } from '../types.ts'
import { Firing, Watches, type Listener } from '../watches/index.ts'
import { Reads, type Caller } from './index.ts'

class Client implements Listener, Caller<Client> {
  readonly watched = new Set<string>()
  readonly sessionId = 9n
  identities: readonly Identity[] = [{ scheme: 'ip', id: '127.0.0.1' }]
  readonly events: string[] = []
  readonly listener = this

  deliver(frame: Uint8Array): void {
    const reader = new Reader(frame, 20)
    const { type, path } = readWatcherEvent(reader)
    this.events.push(`${type} ${path}`)
  }
}

const SECRET: readonly ACL[] = [{ perms: 31, id: { scheme: 'digest', id: 'bob:hash' } }]
const text = (value: string): Uint8Array => new TextEncoder().encode(value)

class Bench {
  readonly tree = new Tree({ extendedTypes: true, digest: true })
  readonly watches = new Watches<Client>()
  readonly client = new Client()
  readonly out = new Writer()
  readonly #acls = new AclRules({ skipACL: false })
  readonly #reads = new Reads<Client>({
    tree: this.tree,
    acls: this.#acls,
    watches: this.watches,
    firing: new Firing(this.watches, this.#acls),
  })
  #zxid = 0

  constructor() {
    this.create('/a', 'data', OPEN_ACL_UNSAFE)
    this.create('/a/b', null, OPEN_ACL_UNSAFE, true)
    this.create('/s', 'hidden', SECRET)
  }

  create(path: string, data: string | null, acl: readonly ACL[], ephemeral = false): void {
    const zxid = ++this.#zxid
    const header = { sessionId: 9n, cxid: 0, zxid, time: 1000 + zxid }
    this.tree.apply(header, {
      type: OpCode.create,
      path,
      data: data === null ? null : text(data),
      acl,
      ephemeral,
      parentCVersion: -1,
    })
  }

  /** Asks and gives the error and a reader on what was written. */
  ask(op: number, body: (w: Writer) => void): { err: number; body: Reader; length: number } {
    const w = new Writer()
    body(w)
    this.out.reset()
    this.out.int(7)
    const err = this.#reads.answer(op, new Reader(w.take()), this.out, this.client)
    return { err, body: new Reader(this.out.bytes(), 4), length: this.out.length - 4 }
  }

  look(op: number, path: string | null, watch = false): ReturnType<Bench['ask']> {
    return this.ask(op, (w) => {
      w.string(path)
      w.bool(watch)
    })
  }
}

describe('looking at a node', () => {
  it('gives data and stat, children, and the number of all that lies below', () => {
    const bench = new Bench()
    const { err, body } = bench.look(OpCode.getData, '/a')
    expect([err, new TextDecoder().decode(body.buffer()!)]).toEqual([0, 'data'])
    expect(readStat(body)).toMatchObject({ czxid: 1n, pzxid: 2n, cversion: 1, numChildren: 1, dataLength: 4 })
    const children = bench.look(OpCode.getChildren2, '/a').body
    expect([children.int(), children.string(), readStat(children).numChildren]).toEqual([1, 'b', 1])
    const all = ['/', '/a', '/a/b', ''].map((path) =>
      bench.look(OpCode.getAllChildrenNumber, path).body.int(),
    )
    expect(all).toEqual([6, 1, 0, 7])
    expect(bench.look(OpCode.getData, '/a/b').body.buffer()).toBeNull()
  })

  it('fails without a trace in the reply for a node that is absent, hidden or unnamed', () => {
    const bench = new Bench()
    for (const op of [
      OpCode.getData,
      OpCode.exists,
      OpCode.getChildren,
      OpCode.getChildren2,
      OpCode.getACL,
      OpCode.getAllChildrenNumber,
    ]) {
      expect(bench.look(op, '/none', true)).toMatchObject({ err: ErrorCode.NONODE, length: 0 })
      expect(bench.look(op, '/s', true)).toMatchObject({ err: ErrorCode.NOAUTH, length: 0 })
      expect(bench.look(op, null, true)).toMatchObject({ err: ErrorCode.MARSHALLINGERROR, length: 0 })
      expect(bench.ask(op, (w) => w.byte(1))).toMatchObject({ err: ErrorCode.MARSHALLINGERROR, length: 0 })
    }
    // Of all these only exists leaves a watch, on the node that is to come.
    expect([...bench.client.watched]).toEqual(['/none'])
  })

  it('shows a list to those who may read it, its hashes to those who may change it', () => {
    const bench = new Bench()
    const shown = (perms: number, id: string): unknown => {
      bench.client.identities = [{ scheme: 'digest', id }]
      const { err, body } = bench.look(OpCode.getACL, '/s')
      return err === 0 ? [body.int(), body.int(), body.string(), body.string()] : [err, perms]
    }
    expect(shown(0, 'eve:hash')).toEqual([ErrorCode.NOAUTH, 0])
    expect(shown(31, 'bob:hash')).toEqual([1, 31, 'digest', 'bob:hash'])
  })

  it('finds the ephemeral nodes of a session below a prefix, and who it is', () => {
    const bench = new Bench()
    const ephemerals = (prefix: string | null): unknown => {
      const { body } = bench.ask(OpCode.getEphemerals, (w) => w.string(prefix))
      return Array.from({ length: body.int() }, () => body.string())
    }
    expect([null, '', ' / ', '/a', '/b'].map(ephemerals)).toEqual([
      ['/a/b'],
      ['/a/b'],
      ['/a/b'],
      ['/a/b'],
      [],
    ])
    // Blank is what Java's trim drops: everything up to the space, and no other white space of Unicode.
    expect(['\x00', '\t\n', '\u00a0', '/\u00a0', '\u2003'].map(ephemerals)).toEqual([
      ['/a/b'],
      ['/a/b'],
      [],
      [],
      [],
    ])
    const { body } = bench.ask(OpCode.whoAmI, () => {})
    expect([body.int(), body.string(), body.string()]).toEqual([1, 'ip', '127.0.0.1'])
  })
})

describe('a multiRead', () => {
  const ask = (parts: [number, string | null][]): ReturnType<Bench['ask']> =>
    new Bench().ask(OpCode.multiRead, (w) => {
      for (const [type, path] of parts) {
        writeMultiHeader(w, { type, done: false, err: -1 })
        w.string(path)
        w.bool(false)
      }
      writeMultiHeader(w, { type: -1, done: true, err: -1 })
    })

  it('goes on behind a part that fails', () => {
    const { err, body } = ask([
      [OpCode.getData, '/a'],
      [OpCode.getData, '/none'],
      [OpCode.getChildren, '/a'],
      [OpCode.getChildren, '/s'],
    ])
    expect(err).toBe(0)
    expect(readMultiResponse(body)).toMatchObject([
      { type: OpCode.getData, data: text('data') },
      { type: OpCode.error, err: ErrorCode.NONODE },
      { type: OpCode.getChildren, children: ['b'] },
      { type: OpCode.error, err: ErrorCode.NOAUTH },
    ])
  })

  it('that would be answered with more than 64 MiB is refused without a trace', () => {
    const bench = new Bench()
    bench.create('/large', 'x'.repeat(2 ** 20), OPEN_ACL_UNSAFE)
    const large = (count: number): ReturnType<Bench['ask']> =>
      bench.ask(OpCode.multiRead, (w) => {
        for (let i = 0; i < count; i++) {
          writeMultiHeader(w, { type: OpCode.getData, done: false, err: -1 })
          w.string('/large')
          w.bool(false)
        }
        writeMultiHeader(w, { type: -1, done: true, err: -1 })
      })
    expect(large(63).err).toBe(ErrorCode.OK)
    expect(large(64)).toMatchObject({ err: ErrorCode.MARSHALLINGERROR, length: 0 })
  })

  it('with a null path fails as a whole, with what it found before', () => {
    const { err, body } = ask([
      [OpCode.getChildren, '/a'],
      [OpCode.getData, null],
    ])
    expect(err).toBe(ErrorCode.MARSHALLINGERROR)
    expect(readMultiResponse(body)).toMatchObject([{ children: ['b'] }])
  })
})

describe('watches that a client puts back', () => {
  it('tell at once what happened since, and wait for the rest', () => {
    const bench = new Bench()
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
    expect([...bench.client.watched].sort()).toEqual(['/a', '/p', '/r', '/to-come'])
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
      const bench = new Bench()
      const request = { relativeZxid: 1n, ...lists, [missing]: null }
      expect(bench.ask(OpCode.setWatches2, (w) => writeSetWatches2(w, request)).err).toBe(
        ErrorCode.MARSHALLINGERROR,
      )
    }
  })

  it('are refused when a path is missing among those that are looked up, with nothing told or kept', () => {
    for (const list of ['dataWatches', 'existWatches', 'childWatches']) {
      const bench = new Bench()
      const none = { dataWatches: [], existWatches: [], childWatches: [] }
      const request = { relativeZxid: 0n, ...none, [list]: ['/a', null, '/lost'] }
      expect(bench.ask(OpCode.setWatches, (w) => writeSetWatches(w, request)).err).toBe(
        ErrorCode.MARSHALLINGERROR,
      )
      expect([bench.client.events, [...bench.client.watched]]).toEqual([[], []])
    }
  })

  it('can be checked and removed, and modes that do not exist cannot be added', () => {
    const bench = new Bench()
    const one = (op: number, path: string | null, value: number): number =>
      bench.ask(op, (w) => {
        w.string(path)
        w.int(value)
      }).err
    expect([0, 1, 2, -1].map((mode) => one(OpCode.addWatch, '/w', mode))).toEqual([0, 0, -5, -5])
    expect([1, 2, 3, 4, 5, 0, 6].map((type) => one(OpCode.checkWatches, '/w', type))).toEqual([
      -121, -121, 0, 0, 0, -5, -5,
    ])
    expect([4, 4, 3, 3, 0].map((type) => one(OpCode.removeWatches, '/w', type))).toEqual([
      0, -121, 0, -121, -5,
    ])
  })
})
