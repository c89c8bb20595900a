import { describe, expect, it } from 'vitest'
import { run, setupEachTest, world } from '../testing/setup.ts'
import { FrameLog } from '../testing/frame-log.ts'
import { bytes, text } from '../testing/manual-world.ts'
import type { Client } from '../client-api.ts'

setupEachTest()

const open = (options = {}): Promise<Client> => world.client({ batchReads: true, ...options })

/** Records what clients send from now on. */
function listen(): FrameLog {
  const log = new FrameLog(world.connections)
  world.faults.toServer = (chunk, connection) => {
    log.take(connection, chunk)
    return chunk
  }
  return log
}

/** Returns the number of reads in each frame. */
const lengths = (log: FrameLog): number[] =>
  log.splice().map((word) => {
    const [name, ...paths] = word.split(' ')
    expect(name).toBe(paths.length === 1 ? 'getData' : 'multiRead')
    return paths.length
  })

const reads = (client: Client, count: number, path = '/a'): Promise<unknown[]> =>
  run(Promise.all(Array.from({ length: count }, () => client.getData(path))))

/** Returns a client, after creating /a, /b and /c with their names as data. */
async function prepared(options = {}): Promise<{ client: Client; log: FrameLog }> {
  const client = await open(options)
  for (const name of ['a', 'b', 'c']) await run(client.create(`/${name}`, { data: bytes(name) }))
  return { client, log: listen() }
}

describe('the reads of one turn', () => {
  it('leave in batches of at most 64 with batchReads', async () => {
    const { client, log } = await prepared()
    await reads(client, 130)
    expect(lengths(log)).toEqual([64, 64, 2])
  })

  it('leave in batches of the requested length', async () => {
    const { client, log } = await prepared({ batchReads: { maxReads: 3 } })
    await reads(client, 7)
    expect(lengths(log)).toEqual([3, 3, 1])
  })

  it.each([undefined, false])('leave one by one when batchReads is %s', async (batchReads) => {
    const { client, log } = await prepared({ batchReads })
    await reads(client, 3)
    expect(lengths(log)).toEqual([1, 1, 1])
  })

  it('leave as plain getData requests when no other read is adjacent', async () => {
    const { client, log } = await prepared()
    await run(client.getData('/a'))
    await run(Promise.all([client.exists('/a'), client.getData('/b'), client.exists('/c')]))
    expect(log.splice()).toEqual(['getData /a', 'exists /a', 'getData /b', 'exists /c'])
  })

  it('do not move across a call between them', async () => {
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

  it('leave in one batch across the chroot clients of a session', async () => {
    const { client, log } = await prepared()
    await run(client.create('/a/x', { data: bytes('x') }))
    log.splice()
    const chrootClient = client.chroot('/a')
    const found = await run(
      Promise.all([client.getData('/b'), chrootClient.getData('/x'), chrootClient.getData('/')]),
    )
    expect(log.splice()).toEqual(['multiRead /b /a/x /a'])
    expect(found.map(({ data }) => text(data))).toEqual(['b', 'x', 'a'])
  })

  it('leave in one batch after waiting for a connection', async () => {
    const { client, log } = await prepared()
    world.lastConnection.cut()
    await world.settle()
    const found = Promise.all([client.getData('/a'), client.getData('/b')])
    await world.within(10_000, found)
    expect(log.splice()).toEqual(['connect again', 'multiRead /a /b'])
  })

  it('do not join a batch of the previous connection', async () => {
    const client = await open()
    const log = listen()
    await run(client.getData('/').catch(() => {}))
    world.lastConnection.cut()
    await world.settle()
    // The frame has the length of the last one on the previous connection, after the same number of writes.
    const calls = Promise.allSettled([client.exists('/'), client.getData('/')])
    const [found, read] = await world.within(10_000, calls)
    expect([found.status, read.status]).toEqual(['fulfilled', 'fulfilled'])
    expect(log.splice()).toEqual(['getData /', 'connect again', 'exists /', 'getData /'])
  })

  it('leave in batches below the maximum request length', async () => {
    const { client, log } = await prepared({ maxRequestBytes: 1024 })
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

describe('replies to batches', () => {
  it('are kept below 256 KiB by the sizes of earlier replies', async () => {
    const { client, log } = await prepared()
    await run(client.create('/large', { data: new Uint8Array(300_000) }))
    await run(client.create('/middle', { data: new Uint8Array(30_000) }))
    await run(client.getData('/large'))
    log.splice()
    await reads(client, 5, '/large')
    expect(lengths(log)).toEqual([1, 1, 1, 1, 1])
    // The expected size adapts slowly to small replies.
    for (let i = 0; i < 400; i++) await run(client.getData('/a'))
    log.splice()
    await run(client.getData('/middle'))
    await reads(client, 17, '/middle')
    expect(lengths(log)).toEqual([1, 8, 8, 1])
  })

  it('that exceed the maximum length are followed by reads one by one', async () => {
    const { client, log } = await prepared({ maxFrameBytes: 40_000 })
    for (const name of ['x', 'y', 'z'])
      await run(client.create(`/${name}`, { data: new Uint8Array(30_000).fill(7) }))
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

it('an invalid batchReads option is rejected with a UsageError', async () => {
  for (const batchReads of [
    1,
    'yes',
    null,
    { maxReads: 1 },
    { maxReads: 2.5 },
    { maxReads: 1025 },
    { maxReads: '64' },
  ]) {
    await expect(
      world.connect({ batchReads: batchReads as never }),
      JSON.stringify(batchReads),
    ).rejects.toThrow(
      'Expected option batchReads to be true, false or { maxReads }, a whole number from 2 to 1024',
    )
  }
  expect((await world.client({ batchReads: {} })).state).toBe('connected')
})
