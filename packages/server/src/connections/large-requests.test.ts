import {
  CreateMode,
  ErrorCode,
  EventType,
  OpCode,
  readMultiResponse,
  writeMultiHeader,
  Reader,
  Perms,
  writeCreateRequest,
  writeMultiRequest,
  type ACL,
  type MultiOperation,
} from '@zabra/protocol'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { ChildPathsCursor, DescendantCounter, Tree } from '../core/tree/index.ts'
import type { ServerSettings } from '../settings/index.ts'
import { TestServer, type RawClient } from '../testing/test-server.ts'

const nothing = new Uint8Array(0)

/** Starts a server, counts its turns of the event loop, and calls a function after each of them. */
async function startObserved(settings: Partial<ServerSettings> = {}) {
  const fixture = await TestServer.start({ fourLetterWords: ['*'], ...settings })
  const { clock } = fixture
  const soon = clock.immediate.bind(clock)
  let turns = 0
  let look = (): void => {}
  clock.immediate = (action) =>
    soon(() => {
      turns++
      action()
      look()
    })
  return { fixture, turns: () => turns, afterEach: (given: () => void) => (look = given) }
}

async function createChildren(
  fixture: TestServer,
  client: RawClient,
  count: number,
  flags = 0,
): Promise<void> {
  client.create(1, '/top')
  for (let i = 0; i < count; i++) client.create(2 + i, `/top/${i}`, flags)
  await fixture.untilIdle()
  client.frames.length = 0
}

/** Creates `count` TTL nodes with names from 1 on. The last of them and two more expire at once, the others after a day. */
async function startWithTtlNodes(count: number) {
  const made = await startObserved({ containerCheckIntervalMs: 1000 })
  const client = await made.fixture.connect({ timeout: 40_000 })
  for (let i = 1; i < count + 3; i++) client.createTtl(i, `/${i}`, i < count ? 100_000_000n : 1n)
  await made.fixture.untilIdle()
  client.frames.length = 0
  return { ...made, client }
}

/** Returns a function that records whether `other` has got a reply while `client` had none. */
function overlap(client: RawClient, other: RawClient): () => boolean {
  let seen = false
  return () => (seen ||= other.frames.length > 0 && client.frames.length === 0)
}

/** Opens two sessions on a server with `children` znodes. `overlaps`: see `overlap`; `took`: turns since the start. */
async function startPair(children: number) {
  const { fixture, turns, afterEach } = await startObserved()
  const [client, other] = [await fixture.connect(), await fixture.connect()]
  await createChildren(fixture, client, children)
  const overlaps = overlap(client, other)
  afterEach(overlaps)
  const before = turns()
  return { fixture, client, other, overlaps, took: () => turns() - before, afterEach }
}

/**
 * Returns a function to call after each turn. It sends reads of `reader`, one batch after the replies to the one before, until all
 * clients have replies, and five more batches. At most 30 batches are sent before pending promises are resolved.
 */
function readWhileWaiting(clients: readonly RawClient[], reader: RawClient, look: () => number): () => void {
  let [after, expected, budget] = [0, 0, 30]
  return () => {
    if (reader.frames.length < expected || budget === 0) return
    if (clients.every(({ frames }) => frames.length > 0)) after++
    if (after >= 5) return
    expected += look()
    if (--budget === 0) queueMicrotask(() => (budget = 30))
  }
}

const names = (body: Reader): string[] => Array.from({ length: body.int() }, () => body.string()!)

const sets = (count: number, last: string): MultiOperation[] =>
  Array.from({ length: count }, (_, i) => ({
    type: OpCode.setData,
    path: i === count - 1 ? last : `/top/${i % 4}`,
    data: new TextEncoder().encode(`value ${i}`),
    version: -1,
  }))

