import { describe, expect, it } from 'vitest'
import { mapConcurrent, NoAuthError, NoNodeError, OperationTimeoutError, UsageError } from './core.ts'
import { client, run, setupEachTest, world } from './testing/setup.ts'
import { bytes, text } from './testing/manual-world.ts'

setupEachTest({})
const all = async <T>(items: AsyncIterable<T>): Promise<T[]> => {
  const list: T[] = []
  for await (const item of items) list.push(item)
  return list
}
/** It may not be listed, but its children may be deleted. */
const closed = [{ perms: 31 & ~1, scheme: 'world', id: 'anyone' }]

describe('a walk', () => {
  it('yields each znode, parents first and children by name', async () => {
    for (const path of ['/t/b/y', '/t/b/x', '/t/a'])
      await run(client.create(path, { data: bytes('12'), parents: true }))
    const met = await run(all(client.walk('/t', { stats: true })))
    expect(met.map(({ path, depth, isLast, children }) => [path, depth, isLast, children])).toEqual([
      ['/t', 0, true, ['a', 'b']],
      ['/t/a', 1, false, []],
      ['/t/b', 1, true, ['x', 'y']],
      ['/t/b/x', 2, false, []],
      ['/t/b/y', 2, true, []],
    ])
    expect(met.at(-1)?.stat).toMatchObject({ dataLength: 2, numChildren: 0 })
  })

  it('stays within maxDepth and skips what filter rejects', async () => {
    for (const path of ['/t/a/x/deep', '/t/b/y']) await run(client.createMissing([path]))
    expect(await run(all(client.walk('/t', { maxDepth: 2, filter: (path) => path !== '/t/b' })))).toEqual([
      '/t',
      '/t/a',
      '/t/a/x',
    ])
  })

  it('prefetches while its consumer works, with at most 64 requests in flight', async () => {
    await run(client.createMissing(['/t']))
    await run(Promise.all(Array.from({ length: 200 }, (_, i) => client.create(`/t/${1000 + i}`))))
    let requested = 0
    const other = await world.client({
      instrumentation: { request: ({ operation }) => void (operation === 'getChildren' && requested++) },
    })
    const steps = other.walk('/t', { stats: true })[Symbol.asyncIterator]()
    await run(steps.next())
    expect(requested).toBe(1)
    await run(steps.next())
    expect(requested).toBe(65)
    await run(all({ [Symbol.asyncIterator]: () => steps }))
    expect(requested).toBe(201)
  })

  it('skips znodes that vanish, but not its start', async () => {
    for (const path of ['/t/a', '/t/b']) await run(client.createMissing([path]))
    const paths: string[] = []
    const walked = (async () => {
      for await (const path of client.walk('/t')) {
        paths.push(path)
        if (path === '/t') await client.delete('/t/a')
      }
    })()
    await run(walked)
    expect(paths).toEqual(['/t', '/t/b'])
    await expect(run(all(client.walk('/none')))).rejects.toBeInstanceOf(NoNodeError)
  })

  it('throws at a znode that may not be listed, unless onUnreadable is given', async () => {
    await run(client.createMissing(['/t/a']))
    await run(client.create('/t/b', { acl: closed }))
    await expect(run(all(client.walk('/t')))).rejects.toBeInstanceOf(NoAuthError)
    const hidden: string[] = []
    const met = await run(all(client.walk('/t', { stats: true, onUnreadable: (path) => hidden.push(path) })))
    expect([met.map(({ path }) => path), hidden]).toEqual([['/t', '/t/a', '/t/b'], ['/t/b']])
    expect(met.at(-1)).toMatchObject({ stat: undefined, children: [] })
  })

  it('throws when one of its requests exceeds requestTimeout', async () => {
    await run(client.createMissing(['/t']))
    world.faults.toClient = () => undefined
    const walked = all(client.walk('/t', { requestTimeoutMs: 700 }))
    walked.catch(() => {})
    await world.advance(699)
    expect(await Promise.race([walked.catch((error: unknown) => error), Promise.resolve('open')])).toBe(
      'open',
    )
    await expect(world.within(10, walked)).rejects.toBeInstanceOf(OperationTimeoutError)
  })
})

