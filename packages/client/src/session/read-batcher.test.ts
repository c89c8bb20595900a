import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { FrameLog } from '../testing/frame-log.ts'
import { bytes, text, ManualWorld } from '../testing/manual-world.ts'
import type { Client } from '../types.ts'

let world: ManualWorld
beforeEach(async () => {
  world = await ManualWorld.start()
})
afterEach(() => world.end())

const run = <T>(promise: Promise<T>): Promise<T> => world.outcome(promise)
const open = (options = {}): Promise<Client> => world.client({ batchReads: true, ...options })

/** What clients send from now on. */
function listen(): FrameLog {
  const log = new FrameLog(world.connections)
  world.faults.toServer = (chunk, wire) => {
    log.take(wire, chunk)
    return chunk
  }
  return log
}

/** How many reads there are in each frame. */
const lengths = (log: FrameLog): number[] =>
  log.splice().map((word) => {
    const [name, ...paths] = word.split(' ')
    expect(name).toBe(paths.length === 1 ? 'getData' : 'multiRead')
    return paths.length
  })

const reads = (client: Client, count: number, path = '/a'): Promise<unknown[]> =>
  run(Promise.all(Array.from({ length: count }, () => client.getData(path))))

/** A client, and znodes /a, /b and /c whose data are their names. */
async function prepared(options = {}): Promise<{ client: Client; log: FrameLog }> {
  const client = await open(options)
  for (const name of ['a', 'b', 'c']) await run(client.create(`/${name}`, bytes(name)))
  return { client, log: listen() }
}

describe('reads of one turn', () => {
  it('leave together, 64 at most', async () => {
    const { client, log } = await prepared()
    await reads(client, 130)
    expect(lengths(log)).toEqual([64, 64, 2])
  })

  it('leave in groups of the length that is asked for', async () => {
    const { client, log } = await prepared({ batchReads: { most: 3 } })
    await reads(client, 7)
    expect(lengths(log)).toEqual([3, 3, 1])
  })

  it.each([undefined, false])('leave alone when batchReads is %s', async (batchReads) => {
    const { client, log } = await prepared({ batchReads })
    await reads(client, 3)
    expect(lengths(log)).toEqual([1, 1, 1])
  })

  it('that have no neighbours are plain reads', async () => {
    const { client, log } = await prepared()
    await run(client.getData('/a'))
    await run(Promise.all([client.exists('/a'), client.getData('/b'), client.exists('/c')]))
    expect(log.splice()).toEqual(['getData /a', 'exists /a', 'getData /b', 'exists /c'])
  })

  it('stay on their side of whatever was called between them', async () => {
    const { client, log } = await prepared()
    const found = await run(
      Promise.all([
        client.getData('/a'),
        client.getData('/b'),
        client.setData('/a', bytes('1')),
        client.getData('/a'),
        client.getData('/b'),
        client.watchOnce('/b', 'data'),
        client.getData('/c'),
        client.getData('/a'),
        client.sync('/'),
        client.getData('/a'),
        client.getChildren('/a'),
        client.getData('/b'),
        client.getData('/c'),
        client.multiRead([{ op: 'getData', path: '/a' }]),
      ]),
    )
    expect(log.splice()).toEqual([
      'multiRead /a /b',
      'setData /a',
      'multiRead /a /b',
      'getData /b',
      'multiRead /c /a',
      'sync /',
      'getData /a',
      'getChildren2 /a',
      'multiRead /b /c',
      'multiRead /a',
    ])
    const data = [0, 1, 3, 4, 6, 7, 9].map((at) => text((found[at] as { data: Uint8Array }).data))
    expect(data).toEqual(['a', 'b', '1', 'b', 'c', '1', '1'])
  })

  it('of several views of a session leave together', async () => {
    const { client, log } = await prepared()
    await run(client.create('/a/x', bytes('x')))
    log.splice()
    const view = client.chroot('/a')
    const found = await run(Promise.all([client.getData('/b'), view.getData('/x'), view.getData('/')]))
    expect(log.splice()).toEqual(['multiRead /b /a/x /a'])
    expect(found.map(({ data }) => text(data))).toEqual(['b', 'x', 'a'])
  })

  it('that waited for a connection leave together', async () => {
    const { client, log } = await prepared()
    world.lastConnection.cut()
    await world.settle()
    const found = Promise.all([client.getData('/a'), client.getData('/b')])
    await world.within(10_000, found)
    expect(log.splice()).toEqual(['connect again', 'multiRead /a /b'])
  })

  it('join none of the connection before', async () => {
    const client = await open()
    const log = listen()
    await run(client.getData('/').catch(() => {}))
    world.lastConnection.cut()
    await world.settle()
    // As long as what was written last on the other connection, after as many writes.
    const calls = Promise.allSettled([client.exists('/'), client.getData('/')])
    const [found, read] = await world.within(10_000, calls)
    expect([found.status, read.status]).toEqual(['fulfilled', 'fulfilled'])
    expect(log.splice()).toEqual(['getData /', 'connect again', 'exists /', 'getData /'])
  })

  it('leave in groups that a request can hold', async () => {
    const { client, log } = await prepared({ maxRequest: 1024 })
    const outcome = await run(
      Promise.allSettled(Array.from({ length: 9 }, (_, i) => client.getData(`/${'x'.repeat(100)}${i}`))),
    )
    expect(outcome.map((one) => one.status === 'rejected' && one.reason.code)).toEqual(
      Array.from({ length: 9 }, () => 'NO_NODE'),
    )
    expect(Math.max(...lengths(log))).toBeGreaterThan(1)
    const long = Array.from({ length: 9 }, (_, i) => client.getData(`/${'ü'.repeat(490)}${i}`))
    await run(Promise.allSettled(long))
    expect(lengths(log)).toEqual(Array.from({ length: 9 }, () => 1))
  })
})

