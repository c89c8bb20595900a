import {
  ErrorCode,
  OpCode,
  Perms,
  Reader,
  readMultiResponse,
  readStat,
  writeMultiHeader,
  type ACL,
  type Writer,
} from '@zabra/protocol'
import { describe, expect, onTestFinished, vi } from 'vitest'
import type { Identity } from '../types.ts'
import { ReadFixture, Client, SECRET, text, type Answer, it } from './testing/read-fixture.ts'

const { getData, exists, getChildren, getChildren2, getACL } = OpCode
const READS = [getData, exists, getChildren, getChildren2, getACL]

describe('ReadHandlers', () => {
  it('replies with data and stat, children, and the number of all descendants', ({ fixture }) => {
    const { err, body } = fixture.look(OpCode.getData, '/a')
    expect([err, new TextDecoder().decode(body.buffer()!)]).toEqual([0, 'data'])
    expect(readStat(body)).toMatchObject({ czxid: 1n, pzxid: 2n, cversion: 1, numChildren: 1, dataLength: 4 })
    const children = fixture.look(OpCode.getChildren2, '/a').body
    expect([children.int(), children.string(), readStat(children).numChildren]).toEqual([1, 'b', 1])
    const all = ['/', '/a', '/a/b', ''].map((path) =>
      fixture.look(OpCode.getAllChildrenNumber, path).body.int(),
    )
    expect(all).toEqual([6, 1, 0, 7])
    expect(fixture.look(OpCode.getData, '/a/b').body.buffer()).toBeNull()
  })

  it('fails with an empty body for an absent node, an unreadable node and a null path', ({ fixture }) => {
    for (const op of [...READS, OpCode.getAllChildrenNumber]) {
      expect(fixture.look(op, '/none', true)).toMatchObject({ err: ErrorCode.NONODE, length: 0 })
      expect(fixture.look(op, '/s', true)).toMatchObject({ err: ErrorCode.NOAUTH, length: 0 })
      expect(fixture.look(op, null, true)).toMatchObject({ err: ErrorCode.MARSHALLINGERROR, length: 0 })
      expect(fixture.ask(op, (w) => w.byte(1))).toMatchObject({ err: ErrorCode.MARSHALLINGERROR, length: 0 })
    }
    // Only exists sets a watch, on the missing node.
    expect([...fixture.client.watchedPaths]).toEqual(['/none'])
  })

  it('shows an ACL to clients with READ, and its hashes only to clients with ADMIN', ({ fixture }) => {
    const entry = (perms: number, scheme: string, id: string): ACL => ({ perms, id: { scheme, id } })
    fixture.create('/list', null, [
      entry(Perms.READ, 'digest', 'reader:hash:more'),
      entry(Perms.ADMIN, 'digest', 'admin:hash'),
      entry(Perms.ALL & ~Perms.READ & ~Perms.ADMIN, 'digest', 'writer:hash'),
      entry(Perms.ALL, 'ip', '10.0.0.1'),
    ])
    const shown = (identity: Identity): unknown => {
      fixture.client.identities = [identity]
      const { err, body, length } = fixture.ask(OpCode.getACL, (w) => w.string('/list'))
      if (err !== 0) return [err, length]
      const ids = Array.from({ length: body.int() }, () => [body.int(), body.string(), body.string()][2])
      expect(readStat(body).czxid).toBe(4n)
      expect(body.remaining).toBe(0)
      return ids
    }
    const masked = ['reader:x', 'admin:x', 'writer:x', '10.0.0.1']
    const full = ['reader:hash:more', 'admin:hash', 'writer:hash', '10.0.0.1']
    expect(shown({ scheme: 'digest', id: 'reader:hash:more' })).toEqual(masked)
    expect(shown({ scheme: 'digest', id: 'admin:hash' })).toEqual(full)
    expect(shown({ scheme: 'ip', id: '10.0.0.1' })).toEqual(full)
    expect(shown({ scheme: 'super', id: '' })).toEqual(full)
    expect(shown({ scheme: 'digest', id: 'writer:hash' })).toEqual([ErrorCode.NOAUTH, 0])
  })

  it('replies to exists with the stat or NONODE, also for an invalid path', ({ fixture }) => {
    const { err, body } = fixture.look(OpCode.exists, '/a')
    expect([err, readStat(body).mzxid, body.remaining]).toEqual([0, 1n, 0])
    expect(fixture.look(OpCode.exists, '/a\0', true)).toMatchObject({
      err: ErrorCode.BADARGUMENTS,
      length: 0,
    })
    for (const path of ['/a/', 'a', '//', '/a/../a'])
      expect(fixture.look(OpCode.exists, path)).toMatchObject({ err: ErrorCode.NONODE, length: 0 })
  })

  it('takes the empty path for the root', ({ fixture }) => {
    for (const op of READS) {
      const root = fixture.look(op, '/')
      expect(root.err).toBe(0)
      expect(fixture.look(op, '')).toMatchObject({ err: 0, bytes: root.bytes })
    }
  })

  it('checks the identities of the request, and none when ACLs are skipped', ({ fixture }) => {
    const bob = new Client()
    bob.identities = SECRET.map(({ id }) => ({ scheme: id.scheme!, id: id.id! }))
    const caller = { listener: fixture.client, sessionId: 9n, identities: bob.identities }
    for (const op of READS) {
      const body = (w: Writer): void => {
        w.string('/s')
        w.bool(false)
      }
      expect(fixture.ask(op, body, caller as Client).err).toBe(0)
      expect(fixture.ask(op, body).err).toBe(ErrorCode.NOAUTH)
      expect(new ReadFixture({ skipACL: true }).ask(op, body).err).toBe(0)
    }
  })

  it('lists the ephemeral nodes of a session below a prefix, and its identities', ({ fixture }) => {
    const ephemerals = (prefix: string | null): unknown => {
      const { body } = fixture.ask(OpCode.getEphemerals, (w) => w.string(prefix))
      return Array.from({ length: body.int() }, () => body.string())
    }
    expect([null, '', ' / ', '/a', '/b'].map(ephemerals)).toEqual([
      ['/a/b'],
      ['/a/b'],
      ['/a/b'],
      ['/a/b'],
      [],
    ])
    // Java's `String.trim` drops characters up to the space, and no other white space of Unicode.
    expect(['\x00', '\t\n', '\u00a0', '/\u00a0', '\u2003'].map(ephemerals)).toEqual([
      ['/a/b'],
      ['/a/b'],
      [],
      [],
      [],
    ])
    expect(['/a/', '/a/b/', 'a'].map(ephemerals)).toEqual([['/a/b'], [], []])
    // Those of another session are not listed.
    const other = fixture.ask(OpCode.getEphemerals, (w) => w.string('/'), new Client(8n))
    expect([other.err, other.bytes]).toEqual([0, '00000000'])
  })

  it('replies to whoAmI with user names without hashes, and other ids as they are', ({ fixture }) => {
    fixture.client.identities = [
      { scheme: 'ip', id: '127.0.0.1' },
      { scheme: 'digest', id: 'bob:hash' },
      { scheme: 'digest', id: 'al:hash' },
      { scheme: 'super', id: '' },
    ]
    const { err, body } = fixture.ask(OpCode.whoAmI, () => {})
    const shown = Array.from({ length: body.int() }, () => [body.string(), body.string()])
    expect([err, ...shown]).toEqual([
      0,
      ['ip', '127.0.0.1'],
      ['digest', 'bob'],
      ['digest', 'al'],
      ['super', ''],
    ])
  })

  it('echoes the path of a sync, and replies to a ping with an empty body', ({ fixture }) => {
    for (const path of ['/a', '/none', '', 'no path', null]) {
      const { err, body } = fixture.ask(OpCode.sync, (w) => w.string(path))
      expect([err, body.string(), body.remaining]).toEqual([0, path, 0])
    }
    expect(fixture.ask(OpCode.ping, () => {})).toMatchObject({ err: 0, length: 0 })
  })
})

