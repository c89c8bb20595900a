import {
  CreateMode,
  ErrorCode,
  EventType,
  OpCode,
  readMultiResponse,
  writeMultiHeader,
  writeMultiRequest,
  type MultiOperation,
} from '@zabra/protocol'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { ChildPathsCursor, DescendantCounter } from '../core/tree/index.ts'
import type { ServerSettings } from '../settings/index.ts'
import { TestServer, type RawClient } from '../testing/test-server.ts'

const nothing = new Uint8Array(0)

/** A world in which something is looked at after each turn. */
async function watched(settings: Partial<ServerSettings> = {}): Promise<{
  world: TestServer
  turns: () => number
  afterEach: (look: () => void) => void
}> {
  const world = await TestServer.start({ fourLetterWords: ['*'], ...settings })
  const { clock } = world
  const soon = clock.immediate.bind(clock)
  let turns = 0
  let look = (): void => {}
  clock.immediate = (action) =>
    soon(() => {
      turns++
      action()
      look()
    })
  return { world, turns: () => turns, afterEach: (given) => (look = given) }
}

async function session(world: TestServer, timeout = 10_000): Promise<RawClient> {
  const client = await world.client({ timeout })
  client.takeConnectResponse()
  return client
}

async function plant(world: TestServer, client: RawClient, count: number, flags = 0): Promise<void> {
  client.create(1, '/top')
  for (let i = 0; i < count; i++) client.create(2 + i, `/top/${i}`, flags)
  await world.untilIdle()
  client.frames.length = 0
}

/** Asks for a node with a time to live, in milliseconds. */
function createFor(client: RawClient, xid: number, path: string, ms: bigint): void {
  client.ask(xid, OpCode.createTTL, (w) => {
    w.string(path)
    w.buffer(nothing)
    w.int(1)
    w.int(31)
    w.string('world')
    w.string('anyone')
    w.int(CreateMode.PERSISTENT_WITH_TTL)
    w.long(ms)
  })
}

/** So many nodes that live long, named from 1 on, and three behind them that do not. */
async function manyWithLives(
  count: number,
): Promise<Awaited<ReturnType<typeof watched>> & { client: RawClient }> {
  const made = await watched({ containerCheckIntervalMs: 1000 })
  const client = await session(made.world, 40_000)
  for (let i = 1; i < count + 3; i++) createFor(client, i, `/${i}`, i < count ? 100_000_000n : 1n)
  await made.world.untilIdle()
  client.frames.length = 0
  return { ...made, client }
}

/** Asks something small of `other` and tells whether it was answered while `client` was still waiting. */
function overlap(client: RawClient, other: RawClient): () => boolean {
  let seen = false
  return () => (seen ||= other.frames.length > 0 && client.frames.length === 0)
}

/** Two sessions above so many children, whether the second is answered while the first waits, and the turns from now on. */
async function sideBySide(children: number): Promise<{
  world: TestServer
  client: RawClient
  other: RawClient
  overlaps: () => boolean
  took: () => number
}> {
  const { world, turns, afterEach } = await watched()
  const [client, other] = [await session(world), await session(world)]
  await plant(world, client, children)
  const overlaps = overlap(client, other)
  afterEach(overlaps)
  const before = turns()
  return { world, client, other, overlaps, took: () => turns() - before }
}

/**
 * Looks after a turn, once what it looked for before has come, until all were answered, and some times more. Between its turns
 * the promises have to be followed, so it looks so many times only before they are.
 */
function whileWaiting(clients: readonly RawClient[], reader: RawClient, look: () => number): () => void {
  let [after, expected, budget] = [0, 0, 30]
  return () => {
    if (reader.frames.length < expected || budget === 0) return
    if (clients.every(({ frames }) => frames.length > 0)) after++
    if (after >= 5) return
    expected += look()
    if (--budget === 0) queueMicrotask(() => (budget = 30))
  }
}

const names = (client: RawClient): string[] => {
  const { body } = client.replies()[0]!
  return Array.from({ length: body.int() }, () => body.string()!)
}

