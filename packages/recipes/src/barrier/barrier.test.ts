import { describe, expect, it } from 'vitest'
import { client, setupEachTest, other, run, world } from '../testing/setup.ts'
import { enumerateFaults, seedsOf, cutAtRandom, withSeeds } from '../testing/fault-fixture.ts'
import { ManualWorld, watchSettled } from '../testing/world.ts'
import { Barrier } from './barrier.ts'
import { canPass } from './decide.ts'

setupEachTest('a', 'a')

describe('barrier decision', () => {
  it('passes when the barrier does not exist', () => {
    expect(canPass(undefined, 5n, false)).toBe(true)
    expect(canPass(5n, 5n, true)).toBe(false)
  })

  it('recognises a barrier that was set again only with generation', () => {
    expect(canPass(9n, 5n, false)).toBe(false)
    expect(canPass(9n, 5n, true)).toBe(true)
  })
})

describe('a barrier', () => {
  it('blocks waiters until it is removed', async () => {
    const barrier = new Barrier(client, '/parents/barrier')
    await run(barrier.set())
    const waiting = new Barrier(other, '/parents/barrier').wait()
    const hasPassed = watchSettled(waiting)
    await world.advance(5000)
    expect(hasPassed()).toBe(false)
    await run(barrier.remove())
    await run(waiting)
    expect(world.server.stats().watches).toBe(0)
  })

  it('lets a waiter pass at once when it was never set, and leaves no watch', async () => {
    await run(new Barrier(client, '/none').wait())
    expect(world.server.stats().watches).toBe(0)
  })

  it('is idempotent when set or removed twice', async () => {
    const barrier = new Barrier(client, '/b')
    await run(barrier.set())
    await run(barrier.set())
    await run(barrier.remove())
    await run(barrier.remove())
  })

  it('wakes each waiter once, at the cost of one read', async () => {
    const requests: string[] = []
    const counted = await world.client({
      instrumentation: { request: ({ operation }) => void requests.push(operation) },
    })
    await run(new Barrier(client, '/b').set())
    const waiting = new Barrier(counted, '/b').wait()
    await world.settle()
    await run(new Barrier(client, '/b').remove())
    await run(waiting)
    expect(requests).toEqual(['getData', 'getData'])
  })

  it('lets a waiter pass that was disconnected when it was removed', async () => {
    await run(new Barrier(client, '/b').set())
    const waiting = new Barrier(other, '/b').wait()
    const hasPassed = watchSettled(waiting)
    await world.settle()
    world.refuseConnections()
    world.connections[1]!.cut()
    await run(new Barrier(client, '/b').remove())
    await world.advance(3000)
    expect(hasPassed()).toBe(false)
    delete world.faults.open
    await world.within(5000, waiting)
  })

  it('blocks a waiter after it was removed and set again during an outage, unless generation is set', async () => {
    const barrier = new Barrier(client, '/b')
    await run(barrier.set())
    const plain = watchSettled(new Barrier(other, '/b').wait())
    const careful = watchSettled(new Barrier(other, '/b').wait({ generation: true }))
    await world.settle()
    world.refuseConnections()
    world.connections[1]!.cut()
    await run(barrier.remove())
    await run(barrier.set())
    delete world.faults.open
    await world.advance(5000)
    expect([plain(), careful()]).toEqual([false, true])
    await run(barrier.remove())
    await world.settle()
    expect(plain()).toBe(true)
  })

  it('keeps a waiter waiting when its session expires, where kazoo hangs', async () => {
    await run(new Barrier(client, '/b').set())
    const waiting = new Barrier(other, '/b').wait()
    await world.settle()
    world.refuseConnections()
    world.connections[1]!.cut()
    await world.advance(20_000)
    delete world.faults.open
    await world.advance(3000)
    const remover = await world.client()
    await run(new Barrier(remover, '/b').remove())
    await run(waiting)
  })

  it('releases a waiter and its watch when its signal aborts', async () => {
    await run(new Barrier(client, '/b').set())
    const abort = new AbortController()
    const waiting = new Barrier(client, '/b').wait({ signal: abort.signal })
    waiting.catch(() => {})
    await world.settle()
    expect(world.server.stats().watches).toBe(1)
    abort.abort()
    await expect(run(waiting)).rejects.toMatchObject({ name: 'AbortError' })
    await world.settle()
    expect(world.server.stats().watches).toBe(0)
  })

  it('lets waitForPresence pass when the znode is created', async () => {
    const waiting = new Barrier(other, '/gate').waitForPresence()
    await world.settle()
    await run(new Barrier(client, '/gate').set())
    await run(waiting)
    expect(world.server.stats().watches).toBe(0)
  })

  it('ends a wait when the client is closed', async () => {
    await run(new Barrier(client, '/b').set())
    const waiting = new Barrier(other, '/b').wait()
    waiting.catch(() => {})
    await world.settle()
    await run(other.close())
    await expect(run(waiting)).rejects.toMatchObject({ code: 'CLOSED' })
  })
})

it('example: work waits for the end of maintenance', async () => {
  const maintenance = new Barrier(client, '/maintenance')
  await run(maintenance.set())
  const log: string[] = []
  const worker = (async () => {
    await new Barrier(other, '/maintenance').wait()
    log.push('work')
  })()
  await world.settle()
  log.push('maintained')
  await run(maintenance.remove())
  await run(worker)
  expect(log).toEqual(['maintained', 'work'])
})

it('never lets a waiter pass early or hang under any fault at any request', async () => {
  const played = await enumerateFaults(async ({ world: { clock } }, { client: waiter, abort }) => {
    const setter = new Barrier(waiter, '/x/barrier')
    await setter.set()
    let removed = false
    const waiting = new Barrier(waiter, '/x/barrier').wait({ signal: abort.signal }).then(
      () => {
        if (!removed) throw new Error('too early')
      },
      (error: Error) => {
        if (error.name !== 'AbortError') throw error
      },
    )
    await new Promise<void>((resolve) => void clock.after(3000, 'test', resolve))
    removed = true
    await setter.remove()
    await waiting
  })
  expect(played).toBeGreaterThan(30)
})

it('lets all waiters pass once it is open and none before, with random cuts', async () => {
  await withSeeds(seedsOf(5), async (random) => {
    const crowd = await ManualWorld.start()
    const clients = await Promise.all(Array.from({ length: 3 + random.below(10) }, () => crowd.client()))
    const barrier = new Barrier(clients[0]!, '/b')
    await crowd.outcome(barrier.set())
    let open = false
    const waits = clients.map(async (each) => {
      await new Barrier(each, '/b').wait()
      if (!open) throw new Error('too early')
    })
    await cutAtRandom(crowd, random, 10, 500)
    open = true
    await crowd.within(20_000, barrier.remove())
    await crowd.within(20_000, Promise.all(waits))
    await crowd.settle()
    expect(crowd.server.stats().watches).toBe(0)
    await crowd.end()
  })
})
