import { describe, expect, it } from 'vitest'
import { ClosedError, SessionExpiredError } from '../errors.ts'
import { client, other, run, setupEachTest, world } from '../testing/setup.ts'
import { FrameLog } from '../testing/frame-log.ts'
import { bytes, text } from '../testing/manual-world.ts'
import type { WatchedEvent } from '../types.ts'

setupEachTest({}, {})

const words = (events: WatchedEvent[]): string[] =>
  events.map((event) => ('path' in event ? `${event.type} ${event.path}` : `${event.type} ${event.reason}`))
/** Returns the number of watches on the server, of all clients. */
const kept = (): number => world.server.stats().watches

it('a watch on an own ephemeral znode ends with the closed client, and reports no deletion', async () => {
  const client = await world.client()
  await run(client.create('/e', { mode: 'ephemeral' }))
  const watch = await run(client.watchOnce('/e', 'data'))
  const events = world.collect(await run(client.watch('/e')))
  await run(client.close())
  await expect(watch.fired).rejects.toMatchObject({ code: 'CLOSED' })
  expect(events.filter(({ type }) => type === 'nodeDeleted')).toEqual([])
})

it.each([
  { kind: 'a one-shot watch', batchReads: false },
  { kind: 'a one-shot watch', batchReads: true },
  { kind: 'a persistent watch', batchReads: true },
  { kind: 'a recursive watch', batchReads: false },
] as const)(
  '$kind fires before a read that was sent before the client closed shows the change (batchReads $batchReads)',
  async ({ kind, batchReads }) => {
    const client = await world.client({ batchReads })
    const connection = world.lastConnection
    await run(client.create('/a', { data: bytes('1') }))
    const happened: string[] = []
    if (kind === 'a one-shot watch') {
      const { fired } = await run(client.watchOnce('/a', 'data'))
      fired.then(
        ({ type }) => happened.push(type),
        () => happened.push('closed'),
      )
    } else {
      const mode = kind === 'a recursive watch' ? 'persistentRecursive' : 'persistent'
      const watcher = await run(client.watch('/a', { mode }))
      void (async () => {
        for await (const event of watcher) happened.push(event.type)
      })()
    }
    const held: Uint8Array[] = []
    world.faults.toServer = (chunk, from) => {
      if (from !== connection) return chunk
      held.push(chunk)
      return undefined
    }
    const reads = ['first', 'second'].map(async (name) => {
      const { data } = await client.getData('/a')
      happened.push(`${name} ${text(data)}`)
    })
    const closed = client.close()
    await run(other.setData('/a', bytes('2')))
    for (const chunk of held) connection.send(chunk)
    await run(Promise.all([...reads, closed]))
    expect(happened).toEqual(['nodeDataChanged', 'first 2', 'second 2'])
  },
)