describe('a large read', () => {
  it('of children takes several turns, does not delay other clients, and shows the children at its receipt', async () => {
    const { fixture, client, other, overlaps, took } = await startPair(7000)
    client.read(1, OpCode.getChildren, '/top', true)
    client.read(2, OpCode.exists, '/top')
    other.read(1, OpCode.exists, '/top')
    other.create(2, '/top/later')
    await fixture.untilIdle()
    expect(overlaps()).toBe(true)
    expect(took()).toBeGreaterThan(4)
    const replies = client.replies()
    const order = replies.map(({ xid }) => xid)
    expect(order[0]).toBe(1)
    expect(order.toSorted((a, b) => a - b)).toEqual([-1, 1, 2])
    expect(names(replies[0]!.body)).toEqual(Array.from({ length: 7000 }, (_, i) => `${i}`))
  })

  it('of several znodes by a multiRead takes several turns, and shows them all at its receipt', async () => {
    const { fixture, client, other, overlaps, took } = await startPair(7000)
    const look = (type: typeof OpCode.getData | typeof OpCode.getChildren, path: string): MultiOperation =>
      ({ type, path, watch: false }) as MultiOperation
    const { getChildren, getData } = OpCode
    const first = [look(getChildren, '/top'), look(getData, '/none'), look(getChildren, '/top/0')]
    const more = [look(getChildren, '/top'), look(getData, '/top/1')]
    client.ask(1, OpCode.multiRead, (w) => writeMultiRequest(w, [...first, ...more]))
    client.read(2, OpCode.exists, '/top')
    other.read(1, OpCode.exists, '/top')
    other.create(2, '/top/later')
    other.set(3, '/top/1', 'new')
    await fixture.untilIdle()
    expect(overlaps()).toBe(true)
    expect(took()).toBeGreaterThan(7)
    const [reply, next] = client.replies()
    expect([reply!.xid, reply!.err, next!.xid]).toEqual([1, 0, 2])
    const children = Array.from({ length: 7000 }, (_, i) => `${i}`)
    expect(readMultiResponse(reply!.body)).toMatchObject([
      { type: getChildren, children },
      { type: OpCode.error, err: ErrorCode.NONODE },
      { type: getChildren, children: [] },
      { type: getChildren, children },
      { type: getData, stat: { version: 0 } },
    ])
  })

  it('of long data is sent over several turns, and shows them as they were although they are changed meanwhile', async () => {
    const { fixture, client, other, overlaps } = await startPair(1)
    const old = 'o'.repeat(900_000)
    other.set(1, '/top/0', old)
    await fixture.untilIdle()
    other.frames.length = 0
    const parts = Array.from({ length: 6 }, () => ({ type: OpCode.getData, path: '/top/0', watch: false }))
    client.batch(() => {
      client.ask(1, OpCode.multiRead, (w) => writeMultiRequest(w, parts as MultiOperation[]))
      client.read(2, OpCode.getData, '/top/0')
      client.read(3, OpCode.exists, '/top')
    })
    other.set(2, '/top/0', 'n'.repeat(900_000))
    other.delete(3, '/top/0')
    await fixture.untilIdle()
    expect(overlaps()).toBe(true)
    expect(other.replies().map(({ err }) => err)).toEqual([0, 0])
    const replies = client.replies()
    expect(replies.map(({ xid }) => xid)).toEqual([1, 2, 3])
    const texts = readMultiResponse(replies[0]!.body).map(
      (part) => 'data' in part && new TextDecoder().decode(part.data!),
    )
    expect(texts.map((text) => text === old)).toEqual(Array.from({ length: 6 }, () => true))
  })

  it('of few children or ephemerals with long names takes several turns', async () => {
    const { fixture, client, other, took, afterEach } = await startPair(0)
    const long = Array.from({ length: 30 }, (_, i) => `${10 + i}${'n'.repeat(30_000)}`)
    for (const [i, name] of long.entries()) client.create(100 + i, `/top/${name}`, CreateMode.EPHEMERAL)
    await fixture.untilIdle()
    const list = { type: OpCode.getChildren, path: '/top', watch: false } as const
    const reads: readonly [string, (xid: number) => void][] = [
      ['getChildren', (xid) => client.read(xid, OpCode.getChildren, '/top', false)],
      ['getEphemerals', (xid) => client.ask(xid, OpCode.getEphemerals, (w) => w.string('/top'))],
      ['multiRead', (xid) => client.ask(xid, OpCode.multiRead, (w) => writeMultiRequest(w, [list, list]))],
    ]
    for (const [name, read] of reads) {
      client.frames.length = other.frames.length = 0
      const before = took()
      const isOverlapping = overlap(client, other)
      afterEach(isOverlapping)
      read(1)
      other.read(1, OpCode.exists, '/top')
      await fixture.untilIdle()
      expect([name, isOverlapping(), took() - before > 2]).toEqual([name, true, true])
      const [{ err, body }] = client.replies() as [ReturnType<typeof client.replies>[number]]
      expect(err).toBe(0)
      if (name === 'getChildren') expect(names(body)).toEqual(long)
      else if (name === 'getEphemerals') expect(names(body)).toEqual(long.map((one) => `/top/${one}`))
      else expect(readMultiResponse(body)).toMatchObject([{ children: long }, { children: long }])
    }
  })

  it('by a multiRead fails at a malformed part with the results before that part', async () => {
    const { fixture, client } = await startPair(7000)
    client.ask(1, OpCode.multiRead, (w) => {
      for (const path of ['/top', null]) {
        writeMultiHeader(w, { type: OpCode.getChildren, done: false, err: -1 })
        w.string(path)
        w.bool(false)
      }
      writeMultiHeader(w, { type: -1, done: true, err: -1 })
    })
    await fixture.untilIdle()
    const { err, body } = client.replies()[0]!
    expect(err).toBe(ErrorCode.MARSHALLINGERROR)
    const results = readMultiResponse(body)
    expect(results.map((one) => 'children' in one && one.children?.length)).toEqual([7000])
  })

  it('is cancelled when its client disconnects', async () => {
    const { fixture, client } = await startPair(7000)
    client.read(1, OpCode.getChildren, '/top')
    client.ask(2, OpCode.getAllChildrenNumber, (w) => w.string('/top'))
    client.connection.destroy()
    await fixture.untilIdle()
    expect(fixture.server.stats().connections).toBe(1)
  })

  it.each<[string, number, { prototype: { close(): void } }]>([
    ['children', OpCode.getChildren, ChildPathsCursor],
    ['a number of nodes', OpCode.getAllChildrenNumber, DescendantCounter],
  ])(
    'of %s closes its cursor when its reply is complete and when its client disconnects',
    async (_, type, kind) => {
      const { fixture, client, other, afterEach } = await startPair(30_000)
      const done = vi.spyOn(kind.prototype, 'close')
      onTestFinished(() => done.mockRestore())
      client.read(1, type, '/top')
      expect(await client.received()).toEqual(['1:0'])
      expect(done).toHaveBeenCalledOnce()
      other.read(1, type, '/top')
      afterEach(() => other.connection.destroy())
      await fixture.untilIdle()
      expect(other.frames).toEqual([])
      expect(done).toHaveBeenCalledTimes(2)
    },
  )

  it('of own ephemeral nodes, or of a count of descendants, takes several turns', async () => {
    const { fixture, turns } = await startObserved()
    const client = await fixture.connect()
    await createChildren(fixture, client, 30_000)
    const own = await fixture.connect()
    for (let i = 0; i < 5000; i++) own.create(i, `/top/own ${i}`, CreateMode.EPHEMERAL)
    await fixture.untilIdle()
    own.frames.length = 0
    const before = turns()
    own.ask(1, OpCode.getEphemerals, (w) => w.string('/top/own 4'))
    await fixture.untilIdle()
    expect(turns() - before).toBeGreaterThan(2)
    expect(names(own.replies()[0]!.body)).toHaveLength(1111)
    own.ask(1, OpCode.getAllChildrenNumber, (w) => w.string('/top'))
    await fixture.untilIdle()
    expect(own.replies()[0]!.body.int()).toBe(35_000)
  })

  it('of own ephemeral nodes looks at few of them in a turn, and shows those at its receipt', async () => {
    const { fixture, turns, afterEach } = await startObserved()
    const [own, other] = [await fixture.connect(), await fixture.connect()]
    for (let i = 0; i < 7000; i++) own.create(i, `/own ${i}`, CreateMode.EPHEMERAL)
    await fixture.untilIdle()
    own.frames.length = 0
    const pathOf = vi.spyOn(Tree.prototype, 'pathOf')
    onTestFinished(() => pathOf.mockRestore())
    let most = 0
    afterEach(() => {
      most = Math.max(most, pathOf.mock.calls.length)
      pathOf.mockClear()
    })
    const before = turns()
    own.ask(1, OpCode.getEphemerals, (w) => w.string('/'))
    other.delete(1, '/own 6999')
    await fixture.untilIdle()
    expect(turns() - before).toBeGreaterThan(4)
    expect(names(own.replies()[0]!.body)).toHaveLength(7000)
    expect(most).toBeLessThan(2100)
  })

  it('that restores watches is checked over several turns, as a whole before any watch is set', async () => {
    const { fixture, turns, afterEach } = await startObserved()
    const client = await fixture.connect()
    const skipBuffer = vi.spyOn(Reader.prototype, 'skipBuffer')
    onTestFinished(() => skipBuffer.mockRestore())
    let most = 0
    afterEach(() => {
      most = Math.max(most, skipBuffer.mock.calls.length)
      skipBuffer.mockClear()
    })
    const restore = (last: string | null): void =>
      client.ask(-8, OpCode.setWatches, (w) => {
        w.longNumber(10_000)
        w.int(0)
        w.int(20_000)
        for (let i = 1; i < 20_000; i++) w.string(`/absent ${i}`)
        w.string(last)
        w.int(0)
      })
    const before = turns()
    restore(null)
    await fixture.untilIdle()
    expect(client.replies().map(({ err }) => err)).toEqual([ErrorCode.MARSHALLINGERROR])
    expect(turns() - before).toBeGreaterThan(3)
    client.create(1, '/absent 1')
    restore('/absent')
    await fixture.untilIdle()
    // The event is of the second request: the first one has set no watch.
    expect(client.replies().map(({ xid, err }) => [xid, err])).toEqual([
      [1, 0],
      [-1, 0],
      [-8, 0],
    ])
    expect(most).toBeLessThan(6000)
  })

  it('that restores few watches takes several turns where the nodes have long access control lists', async () => {
    const { fixture, turns } = await startObserved()
    const client = await fixture.connect()
    const longList = (node: number): ACL[] =>
      Array.from({ length: 1000 }, (_, i) => ({
        perms: Perms.ALL,
        id: { scheme: 'ip', id: `10.${node}.${i >> 8}.${i & 255}` },
      }))
    for (let i = 0; i < 10; i++)
      client.ask(i, OpCode.create, (w) =>
        writeCreateRequest(w, { path: `/${i}`, data: null, acl: longList(i), flags: 0 }),
      )
    await fixture.untilIdle()
    client.frames.length = 0
    const before = turns()
    client.ask(-8, OpCode.setWatches, (w) => {
      w.longNumber(10_000)
      w.int(0)
      w.int(10)
      for (let i = 0; i < 10; i++) w.string(`/${i}`)
      w.int(0)
    })
    await fixture.untilIdle()
    expect(client.takeReceived()).toEqual(['-8:0'])
    expect(turns() - before).toBeGreaterThan(9)
  })

  it('that restores watches sends the missed events before its reply, and does not delay other clients', async () => {
    const { fixture, turns, afterEach } = await startObserved()
    const [client, other] = [await fixture.connect(), await fixture.connect()]
    await createChildren(fixture, client, 3)
    let answered = -1
    afterEach(() => {
      if (other.frames.length > 0 && answered === -1) answered = client.frames.length
    })
    const before = turns()
    client.ask(-8, OpCode.setWatches, (w) => {
      w.longNumber(10_000)
      w.int(9000)
      for (let i = 0; i < 9000; i++) w.string(`/top/${i}`)
      w.int(0)
      w.int(0)
    })
    client.set(1, '/top/0', 'new')
    other.read(1, OpCode.exists, '/top')
    await fixture.untilIdle()
    expect(answered).toBe(0)
    expect(turns() - before).toBeGreaterThan(4)
    const received = client.takeReceived()
    expect(received).toHaveLength(8997 + 3)
    expect(
      received.slice(0, 8997).every((one) => one.startsWith(`event ${EventType.NodeDeleted} /top/`)),
    ).toBe(true)
    expect(received.slice(8997)).toEqual(['-8:0', `event ${EventType.NodeDataChanged} /top/0`, '1:0'])
  })
})