const sets = (count: number, last: string): MultiOperation[] =>
  Array.from({ length: count }, (_, i) => ({
    type: OpCode.setData,
    path: i === count - 1 ? last : `/top/${i % 4}`,
    data: new TextEncoder().encode(`value ${i}`),
    version: -1,
  }))

describe('a large read', () => {
  it('of children takes several turns, others are answered meanwhile, and it shows the moment when it was asked', async () => {
    const { world, client, other, overlaps, took } = await sideBySide(7000)
    client.read(1, OpCode.getChildren, '/top', true)
    client.read(2, OpCode.exists, '/top')
    other.read(1, OpCode.exists, '/top')
    other.create(2, '/top/later')
    await world.untilIdle()
    expect(overlaps()).toBe(true)
    expect(took()).toBeGreaterThan(4)
    const order = client.frames.map((frame) => new DataView(frame.buffer, frame.byteOffset).getInt32(0))
    expect(order[0]).toBe(1)
    expect(order.toSorted((a, b) => a - b)).toEqual([-1, 1, 2])
    expect(names(client)).toEqual(Array.from({ length: 7000 }, (_, i) => `${i}`))
  })

  it('of many things takes several turns, and all of it is of the moment when it was asked', async () => {
    const { world, client, other, overlaps, took } = await sideBySide(7000)
    const look = (type: typeof OpCode.getData | typeof OpCode.getChildren, path: string): MultiOperation =>
      ({ type, path, watch: false }) as MultiOperation
    const { getChildren, getData } = OpCode
    const asked = [look(getChildren, '/top'), look(getData, '/none'), look(getChildren, '/top/0')]
    const more = [look(getChildren, '/top'), look(getData, '/top/1')]
    client.ask(1, OpCode.multiRead, (w) => writeMultiRequest(w, [...asked, ...more]))
    client.read(2, OpCode.exists, '/top')
    other.read(1, OpCode.exists, '/top')
    other.create(2, '/top/later')
    other.set(3, '/top/1', 'new')
    await world.untilIdle()
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

  it('of many things fails with what it found before a part that is none', async () => {
    const { world } = await watched()
    const client = await session(world)
    await plant(world, client, 7000)
    client.ask(1, OpCode.multiRead, (w) => {
      for (const path of ['/top', null]) {
        writeMultiHeader(w, { type: OpCode.getChildren, done: false, err: -1 })
        w.string(path)
        w.bool(false)
      }
      writeMultiHeader(w, { type: -1, done: true, err: -1 })
    })
    await world.untilIdle()
    const { err, body } = client.replies()[0]!
    expect(err).toBe(ErrorCode.MARSHALLINGERROR)
    const results = readMultiResponse(body)
    expect(results.map((one) => 'children' in one && one.children?.length)).toEqual([7000])
  })

  it('is given up when its client goes', async () => {
    const { world } = await watched()
    const client = await session(world)
    await plant(world, client, 7000)
    client.read(1, OpCode.getChildren, '/top')
    client.ask(2, OpCode.getAllChildrenNumber, (w) => w.string('/top'))
    client.connection.destroy()
    await world.untilIdle()
    expect(world.server.stats().connections).toBe(0)
  })

  it.each<[string, number, { prototype: { close(): void } }]>([
    ['children', OpCode.getChildren, ChildPathsCursor],
    ['a number of nodes', OpCode.getAllChildrenNumber, DescendantCounter],
  ])(
    'of %s is not followed by the tree any more once it is made, or its client is gone',
    async (_, type, kind) => {
      const { world, afterEach } = await watched()
      const [client, other] = [await session(world), await session(world)]
      await plant(world, client, 30_000)
      const done = vi.spyOn(kind.prototype, 'close')
      onTestFinished(() => done.mockRestore())
      client.read(1, type, '/top')
      await world.untilIdle()
      expect(client.takeReceived()).toEqual(['1:0'])
      expect(done).toHaveBeenCalledOnce()
      other.read(1, type, '/top')
      afterEach(() => other.connection.destroy())
      await world.untilIdle()
      expect(other.frames).toEqual([])
      expect(done).toHaveBeenCalledTimes(2)
    },
  )

  it('of own ephemerals, or of a number of nodes, takes several turns and is right', async () => {
    const { world, turns } = await watched()
    const client = await session(world)
    await plant(world, client, 30_000)
    const own = await session(world)
    for (let i = 0; i < 5000; i++) own.create(i, `/top/own ${i}`, CreateMode.EPHEMERAL)
    await world.untilIdle()
    own.frames.length = 0
    const before = turns()
    own.ask(1, OpCode.getEphemerals, (w) => w.string('/top/own 4'))
    await world.untilIdle()
    expect(turns() - before).toBeGreaterThan(2)
    expect(names(own)).toHaveLength(1111)
    own.ask(1, OpCode.getAllChildrenNumber, (w) => w.string('/top'))
    await world.untilIdle()
    expect(own.replies()[0]!.body.int()).toBe(35_000)
  })

  it('that sets watches again tells what was missed before its reply, while others are answered', async () => {
    const { world, turns, afterEach } = await watched()
    const [client, other] = [await session(world), await session(world)]
    await plant(world, client, 3)
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
    await world.untilIdle()
    expect(answered).toBe(0)
    expect(turns() - before).toBeGreaterThan(4)
    const heard = client.takeReceived()
    expect(heard).toHaveLength(8997 + 3)
    expect(heard.slice(0, 8997).every((one) => one.startsWith(`event ${EventType.NodeDeleted} /top/`))).toBe(
      true,
    )
    expect(heard.slice(8997)).toEqual(['-8:0', `event ${EventType.NodeDataChanged} /top/0`, '1:0'])
  })
})

describe('a large transaction', () => {
  it('that ends a session is prepared and applied in several turns, and is seen whole or not at all', async () => {
    const { world, turns, afterEach } = await watched()
    const [owner, reader, writer] = [await session(world), await session(world), await session(world)]
    await plant(world, writer, 3)
    for (let i = 0; i < 1500; i++) owner.create(i, `/top/own ${i}`, CreateMode.EPHEMERAL)
    await world.untilIdle()
    owner.frames.length = 0
    const look = (): number => {
      reader.read(1, OpCode.getChildren, '/top')
      return 1
    }
    afterEach(whileWaiting([owner, writer], reader, look))
    const before = turns()
    owner.ask(5, OpCode.closeSession)
    writer.set(1, '/top/1', 'behind')
    writer.create(2, '/top/own 7')
    await world.untilIdle()
    expect(turns() - before).toBeGreaterThan(10)
    const seen = reader.replies().map(({ body }) => body.int())
    expect(seen.filter((count) => count === 1503).length).toBeGreaterThan(5)
    expect([...new Set(seen)].toSorted((a, b) => a - b)).toEqual([3, 4, 1503])
    expect(seen.lastIndexOf(1503)).toBeLessThan(seen.indexOf(3))
    expect(owner.takeReceived()).toEqual(['5:0'])
    expect(writer.takeReceived()).toEqual(['1:0', '2:0'])
  })

  it('that is a multi is seen whole or not at all, and what its session asks behind it comes behind it', async () => {
    const { world, afterEach } = await watched()
    const [client, reader] = [await session(world), await session(world)]
    await plant(world, client, 4)
    const paths = ['/top/0', '/top/3']
    const look = (): number => {
      for (const path of paths) reader.read(1, OpCode.getData, path)
      return paths.length
    }
    afterEach(whileWaiting([client], reader, look))
    client.ask(1, OpCode.multi, (w) => writeMultiRequest(w, sets(2000, '/top/3')))
    client.read(2, OpCode.getData, '/top/3')
    client.ask(3, OpCode.sync, (w) => w.string('/'))
    await world.untilIdle()
    const texts = reader.replies().map(({ body }) => new TextDecoder().decode(body.buffer()!))
    expect(texts.length).toBeGreaterThan(20)
    expect(new Set(texts)).toEqual(new Set(['', 'value 1996', 'value 1999']))
    for (let i = 0; i < texts.length; i += 2) expect(texts[i] === '').toBe(texts[i + 1] === '')
    expect(client.takeReceived()).toEqual(['1:0', '2:0', '3:0'])
  })

  it('of which the last part fails changes nothing', async () => {
    const { world } = await watched()
    const client = await session(world)
    await plant(world, client, 4)
    const other = await session(world)
    client.ask(1, OpCode.multi, (w) => writeMultiRequest(w, sets(2000, '/none')))
    other.set(1, '/top/2', 'other')
    client.read(2, OpCode.getData, '/top/0')
    await world.untilIdle()
    const [results, read] = client.replies()
    const errors = readMultiResponse(results!.body).map((result) => 'err' in result && result.err)
    expect(errors).toEqual([...Array<number>(1999).fill(0), ErrorCode.NONODE])
    expect(read!.body.buffer()).toEqual(nothing)
    expect(other.takeReceived()).toEqual(['1:0'])
  })

  it('of which a part fails has all behind it left untried', async () => {
    const { world } = await watched()
    const client = await session(world)
    await plant(world, client, 4)
    client.ask(1, OpCode.multi, (w) => writeMultiRequest(w, [...sets(700, '/none'), ...sets(1300, '/top/1')]))
    await world.untilIdle()
    const errors = readMultiResponse(client.replies()[0]!.body).map((result) => 'err' in result && result.err)
    const untried = Array<number>(1300).fill(ErrorCode.RUNTIMEINCONSISTENCY)
    expect(errors).toEqual([...Array<number>(699).fill(0), ErrorCode.NONODE, ...untried])
  })

  it('is answered behind a large read that is being made, with the result of each part', async () => {
    const { world, client } = await sideBySide(7000)
    client.read(1, OpCode.getChildren, '/top', true)
    client.ask(2, OpCode.multi, (w) => writeMultiRequest(w, sets(5000, '/top/3')))
    client.read(3, OpCode.exists, '/top')
    await world.untilIdle()
    const [children, results, exists] = client.replies()
    expect([children, results, exists].map((reply) => reply?.xid)).toEqual([1, 2, 3])
    const versions = readMultiResponse(results!.body).map((result) => 'stat' in result && result.stat.version)
    expect(versions).toEqual(
      Array.from({ length: 5000 }, (_, i) => (i === 4999 ? 1250 : Math.floor(i / 4) + 1)),
    )
  })

  it('is done and answered by a server that is told to stop meanwhile', async () => {
    const { world } = await watched()
    const client = await session(world)
    await plant(world, client, 4)
    client.ask(1, OpCode.multi, (w) => writeMultiRequest(w, sets(2000, '/top/3')))
    client.create(2, '/behind')
    await Promise.resolve()
    await world.stop()
    await world.restart()
    const again = await session(world)
    again.read(1, OpCode.getData, '/top/3')
    await world.untilIdle()
    const kept = new TextDecoder().decode(again.replies()[0]!.body.buffer()!)
    // Whoever was answered finds it again.
    expect(client.takeReceived().includes('1:0') ? kept : 'value 1999').toBe('value 1999')
  })

  it('that sets a quota counts in several turns', async () => {
    const { world, turns } = await watched()
    const client = await session(world)
    await plant(world, client, 20_000)
    const before = turns()
    for (const path of ['', '/top', '/top/zookeeper_limits', '/top/zookeeper_stats'].slice(1))
      client.create(1, `/zookeeper/quota${path}`, 0, 'count=-1,bytes=-1')
    client.read(4, OpCode.getData, '/zookeeper/quota/top/zookeeper_stats')
    await world.untilIdle()
    expect(turns() - before).toBeGreaterThan(4)
    expect(new TextDecoder().decode(client.replies()[3]!.body.buffer()!)).toBe('count=20001,bytes=0')
  })
})

describe('what comes in large numbers', () => {
  it('is told in several turns: watches by path', async () => {
    const { world, turns } = await watched()
    const client = await session(world)
    for (let i = 0; i < 5000; i++) client.read(i, OpCode.exists, `/${i}`, true)
    await world.untilIdle()
    const before = turns()
    const text = await world.command('wchp')
    expect(turns() - before).toBeGreaterThan(9)
    expect(text.split('\n')).toHaveLength(5000 * 2 + 2)
  })

  it('is told in several turns: sessions and connections, which are sorted before the first is told', async () => {
    const { world, turns } = await watched({ maxClientCnxns: 0 })
    for (let i = 0; i < 450; i++) await session(world)
    const before = turns()
    const text = await world.command('dump')
    expect(turns() - before).toBeGreaterThan(12)
    expect(text).toMatch(
      /^SessionTracker dump:\nSession Sets \(1\)\/\(450\):\n450 expire at .*:\n(\t0x.*\n){450}eph/,
    )
    expect(text).toMatch(/Connections Sets \(1\)\/\(451\):\n451 expire at .*:\n(\tip: .*\n){451}/)
  })

  it('is looked at in several turns: nodes with a time to live, of which few are over', async () => {
    const { world, turns, client } = await manyWithLives(6000)
    const { nodes } = world.server.stats()
    const before = turns()
    world.clock.advance(1000)
    await world.untilIdle()
    expect(turns() - before).toBeGreaterThan(5)
    expect(world.server.stats().nodes).toBe(nodes - 3)
    for (const i of [5999, 6000, 6001, 6002]) client.read(i, OpCode.exists, `/${i}`)
    await world.untilIdle()
    expect(client.takeReceived()).toEqual([
      '5999:0',
      ...[6000, 6001, 6002].map((i) => `${i}:${ErrorCode.NONODE}`),
    ])
  })

  it('is looked at while it changes: one that is new in the place of another stays', async () => {
    const { world, client, afterEach } = await manyWithLives(2500)
    let changed = false
    afterEach(() => {
      if (changed) return
      changed = true
      client.ask(1, OpCode.delete, (w) => {
        w.string('/2500')
        w.int(-1)
      })
      createFor(client, 2, '/new', 100_000_000n)
      client.create(3, '/1/child')
    })
    world.clock.advance(1000)
    await world.untilIdle()
    client.frames.length = 0
    for (const [i, path] of ['/1', '/new', '/2500', '/2501'].entries()) client.read(i, OpCode.exists, path)
    await world.untilIdle()
    expect(changed).toBe(true)
    expect(client.takeReceived()).toEqual(['0:0', '1:0', `2:${ErrorCode.NONODE}`, `3:${ErrorCode.NONODE}`])
  })

  it('is not looked at any more once the server stops', async () => {
    const { world, afterEach } = await manyWithLives(2500)
    const { nodes } = world.server.stats()
    let stopping: Promise<void> | undefined
    afterEach(() => {
      stopping ??= world.stop()
    })
    world.clock.advance(1000)
    await stopping
    await world.restart()
    expect(world.server.stats().nodes).toBe(nodes)
  })

  it('goes in several turns: the watches of a client that is gone', async () => {
    const { world, turns } = await watched()
    const client = await session(world)
    for (let i = 0; i < 5000; i++) client.read(i, OpCode.exists, `/${i}`, true)
    await world.untilIdle()
    const before = turns()
    client.connection.destroy()
    await world.untilIdle()
    expect(turns() - before).toBeGreaterThan(2)
    expect(world.server.stats().watches).toBe(0)
  })

  it('ends in several turns: sessions that expire together', async () => {
    const { world, turns } = await watched()
    for (let i = 0; i < 350; i++) (await session(world, 4000)).connection.destroy()
    await world.untilIdle()
    const before = turns()
    world.clock.advance(7000)
    await world.untilIdle()
    expect(turns() - before).toBeGreaterThan(3)
    expect(world.server.stats().sessions).toBe(0)
  })
})