describe('a multiRead', () => {
  const ask = (parts: readonly (readonly [number, string | null])[]): Answer =>
    new ReadFixture().ask(OpCode.multiRead, (w) => {
      for (const [type, path] of parts) {
        writeMultiHeader(w, { type, done: false, err: -1 })
        w.string(path)
        if (type === OpCode.delete) w.int(-1)
        else w.bool(false)
      }
      writeMultiHeader(w, { type: -1, done: true, err: -1 })
    })

  it('continues after a failed part', () => {
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

  it('whose reply exceeds 8 MiB fails with an empty body', ({ fixture }) => {
    fixture.create('/large', 'x'.repeat(2 ** 20))
    const large = (count: number): Answer =>
      fixture.ask(OpCode.multiRead, (w) => {
        for (let i = 0; i < count; i++) {
          writeMultiHeader(w, { type: OpCode.getData, done: false, err: -1 })
          w.string('/large')
          w.bool(false)
        }
        writeMultiHeader(w, { type: -1, done: true, err: -1 })
      })
    expect(large(7).err).toBe(ErrorCode.OK)
    expect(large(8)).toMatchObject({ err: ErrorCode.MARSHALLINGERROR, length: 0 })
  })

  it('fails where it compiles lists of more than 20,000 entries, and succeeds once most of them are compiled', ({
    fixture,
  }) => {
    const list = (node: number): ACL[] =>
      Array.from({ length: 1000 }, (_, i) => ({
        perms: Perms.ALL,
        id: { scheme: 'ip', id: i === 0 ? '127.0.0.1' : `10.${node}.${i >> 8}.${i & 255}` },
      }))
    for (let i = 0; i < 25; i++) fixture.create(`/long${i}`, null, list(i))
    const readAll = (): Answer =>
      fixture.ask(OpCode.multiRead, (w) => {
        for (let i = 0; i < 25; i++) {
          writeMultiHeader(w, { type: OpCode.getData, done: false, err: -1 })
          w.string(`/long${i}`)
          w.bool(false)
        }
        writeMultiHeader(w, { type: -1, done: true, err: -1 })
      })
    expect(readAll()).toMatchObject({ err: ErrorCode.MARSHALLINGERROR, length: 0 })
    expect(readAll().err).toBe(ErrorCode.OK)
  })

  it.for([
    ['of 4,096 parts is answered', 4096, '/none', ErrorCode.OK],
    ['of more parts fails', 4097, '/none', ErrorCode.MARSHALLINGERROR],
    ['of less than 2 MiB of names in short lists is answered', 20, '/list', ErrorCode.OK],
    ['of more than that fails', 22, '/list', ErrorCode.MARSHALLINGERROR],
    ['of 32,768 names in short lists is answered', 2048, '/names', ErrorCode.OK],
    ['of more names than that fails', 2049, '/names', ErrorCode.MARSHALLINGERROR],
  ] as const)('%s', ([, count, path, err], { fixture }) => {
    fixture.create('/list', '')
    for (let i = 0; i < 100; i++) fixture.create(`/list/${String(i).padStart(1000, '0')}`, '')
    fixture.create('/names', '')
    for (let i = 0; i < 16; i++) fixture.create(`/names/${i.toString(16)}`, '')
    const answer = fixture.ask(OpCode.multiRead, (w) => {
      for (let i = 0; i < count; i++) {
        writeMultiHeader(w, { type: OpCode.getChildren, done: false, err: -1 })
        w.string(path)
        w.bool(false)
      }
      writeMultiHeader(w, { type: -1, done: true, err: -1 })
    })
    expect(answer.err).toBe(err)
  })

  it.each([
    ['of nothing', [], 0, 'ffffffff01ffffffff'],
    [
      'of one part that fails',
      [[OpCode.getData, '/none']],
      0,
      'ffffffff00ffffff9bffffff9b' + 'ffffffff01ffffffff',
    ],
    [
      'of children',
      [[OpCode.getChildren, '/a']],
      0,
      '0000000800000000000000000100000001' + '62' + 'ffffffff01ffffffff',
    ],
    ['of deletions', [[OpCode.delete, '/a']], ErrorCode.MARSHALLINGERROR, 'ffffffff01ffffffff'],
    [
      'of children and deletions',
      [
        [OpCode.getChildren, '/a'],
        [OpCode.delete, '/a'],
      ],
      ErrorCode.MARSHALLINGERROR,
      '',
    ],
    [
      'with an exists',
      [
        [OpCode.getChildren, '/a'],
        [OpCode.exists, '/a'],
      ],
      ErrorCode.MARSHALLINGERROR,
      '',
    ],
  ] as const)('%s has the bytes that ZooKeeper answers', (_what, parts, err, bytes) => {
    expect(ask(parts)).toMatchObject({ err, bytes })
  })

  it('makes no text of the paths of its parts', ({ fixture }) => {
    const string = vi.spyOn(Reader.prototype, 'string')
    onTestFinished(() => string.mockRestore())
    const { err } = fixture.ask(OpCode.multiRead, (w) => {
      for (const path of ['/a', '/none', '/a', '/b', '/a/b']) {
        writeMultiHeader(w, { type: OpCode.getData, done: false, err: -1 })
        w.string(path)
        w.bool(false)
      }
      writeMultiHeader(w, { type: -1, done: true, err: -1 })
    })
    expect(err).toBe(ErrorCode.OK)
    expect(string).not.toHaveBeenCalled()
  })

  it('sets no watch, even if a part requests one', ({ fixture }) => {
    for (const type of [OpCode.getData, OpCode.getChildren]) {
      const { err } = fixture.ask(OpCode.multiRead, (w) => {
        writeMultiHeader(w, { type, done: false, err: -1 })
        w.string('/a')
        w.bool(true)
        writeMultiHeader(w, { type: -1, done: true, err: -1 })
      })
      expect([err, fixture.watches.size, fixture.client.watchedPaths.size]).toEqual([0, 0, 0])
    }
  })

  it('with a null path fails as a whole, after the results of the parts before', () => {
    const { err, body } = ask([
      [OpCode.getChildren, '/a'],
      [OpCode.getData, null],
    ])
    expect(err).toBe(ErrorCode.MARSHALLINGERROR)
    expect(readMultiResponse(body)).toMatchObject([{ children: ['b'] }])
  })
})