describe('a one-shot watch', () => {
  it('returns the current data and fires on the next change, once', async () => {
    await run(client.create('/a', { data: bytes('1') }))
    const watch = await run(client.watchOnce('/a', 'data'))
    expect(text(watch.data)).toBe('1')
    await run(other.setData('/a', bytes('2')))
    await run(other.setData('/a', bytes('3')))
    const event = await run(watch.fired)
    expect(event).toMatchObject({ type: 'nodeDataChanged', path: '/a' })
    expect(event.order).toBeGreaterThan(watch.order)
    expect(kept()).toBe(0)
  })

  it('of kind exists fires on creation', async () => {
    const watch = await run(client.watchOnce('/a', 'exists'))
    expect(watch.stat).toBeUndefined()
    await run(other.create('/a'))
    expect(await run(watch.fired)).toMatchObject({ type: 'nodeCreated', path: '/a' })
  })

  it('of kind children fires on a new child and on the deletion of the parent', async () => {
    await run(client.create('/a'))
    const children = await run(client.watchOnce('/a', 'children'))
    expect(children.children).toEqual([])
    await run(other.create('/a/b'))
    expect(await run(children.fired)).toMatchObject({ type: 'nodeChildrenChanged', path: '/a' })
    await run(other.delete('/a/b'))
    const second = await run(client.watchOnce('/a', 'children'))
    await run(other.delete('/a'))
    expect(await run(second.fired)).toMatchObject({ type: 'nodeDeleted', path: '/a' })
  })

  it('is not set when its path does not exist', async () => {
    await expect(run(client.watchOnce('/none', 'data'))).rejects.toMatchObject({ code: 'NO_NODE' })
    expect(kept()).toBe(0)
  })

  it('is removed from the server after close', async () => {
    await run(client.create('/a'))
    const first = await run(client.watchOnce('/a', 'data'))
    const second = await run(client.watchOnce('/a', 'exists'))
    expect(kept()).toBe(1)
    await run(first.close())
    expect(kept()).toBe(1)
    await run(second.close())
    expect(kept()).toBe(0)
    await expect(first.fired).rejects.toThrow(ClosedError)
    await run(first.close())
  })

  it('that is closed leaves another one, whose request is in flight, in place', async () => {
    await run(client.create('/a'))
    const first = await run(client.watchOnce('/a', 'data'))
    const coming = client.watchOnce('/a', 'data')
    const closed = first.close()
    const second = await run(coming)
    await run(closed)
    await run(other.setData('/a', bytes('x')))
    expect(await run(second.fired)).toMatchObject({ type: 'nodeDataChanged' })
  })

  it('is removed when its caller gave up before it was set', async () => {
    await run(client.create('/a'))
    const abort = new AbortController()
    const coming = client.watchOnce('/a', 'data', { signal: abort.signal })
    coming.catch(() => {})
    abort.abort()
    await expect(run(coming)).rejects.toMatchObject({ name: 'AbortError' })
    await world.settle()
    expect(kept()).toBe(0)
  })

  it('fires for a change that happened while disconnected', async () => {
    await run(client.create('/a'))
    const data = await run(client.watchOnce('/a', 'data'))
    const children = await run(client.watchOnce('/a', 'children'))
    const missing = await run(client.watchOnce('/new', 'exists'))
    world.connections[0]!.cut()
    await run(other.setData('/a', bytes('2')))
    await run(other.create('/a/b'))
    await run(other.create('/new'))
    await world.advance(2000)
    expect(words([await run(data.fired), await run(children.fired), await run(missing.fired)])).toEqual([
      'nodeDataChanged /a',
      'nodeChildrenChanged /a',
      'nodeCreated /new',
    ])
  })

  it('that has not fired is set again once, after any number of connection losses', async () => {
    await run(client.create('/a'))
    const watch = await run(client.watchOnce('/a', 'data'))
    for (let i = 0; i < 3; i++) {
      world.lastConnection.cut()
      world.connections[0]!.cut()
      await world.advance(3000)
    }
    expect(kept()).toBe(1)
    await run(other.setData('/a', bytes('2')))
    expect(await run(watch.fired)).toMatchObject({ type: 'nodeDataChanged' })
  })

  it('ends with its session', async () => {
    const watch = await run(client.watchOnce('/a', 'exists'))
    world.refuseConnections()
    for (const connection of world.connections) connection.cut()
    await world.advance(17_000)
    await expect(run(watch.fired)).rejects.toThrow(SessionExpiredError)
    delete world.faults.open
    await world.advance(11_000)
    expect(kept()).toBe(0)
  })
})

