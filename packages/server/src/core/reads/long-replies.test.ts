import {
  ErrorCode,
  EventType,
  OpCode,
  OPEN_ACL_UNSAFE,
  readMultiResponse,
  readStat,
  Reader,
  Writer,
  writeMultiHeader,
  writeSetWatches2,
} from '@zabra/protocol'
import { describe, expect, vi } from 'vitest'
import type { ChunkedReply } from './index.ts'
import { it, ReadFixture, SECRET, text } from './testing/read-fixture.ts'

/** The most entries of a reply that is written at once. */
const AT_ONCE = 2000

interface Written {
  readonly err: number
  readonly body: Reader
  readonly turns: number
}

/** Writes a reply in its steps, after four bytes of another one, and changes the tree between them. */
function write(reply: number | ChunkedReply, between = (): void => {}): Written {
  if (typeof reply === 'number') throw new Error(`Expected a reply in steps, got ${reply}`)
  const writer = new Writer()
  writer.int(7)
  const steps = reply.write(writer)
  let turns = 1
  let step = steps.next()
  for (; step.done !== true; step = steps.next(), turns++) between()
  reply.dispose?.()
  const body = new Reader(writer.take())
  if (body.int() !== 7) throw new Error('What was written before has changed')
  return { err: step.value ?? 0, body, turns }
}

const strings = (reader: Reader): string[] =>
  Array.from({ length: reader.int() }, () => reader.string() ?? 'null')

const names = (count: number): string[] => Array.from({ length: count }, (_, i) => `n${10_000 + i}`)

/** A tree with so many children of `/p`, which are ephemeral nodes of the client. */
function withChildren(count: number): ReadFixture {
  const fixture = new ReadFixture({ empty: true })
  fixture.create('/p', null)
  for (const name of names(count)) fixture.create(`/p/${name}`, null, OPEN_ACL_UNSAFE, true)
  return fixture
}

const path = (name: string, watch?: boolean) => (w: Writer) => {
  w.string(name)
  if (watch !== undefined) w.bool(watch)
}

/** Counts what a tree notifies of its changes. */
function listeners({ tree }: ReadFixture): () => number {
  const open = new Set<unknown>()
  const add = tree.addTraversal.bind(tree)
  vi.spyOn(tree, 'addTraversal').mockImplementation((traversal) => {
    const release = add(traversal)
    open.add(traversal)
    return () => {
      open.delete(traversal)
      return release()
    }
  })
  return () => open.size
}

describe('a list of more than 2,000 children', () => {
  it('is written in steps, as it was at the request, with the stat of then', () => {
    const fixture = withChildren(2 * AT_ONCE + 1)
    const open = listeners(fixture)
    const reply = fixture.begin(OpCode.getChildren2, path('/p', false))
    expect(open()).toBe(1)
    let changes = 0
    const { err, body, turns } = write(reply, () => {
      fixture.create(`/p/later${changes}`, null)
      fixture.apply({ type: OpCode.delete, path: `/p/${names(5000)[changes++]}` })
    })
    expect([err, strings(body)]).toEqual([0, names(2 * AT_ONCE + 1)])
    expect(readStat(body)).toMatchObject({ numChildren: 2 * AT_ONCE + 1, cversion: 2 * AT_ONCE + 1 })
    expect([body.remaining, open(), turns]).toEqual([0, 0, 6])
    expect((reply as ChunkedReply).hasNotifications).toBe(false)
  })

  it('has no stat for getChildren, and is written at once up to 2,000', () => {
    const fixture = withChildren(AT_ONCE)
    expect(fixture.begin(OpCode.getChildren, path('/p', false))).toBe(0)
    fixture.create('/p/one-more', null)
    const { body } = write(fixture.begin(OpCode.getChildren, path('/p', false)))
    expect([strings(body).length, body.remaining]).toEqual([AT_ONCE + 1, 0])
  })

  it('is written in the same steps at once where the caller asks for that', () => {
    const fixture = withChildren(AT_ONCE + 1)
    const open = listeners(fixture)
    const { err, body } = fixture.look(OpCode.getChildren, '/p')
    expect([err, strings(body).length, body.remaining, open()]).toEqual([0, AT_ONCE + 1, 0, 0])
  })

  it('has a step for each 256 KiB of names', () => {
    const fixture = new ReadFixture({ empty: true })
    fixture.create('/p', null)
    const long = names(6).map((name) => name + 'x'.repeat(100_000))
    for (const name of long) fixture.create(`/p/${name}`, null)
    const { body, turns } = write(fixture.begin(OpCode.getChildren, path('/p', false)))
    expect(strings(body)).toEqual(long)
    // Three names are collected in a turn and three are written in one.
    expect(turns).toBe(5)
  })
})