describe('a large transaction', () => {
  it('that closes a session is prepared and applied in several turns, and is visible whole or not at all', async () => {
    const { fixture, turns, afterEach } = await startObserved()
    const [owner, reader, writer] = [
      await fixture.connect(),
      await fixture.connect(),
      await fixture.connect(),
    ]
    await createChildren(fixture, writer, 3)
    for (let i = 0; i < 1500; i++) owner.create(i, `/top/own ${i}`, CreateMode.EPHEMERAL)
    await fixture.untilIdle()
    owner.frames.length = 0
    const look = (): number => {
      reader.read(1, OpCode.getChildren, '/top')
      return 1
    }
    afterEach(readWhileWaiting([owner, writer], reader, look))
    const before = turns()
    owner.ask(5, OpCode.closeSession)
    writer.set(1, '/top/1', 'behind')
    writer.create(2, '/top/own 7')
    await fixture.untilIdle()
    expect(turns() - before).toBeGreaterThan(10)
    const seen = reader.replies().map(({ body }) => body.int())
    expect(seen.filter((count) => count === 1503).length).toBeGreaterThan(5)
    expect([...new Set(seen)].toSorted((a, b) => a - b)).toEqual([3, 4, 1503])
    expect(seen.lastIndexOf(1503)).toBeLessThan(seen.indexOf(3))
    expect(owner.takeReceived()).toEqual(['5:0'])
    expect(writer.takeReceived()).toEqual(['1:0', '2:0'])
  })

  it('that closes a session with few ephemerals at long paths takes several turns', async () => {
    const { fixture, client, other, took } = await startPair(0)
    for (let i = 0; i < 30; i++)
      client.create(100 + i, `/top/${i}${'n'.repeat(30_000)}`, CreateMode.EPHEMERAL)
    await fixture.untilIdle()
    client.frames.length = other.frames.length = 0
    const before = took()
    client.ask(1, OpCode.closeSession)
    await fixture.untilIdle()
    // Prepared, applied and forgotten in 30 steps each, of which three fit into a turn at most.
    expect(took() - before).toBeGreaterThan(25)
    other.frames.length = 0
    other.read(1000, OpCode.getChildren, '/top')
    await fixture.untilIdle()
    expect(names(other.replies()[0]!.body)).toEqual([])
  })

  it('of a multi is visible whole or not at all, and later requests of its session get their replies after it', async () => {
    const { fixture, client, other: reader, afterEach } = await startPair(4)
    const paths = ['/top/0', '/top/3']
    const look = (): number => {
      for (const path of paths) reader.read(1, OpCode.getData, path)
      return paths.length
    }
    afterEach(readWhileWaiting([client], reader, look))
    client.ask(1, OpCode.multi, (w) => writeMultiRequest(w, sets(2000, '/top/3')))
    client.read(2, OpCode.getData, '/top/3')
    client.sync(3)
    await fixture.untilIdle()
    const texts = reader.replies().map(({ body }) => new TextDecoder().decode(body.buffer()!))
    expect(texts.length).toBeGreaterThan(20)
    expect(new Set(texts)).toEqual(new Set(['', 'value 1996', 'value 1999']))
    for (let i = 0; i < texts.length; i += 2) expect(texts[i] === '').toBe(texts[i + 1] === '')
    expect(client.takeReceived()).toEqual(['1:0', '2:0', '3:0'])
  })

  it('of a multi whose last part fails changes nothing', async () => {
    const { fixture, client, other } = await startPair(4)
    client.ask(1, OpCode.multi, (w) => writeMultiRequest(w, sets(2000, '/none')))
    other.set(1, '/top/2', 'other')
    client.read(2, OpCode.getData, '/top/0')
    await fixture.untilIdle()
    const [results, read] = client.replies()
    const errors = readMultiResponse(results!.body).map((result) => 'err' in result && result.err)
    expect(errors).toEqual([...Array<number>(1999).fill(0), ErrorCode.NONODE])
    expect(read!.body.buffer()).toEqual(nothing)
    expect(other.takeReceived()).toEqual(['1:0'])
  })

  it('of a multi with a failing part has RUNTIMEINCONSISTENCY for every part after it', async () => {
    const { fixture, client } = await startPair(4)
    client.ask(1, OpCode.multi, (w) => writeMultiRequest(w, [...sets(700, '/none'), ...sets(1300, '/top/1')]))
    await fixture.untilIdle()
    const errors = readMultiResponse(client.replies()[0]!.body).map((result) => 'err' in result && result.err)
    const untried = Array<number>(1300).fill(ErrorCode.RUNTIMEINCONSISTENCY)
    expect(errors).toEqual([...Array<number>(699).fill(0), ErrorCode.NONODE, ...untried])
  })

  it('of a multi gets its reply after that of an earlier large read, with the result of each part', async () => {
    const { fixture, client } = await startPair(7000)
    client.read(1, OpCode.getChildren, '/top', true)
    client.ask(2, OpCode.multi, (w) => writeMultiRequest(w, sets(5000, '/top/3')))
    client.read(3, OpCode.exists, '/top')
    await fixture.untilIdle()
    const [children, results, exists] = client.replies()
    expect([children, results, exists].map((reply) => reply?.xid)).toEqual([1, 2, 3])
    const versions = readMultiResponse(results!.body).map((result) => 'stat' in result && result.stat.version)
    expect(versions).toEqual(
      Array.from({ length: 5000 }, (_, i) => (i === 4999 ? 1250 : Math.floor(i / 4) + 1)),
    )
  })

  it('is applied by a server that is closed meanwhile, if it has a reply', async () => {
    const { fixture, client } = await startPair(4)
    client.ask(1, OpCode.multi, (w) => writeMultiRequest(w, sets(2000, '/top/3')))
    client.create(2, '/behind')
    await Promise.resolve()
    await fixture.stop()
    await fixture.restart()
    const again = await fixture.connect()
    again.read(1, OpCode.getData, '/top/3')
    await fixture.untilIdle()
    const kept = new TextDecoder().decode(again.replies()[0]!.body.buffer()!)
    // A write with a reply survives the restart.
    expect(client.takeReceived().includes('1:0') ? kept : 'value 1999').toBe('value 1999')
  })

  it('of a new quota counts the subtree in several turns', async () => {
    const { fixture, turns } = await startObserved()
    const client = await fixture.connect()
    await createChildren(fixture, client, 20_000)
    const before = turns()
    for (const path of ['', '/top', '/top/zookeeper_limits', '/top/zookeeper_stats'].slice(1))
      client.create(1, `/zookeeper/quota${path}`, 0, 'count=-1,bytes=-1')
    client.read(4, OpCode.getData, '/zookeeper/quota/top/zookeeper_stats')
    await fixture.untilIdle()
    expect(turns() - before).toBeGreaterThan(4)
    expect(new TextDecoder().decode(client.replies()[3]!.body.buffer()!)).toBe('count=20001,bytes=0')
  })
})