describe('deleteTree', () => {
  const plant = async (count: number): Promise<void> => {
    await run(client.createMissing(['/t/a']))
    await run(Promise.all(Array.from({ length: count }, (_, i) => client.create(`/t/a/${1000 + i}`))))
  }

  it('deletes in transactions of batchSize znodes and reports its progress', async () => {
    await plant(8)
    const multis: number[] = []
    const received: string[] = []
    const other = await world.client({
      instrumentation: { request: ({ operation }) => void (operation === 'multi' && multis.push(1)) },
    })
    const deleted = await run(
      other.delete('/t', {
        recursive: true,
        batchSize: 4,
        onFound: (count) => received.push(`found ${count}`),
        onDeleted: (count) => received.push(`deleted ${count}`),
      }),
    )
    expect([deleted, multis.length, received]).toEqual([
      10,
      3,
      ['found 10', 'deleted 4', 'deleted 8', 'deleted 10'],
    ])
    expect(await run(client.exists('/t'))).toBeUndefined()
  })

  it('with includeRoot false deletes everything below the znode', async () => {
    await plant(3)
    expect(await run(client.delete('/t/a', { recursive: true, includeRoot: false }))).toBe(3)
    expect((await run(client.getChildren('/t'))).children).toEqual(['a'])
  })

  it('deletes what other clients create meanwhile, and ignores what they delete', async () => {
    await plant(6)
    const other = await world.client()
    let meddled = false
    const deleted = await world.within(
      10_000,
      client.delete('/t', {
        recursive: true,
        batchSize: 4,
        onFound: () => {
          if (meddled) return
          meddled = true
          void other.create('/t/a/new')
          void other.delete('/t/a/1001')
        },
      }),
    )
    expect(await run(client.exists('/t'))).toBeUndefined()
    expect(deleted).toBe(8)
  })

  it('continues after a transaction whose reply was lost', async () => {
    await plant(6)
    let swallowed = false
    world.faults.toClient = (chunk, connection) => {
      if (!swallowed && multiUnderWay) {
        swallowed = true
        world.clock.immediate(() => connection.cut())
        return undefined
      }
      return chunk
    }
    let multiUnderWay = false
    await world.within(
      20_000,
      client.delete('/t', { recursive: true, onFound: () => (multiUnderWay = true) }),
    )
    expect(swallowed).toBe(true)
    expect(await run(client.exists('/t'))).toBeUndefined()
  })

  it.each(['onFound', 'onDeleted', 'onUnreadable'])('rejects with the error of an async %s', async (name) => {
    await plant(2)
    await run(client.create('/t/b', { acl: closed }))
    const failure = new Error(`the ${name} of the test`)
    const options = { onUnreadable: () => {}, [name]: () => Promise.reject(failure) }
    await expect(run(client.delete('/t', { recursive: true, ...options }))).rejects.toBe(failure)
  })

  it('rejects a batchSize below 1', async () => {
    await expect(run(client.delete('/t', { recursive: true, batchSize: 0 }))).rejects.toBeInstanceOf(
      UsageError,
    )
  })
})

describe('mapConcurrent', () => {
  it('keeps the order of the items and the limit of calls in flight', async () => {
    let underWay = 0
    let most = 0
    const results = mapConcurrent(
      [5, 1, 4, 2, 3],
      async (item) => {
        most = Math.max(most, ++underWay)
        for (let i = 0; i < item; i++) await Promise.resolve()
        underWay--
        return item
      },
      2,
    )
    expect([await all(results), most]).toEqual([[5, 1, 4, 2, 3], 2])
  })

  it('throws a failure when its position is reached', async () => {
    const seen: number[] = []
    const failing = (async () => {
      const work = async (item: number): Promise<number> => {
        if (item === 2) throw new Error('no')
        return item
      }
      for await (const item of mapConcurrent([1, 2, 3], work)) seen.push(item)
    })()
    await expect(failing).rejects.toThrow('no')
    expect(seen).toEqual([1])
  })
})

it('missing znodes are created in their order, and existing ones keep their data', async () => {
  await run(client.create('/app', { data: bytes('kept') }))
  const nodes = [
    { path: '/app' },
    { path: '/app/settings', data: bytes('{}') },
    { path: '/locks/deep', mode: 'container' },
  ] as const
  await run(client.createMissing(nodes))
  await run(client.setData('/app/settings', bytes('changed')))
  await run(client.createMissing(nodes))
  expect(text((await run(client.getData('/app'))).data)).toBe('kept')
  expect(text((await run(client.getData('/app/settings'))).data)).toBe('changed')
  expect(await run(client.exists('/locks/deep'))).toBeDefined()
  await expect(run(client.createMissing([{ path: 'relative' }]))).rejects.toMatchObject({ code: 'USAGE' })
})

it('missing znodes are created whichever reply is lost, by many clients at once', async () => {
  const nodes = ['/x/a', '/x/b', '/x/b/c'].map((path) => ({ path, data: bytes(path) }))
  const other = await world.client()
  for (let delivered = 0; delivered < 12; delivered++) {
    world.loseReply(delivered)
    await world.within(10_000, Promise.all([client.createMissing(nodes), other.createMissing(nodes)]))
    world.endIsolation()
    expect(await world.within(5000, client.exists('/x/b/c'))).toBeDefined()
    await world.within(5000, client.delete('/x', { recursive: true }))
  }
})