describe('answers to reads that leave together', () => {
  it('are kept below 256 KiB by what answers had before', async () => {
    const { client, log } = await prepared()
    await run(client.create('/large', new Uint8Array(300_000)))
    await run(client.create('/middle', new Uint8Array(30_000)))
    await run(client.getData('/large'))
    log.splice()
    await reads(client, 5, '/large')
    expect(lengths(log)).toEqual([1, 1, 1, 1, 1])
    // Small ones are believed slowly.
    for (let i = 0; i < 400; i++) await run(client.getData('/a'))
    log.splice()
    await run(client.getData('/middle'))
    await reads(client, 17, '/middle')
    expect(lengths(log)).toEqual([1, 8, 8, 1])
  })

  it('that come out too long all the same are asked for alone', async () => {
    const { client, log } = await prepared({ maxFrame: 40_000 })
    for (const name of ['x', 'y', 'z']) await run(client.create(`/${name}`, new Uint8Array(30_000).fill(7)))
    await reads(client, 100)
    log.splice()
    const found = Promise.all(['/x', '/a', '/y', '/z'].map((path) => client.getData(path, { retry: false })))
    expect((await world.within(10_000, found)).map(({ data }) => data.length)).toEqual([
      30_000, 1, 30_000, 30_000,
    ])
    expect(log.splice()).toEqual([
      'multiRead /x /a /y /z',
      'connect again',
      'getData /x',
      'getData /a',
      'getData /y',
      'getData /z',
    ])
  })
})

it('batchReads that cannot be right give a UsageError', async () => {
  for (const batchReads of [1, 'yes', null, { most: 1 }, { most: 2.5 }, { most: 1025 }, { most: '64' }]) {
    await expect(
      world.connect({ batchReads: batchReads as never }),
      JSON.stringify(batchReads),
    ).rejects.toThrow(
      'Expected option batchReads to be true, false or { most }, a whole number from 2 to 1024',
    )
  }
  expect((await world.client({ batchReads: {} })).state).toBe('connected')
})