describe('a server does long work in several turns of the event loop', () => {
  it('for wchp with thousands of watches', async () => {
    const { fixture, turns } = await startObserved()
    const client = await fixture.connect()
    for (let i = 0; i < 5000; i++) client.read(i, OpCode.exists, `/${i}`, true)
    await fixture.untilIdle()
    const before = turns()
    const text = await fixture.command('wchp')
    expect(turns() - before).toBeGreaterThan(9)
    expect(text.split('\n')).toHaveLength(5000 * 2 + 2)
  })

  it('for dump with hundreds of sessions and connections', async () => {
    const { fixture, turns } = await startObserved({ maxClientCnxns: 0 })
    for (let i = 0; i < 450; i++) await fixture.connect()
    const before = turns()
    const text = await fixture.command('dump')
    expect(turns() - before).toBeGreaterThan(12)
    expect(text).toMatch(
      /^SessionTracker dump:\nSession Sets \(1\)\/\(450\):\n450 expire at .*:\n(\t0x.*\n){450}eph/,
    )
    expect(text).toMatch(/Connections Sets \(1\)\/\(451\):\n451 expire at .*:\n(\tip: .*\n){451}/)
  })

  it('for the check of thousands of TTL nodes of which three are expired', async () => {
    const { fixture, turns, client } = await startWithTtlNodes(6000)
    const { nodes } = fixture.server.stats()
    const before = turns()
    fixture.clock.advance(1000)
    await fixture.untilIdle()
    expect(turns() - before).toBeGreaterThan(5)
    expect(fixture.server.stats().nodes).toBe(nodes - 3)
    for (const i of [5999, 6000, 6001, 6002]) client.read(i, OpCode.exists, `/${i}`)
    expect(await client.received()).toEqual([
      '5999:0',
      ...[6000, 6001, 6002].map((i) => `${i}:${ErrorCode.NONODE}`),
    ])
  })

  it('for the check of TTL nodes, and keeps those that are created or get children meanwhile', async () => {
    const { fixture, client, afterEach } = await startWithTtlNodes(2500)
    let changed = false
    afterEach(() => {
      if (changed) return
      changed = true
      client.delete(1, '/2500')
      client.createTtl(2, '/new', 100_000_000n)
      client.create(3, '/1/child')
    })
    fixture.clock.advance(1000)
    await fixture.untilIdle()
    client.frames.length = 0
    for (const [i, path] of ['/1', '/new', '/2500', '/2501'].entries()) client.read(i, OpCode.exists, path)
    await fixture.untilIdle()
    expect(changed).toBe(true)
    expect(client.takeReceived()).toEqual(['0:0', '1:0', `2:${ErrorCode.NONODE}`, `3:${ErrorCode.NONODE}`])
  })

  it('for the check of TTL nodes, which ends when the server is closed', async () => {
    const { fixture, afterEach } = await startWithTtlNodes(2500)
    const { nodes } = fixture.server.stats()
    let stopping: Promise<void> | undefined
    afterEach(() => {
      stopping ??= fixture.stop()
    })
    fixture.clock.advance(1000)
    await stopping
    await fixture.restart()
    expect(fixture.server.stats().nodes).toBe(nodes)
  })

  it('for the removal of the watches of a disconnected client', async () => {
    const { fixture, turns } = await startObserved()
    const client = await fixture.connect()
    for (let i = 0; i < 5000; i++) client.read(i, OpCode.exists, `/${i}`, true)
    await fixture.untilIdle()
    const before = turns()
    client.connection.destroy()
    await fixture.untilIdle()
    expect(turns() - before).toBeGreaterThan(2)
    expect(fixture.server.stats().watches).toBe(0)
  })

  it('for the expiry of hundreds of sessions', async () => {
    const { fixture, turns } = await startObserved()
    for (let i = 0; i < 350; i++) (await fixture.connect({ timeout: 4000 })).connection.destroy()
    await fixture.untilIdle()
    const before = turns()
    fixture.clock.advance(7000)
    await fixture.untilIdle()
    expect(turns() - before).toBeGreaterThan(3)
    expect(fixture.server.stats().sessions).toBe(0)
  })
})