describe('ephemeral nodes of a session', () => {
  it('beyond 2,000 are listed in steps, as they were at the request, by their prefix', () => {
    const fixture = withChildren(AT_ONCE + 1)
    fixture.create('/other', null, OPEN_ACL_UNSAFE, true)
    const open = listeners(fixture)
    const reply = fixture.begin(OpCode.getEphemerals, path('/p'))
    const { err, body } = write(reply, () => {
      if (fixture.tree.has('/p/later')) return
      fixture.create('/p/later', null, OPEN_ACL_UNSAFE, true)
      fixture.apply({ type: OpCode.delete, path: '/p/n10000' })
    })
    expect([err, strings(body), body.remaining]).toEqual([
      0,
      names(AT_ONCE + 1).map((name) => `/p/${name}`),
      0,
    ])
    expect([open(), (reply as ChunkedReply).hasNotifications]).toEqual([0, false])
  })

  it('up to 2,000, and up to 256 Ki characters of paths, are listed at once', () => {
    expect(withChildren(AT_ONCE).begin(OpCode.getEphemerals, path('/'))).toBe(0)
    const fixture = new ReadFixture({ empty: true })
    const create = (characters: number): void =>
      fixture.create(`/${'x'.repeat(characters - 1)}`, null, OPEN_ACL_UNSAFE, true)
    create(2 ** 17)
    create(2 ** 17 - 1)
    fixture.create('/', null)
    expect(fixture.begin(OpCode.getEphemerals, path('/'))).toBe(0)
    fixture.create('/yz', null, OPEN_ACL_UNSAFE, true)
    const { body } = write(fixture.begin(OpCode.getEphemerals, path('/')))
    expect(strings(body).map(({ length }) => length)).toEqual([2 ** 17, 2 ** 17 - 1, 3])
  })

  it.each(['', '/', ' / ', '\0\t ', ' ', null])('are all listed for the prefix %j', (prefix) => {
    const fixture = new ReadFixture()
    const { body } = fixture.ask(OpCode.getEphemerals, (w) => w.string(prefix))
    expect(strings(body)).toEqual(['/a/b'])
  })

  it('leave out the node that names the user of the session, and the nodes beside the prefix', () => {
    const fixture = new ReadFixture()
    for (const node of ['/zookeeper/sessions', '/zookeeper/sessions-of-mine']) fixture.create(node, null)
    for (const node of ['/zookeeper/sessions/1', '/zookeeper/sessions-of-mine/1'])
      fixture.create(node, null, OPEN_ACL_UNSAFE, true)
    const listed = (prefix: string): string[] => strings(fixture.ask(OpCode.getEphemerals, path(prefix)).body)
    expect(listed('/')).toEqual(['/a/b', '/zookeeper/sessions-of-mine/1'])
    expect(listed('/zookeeper')).toEqual(['/zookeeper/sessions-of-mine/1'])
    expect([listed(' /a'), listed(' x/')]).toEqual([[], []])
  })
})

it('more than 2,000 descendants are counted in steps, as they were at the request', () => {
  const fixture = withChildren(AT_ONCE)
  expect(fixture.begin(OpCode.getAllChildrenNumber, path('/p'))).toBe(0)
  for (let i = 0; i < 25_000; i++) fixture.create(`/p/n10000/${i}`, null)
  // That of the root is known.
  for (const root of ['', '/']) expect(fixture.begin(OpCode.getAllChildrenNumber, path(root))).toBe(0)
  const open = listeners(fixture)
  const reply = fixture.begin(OpCode.getAllChildrenNumber, path('/p'))
  const { err, body, turns } = write(reply, () => {
    fixture.create('/p/later', null)
    fixture.apply({ type: OpCode.delete, path: '/p/n10001' })
  })
  expect([err, body.int(), body.remaining, turns, open()]).toEqual([0, AT_ONCE + 25_000, 0, 2, 0])
  expect((reply as ChunkedReply).hasNotifications).toBe(false)
})