describe('a persistent watch', () => {
  it('yields every change of a node and of its children', async () => {
    const watcher = await run(client.watch('/a'))
    const events = world.collect(watcher)
    await run(other.create('/a'))
    await run(other.setData('/a', bytes('1')))
    await run(other.create('/a/b'))
    await run(other.delete('/a/b'))
    await run(other.delete('/a'))
    await world.settle()
    expect(words(events)).toEqual([
      'nodeCreated /a',
      'nodeDataChanged /a',
      'nodeChildrenChanged /a',
      'nodeChildrenChanged /a',
      'nodeDeleted /a',
    ])
    const orders = events.map(({ order }) => order)
    expect(orders).toEqual(orders.toSorted((a, b) => a - b))
  })

  it('of mode persistentRecursive yields every change below, and no nodeChildrenChanged', async () => {
    const watcher = await run(client.watch('/', { mode: 'persistentRecursive' }))
    const events = world.collect(watcher)
    await run(other.create('/a'))
    await run(other.create('/a/b'))
    await run(other.setData('/a/b', bytes('1')))
    await run(other.delete('/a/b'))
    await world.settle()
    expect(words(events)).toEqual([
      'nodeCreated /a',
      'nodeCreated /a/b',
      'nodeDataChanged /a/b',
      'nodeDeleted /a/b',
    ])
  })

  it('gives the zxid of the change', async () => {
    const watcher = await run(client.watch('/a'))
    const events = world.collect(watcher)
    const { stat } = await run(other.create('/a'))
    await world.settle()
    expect(events).toMatchObject([{ zxid: stat.czxid }])
  })

  it('is removed by leaving the loop', async () => {
    const watcher = await run(client.watch('/a'))
    const loop = (async () => {
      for await (const event of watcher) return event
      return undefined
    })()
    await run(other.create('/a'))
    expect(await run(loop)).toMatchObject({ type: 'nodeCreated' })
    await world.settle()
    expect(kept()).toBe(0)
  })

  it('with a slow consumer delays no reply', async () => {
    const watcher = await run(client.watch('/a', { mode: 'persistentRecursive' }))
    const slow: string[] = []
    let goOn = (): void => {}
    void (async () => {
      for await (const event of watcher) {
        slow.push(...words([event]))
        await new Promise<void>((resolve) => (goOn = resolve))
      }
    })()
    const quick = world.collect(await run(client.watch('/a', { mode: 'persistentRecursive' })))
    await run(other.create('/a'))
    await run(client.create('/a/b'))
    await run(client.getData('/a'))
    expect(words(quick)).toEqual(['nodeCreated /a', 'nodeCreated /a/b'])
    expect(slow).toEqual(['nodeCreated /a'])
    goOn()
    await world.settle()
    expect(slow).toEqual(['nodeCreated /a', 'nodeCreated /a/b'])
  })

  it('is shared by all listeners of a path, and removed with the last', async () => {
    const first = await run(client.watch('/a'))
    const one = kept()
    const second = await run(client.watch('/a'))
    expect(kept()).toBe(one)
    await run(first.close())
    expect(kept()).toBe(one)
    const events = world.collect(second)
    await run(other.create('/a'))
    await world.settle()
    expect(events).toHaveLength(1)
    await run(second.close())
    expect(kept()).toBe(0)
  })

  it('yields a resync after each reconnect', async () => {
    const watcher = await run(client.watch('/a'))
    const events = world.collect(watcher)
    world.connections[0]!.cut()
    await run(other.create('/a'))
    await world.advance(2000)
    await run(other.setData('/a', bytes('1')))
    await world.settle()
    expect(words(events)).toEqual(['resync reconnected', 'nodeDataChanged /a'])
  })

  it('continues in a new session after a resync', async () => {
    const watcher = await run(client.watch('/a'))
    const events = world.collect(watcher)
    world.refuseConnections()
    for (const connection of world.connections) connection.cut()
    await world.advance(17_000)
    delete world.faults.open
    await world.advance(11_000)
    await run(other.create('/a'))
    await world.settle()
    expect(words(events)).toEqual(['resync newSession', 'nodeCreated /a'])
  })

  it('replaces unread events by one resync when its buffer overflows', async () => {
    const watcher = await run(client.watch('/a', { buffer: 3 }))
    for (let i = 0; i < 5; i++) {
      await run<unknown>(i === 0 ? other.create('/a') : other.setData('/a', bytes(String(i))))
    }
    const events = world.collect(watcher)
    await world.settle()
    expect(words(events)).toEqual(['resync overflow', 'nodeDataChanged /a'])
  })

  it('ends with the client', async () => {
    const watcher = await run(client.watch('/a'))
    let ended = false
    const loop = (async () => {
      for await (const _event of watcher);
      ended = true
    })()
    await run(client.close())
    await run(loop)
    expect(ended).toBe(true)
  })

  it('and a one-shot watch on the same path do not remove each other', async () => {
    await run(client.create('/a'))
    const lasting = await run(client.watch('/a'))
    const once = await run(client.watchOnce('/a', 'data'))
    await run(once.close())
    const events = world.collect(lasting)
    await run(other.setData('/a', bytes('1')))
    await world.settle()
    expect(words(events)).toEqual(['nodeDataChanged /a'])
  })
})

describe('many watches', () => {
  it('are restored in requests of at most 128 KiB', async () => {
    const long = 'x'.repeat(900)
    const watches = await run(
      Promise.all(Array.from({ length: 400 }, (_, i) => client.watchOnce(`/${long}${i}`, 'exists'))),
    )
    const log = new FrameLog(world.connections)
    const sizes: number[] = []
    world.faults.toServer = (chunk, connection) => {
      sizes.push(chunk.length)
      log.take(connection, chunk)
      return chunk
    }
    world.connections[0]!.cut()
    await world.advance(2000)
    expect(log.splice()).toEqual(['connect again', 'setWatches', 'setWatches', 'setWatches'])
    expect(kept()).toBe(400)
    await run(other.create(`/${long}399`))
    expect(await run(watches[399]!.fired)).toMatchObject({ type: 'nodeCreated' })
  })

  it('on one path use one watch on the server', async () => {
    await run(Promise.all(Array.from({ length: 50 }, () => client.watchOnce('/a', 'exists'))))
    expect(kept()).toBe(1)
  })
})