describe('a multiRead of long lists', () => {
  const parts =
    (...asked: readonly (readonly [number, string])[]) =>
    (w: Writer) => {
      for (const [type, node] of asked) {
        writeMultiHeader(w, { type, done: false, err: -1 })
        w.string(node)
        w.bool(false)
      }
      writeMultiHeader(w, { type: -1, done: true, err: -1 })
    }

  it('has each part in its place, and walks a node once however often it is listed', () => {
    const fixture = withChildren(AT_ONCE + 1)
    fixture.create('/s', 'hidden', SECRET)
    fixture.create('/short', 'data')
    fixture.create('/short/a', null)
    for (const name of names(AT_ONCE + 1)) fixture.create(`/s/${name}`, null)
    const open = listeners(fixture)
    const reply = fixture.begin(
      OpCode.multiRead,
      parts(
        [OpCode.getChildren, '/short'],
        [OpCode.getChildren, '/p'],
        [OpCode.getData, '/p'],
        [OpCode.getChildren, '/none'],
        [OpCode.getChildren, '/s'],
        [OpCode.getChildren, '/p'],
        [OpCode.getData, '/short'],
        [OpCode.getData, ''],
      ),
    )
    expect([open(), (reply as ChunkedReply).hasNotifications]).toEqual([1, false])
    const { err, body } = write(reply)
    const children = names(AT_ONCE + 1)
    expect([err, readMultiResponse(body)]).toMatchObject([
      0,
      [
        { type: OpCode.getChildren, children: ['a'] },
        { type: OpCode.getChildren, children },
        { type: OpCode.getData, data: null },
        { type: OpCode.error, err: ErrorCode.NONODE },
        { type: OpCode.error, err: ErrorCode.NOAUTH },
        { type: OpCode.getChildren, children },
        { type: OpCode.getData, data: text('data') },
        { type: OpCode.getData, data: new Uint8Array(0) },
      ],
    ])
    expect([body.remaining, open()]).toEqual([0, 0])
  })

  it('of long names is written in steps too, and one of 2,000 children at once', () => {
    const fixture = withChildren(AT_ONCE)
    expect(fixture.begin(OpCode.multiRead, parts([OpCode.getChildren, '/p']))).toBe(0)
    const long = names(3).map((name) => name + 'x'.repeat(140_000))
    fixture.create('/long', null)
    for (const name of long) fixture.create(`/long/${name}`, null)
    const { body } = write(
      fixture.begin(OpCode.multiRead, parts([OpCode.getData, '/p'], [OpCode.getChildren, '/long'])),
    )
    expect(readMultiResponse(body)).toMatchObject([
      { type: OpCode.getData },
      { type: OpCode.getChildren, children: long },
    ])
  })

  it('that fails after a long list walks no node any more', () => {
    const fixture = withChildren(AT_ONCE + 1)
    const open = listeners(fixture)
    const reply = fixture.begin(OpCode.multiRead, (w) => {
      parts([OpCode.getChildren, '/p'])(w)
      // A part whose path is null, in place of the end.
      const bytes = w.take()
      w.raw(bytes.subarray(0, bytes.length - 9))
      writeMultiHeader(w, { type: OpCode.getData, done: false, err: -1 })
      w.string(null)
      w.bool(false)
      writeMultiHeader(w, { type: -1, done: true, err: -1 })
    })
    const { err, body } = write(reply)
    expect([err, readMultiResponse(body).length, open()]).toEqual([ErrorCode.MARSHALLINGERROR, 1, 0])
  })
})

describe('setWatches', () => {
  const none = {
    dataWatches: [],
    existWatches: [],
    childWatches: [],
    persistentWatches: [],
    persistentRecursiveWatches: [],
  }
  const restore =
    (lists: Partial<Record<keyof typeof none, readonly (string | null)[]>>, since = 0) =>
    (w: Writer) =>
      writeSetWatches2(w, { relativeZxid: BigInt(since), ...none, ...lists } as Parameters<
        typeof writeSetWatches2
      >[1])

  /** Absent paths that take these bytes, 20 each. */
  const absent = (bytes: number): string[] =>
    Array.from({ length: bytes / 20 }, (_, i) => `/absent-${String(i).padStart(8, '0')}`)
  it('of less than 16 KiB is done at once', ({ fixture }) => {
    // A request without paths has 28 bytes.
    const paths = absent(2 ** 14 - 44)
    expect(fixture.begin(OpCode.setWatches2, restore({ existWatches: paths }))).toBe(0)
    expect(fixture.watches.size).toBe(paths.length)
    const more = restore({ existWatches: absent(2 ** 14 - 24) })
    expect(typeof fixture.begin(OpCode.setWatches2, more)).toBe('object')
  })

  it('of more takes a turn for 500 watches, and for 64 KiB', ({ fixture }) => {
    const few = write(fixture.begin(OpCode.setWatches2, restore({ existWatches: absent(40_000) })))
    expect([few.err, few.body.remaining, few.turns, fixture.watches.size]).toEqual([0, 0, 5, 2000])
    const long = Array.from({ length: 4 }, (_, i) => `/${i}${'x'.repeat(40_000)}`)
    const reply = fixture.begin(OpCode.setWatches2, restore({ dataWatches: long }))
    expect((reply as ChunkedReply).hasNotifications).toBe(true)
    // Two paths are more than 64 KiB.
    expect(write(reply).turns).toBe(3)
    expect(fixture.client.events).toEqual(long.map((at) => `${EventType.NodeDeleted} ${at}`))
  })

  it('takes turns for long access control lists that no check has looked at', ({ fixture }) => {
    const acl = (node: number) =>
      Array.from({ length: 500 }, (_, i) => ({
        perms: 31,
        id: { scheme: 'ip', id: i === 0 ? '127.0.0.1' : `10.${node}.${i >> 8}.${i & 255}` },
      }))
    for (let i = 0; i < 6; i++) fixture.create(`/long${i}`, null, acl(i))
    const paths = Array.from({ length: 6 }, (_, i) => `/long${i}`)
    const ask = restore({ dataWatches: paths }, 1000)
    expect(write(fixture.begin(OpCode.setWatches2, ask)).turns).toBe(4)
    expect(fixture.watches.size).toBe(6)
    expect(write(fixture.begin(OpCode.setWatches2, ask)).turns).toBe(1)
  })

  it('waits while a transaction is applied in steps, unless it is done at once', ({ fixture }) => {
    const lists = { existWatches: absent(20_000) }
    const reply = fixture.begin(OpCode.setWatches2, restore(lists)) as ChunkedReply
    const steps = reply.write(new Writer())
    steps.next()
    fixture.tree.beginApply()
    for (let i = 0; i < 5; i++) steps.next()
    expect(fixture.watches.size).toBe(500)
    fixture.tree.endApply(fixture.tree.lastZxid + 1)
    for (let i = 0; i < 5; i++) steps.next()
    expect(fixture.watches.size).toBe(1000)
    fixture.tree.beginApply()
    expect(fixture.ask(OpCode.setWatches2, restore({ existWatches: absent(60_000) }))).toMatchObject({
      err: 0,
      length: 0,
    })
    expect(fixture.watches.size).toBe(3000)
  })

  it('checks all of a long request, 5,000 paths in a turn, before it sets a watch', ({ fixture }) => {
    const paths = absent(240_020)
    const bad = [...paths, null]
    const reply = fixture.begin(OpCode.setWatches2, restore({ childWatches: bad }))
    expect(write(reply)).toMatchObject({ err: ErrorCode.MARSHALLINGERROR, turns: 3 })
    const cut = fixture.begin(OpCode.setWatches2, (w) => {
      restore({ existWatches: paths })(w)
      const bytes = w.take()
      w.raw(bytes.subarray(0, bytes.length - 30))
    })
    expect(write(cut).err).toBe(ErrorCode.MARSHALLINGERROR)
    expect([fixture.watches.size, fixture.client.events]).toEqual([0, []])
  })

  it('takes the empty path for the root', ({ fixture }) => {
    const { err } = fixture.ask(OpCode.setWatches2, restore({ existWatches: [''] }))
    expect([err, fixture.client.events]).toEqual([0, [`${EventType.NodeCreated} `]])
  })
})

it('an error of the server itself ends no read as a malformed request', ({ fixture }) => {
  vi.spyOn(fixture.tree, 'find').mockImplementation(() => {
    throw new Error('broken')
  })
  expect(() => fixture.begin(OpCode.getChildren, path('/a', false))).toThrow('broken')
})
