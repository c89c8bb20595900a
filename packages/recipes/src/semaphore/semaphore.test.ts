import fc from 'fast-check'
import { AbortedError, UsageError, type Client } from '@zabra/client/core'
import { describe, expect, it } from 'vitest'
import { client as a, cutOff, setupEachTest, meters, other as b, run, world } from '../testing/setup.ts'
import { bytes, rejectionOf, text, watchSettled } from '../testing/world.ts'
import { Mutex } from '../mutex/index.ts'
import { fits, permitsOf } from './leases.ts'
import { PermitsConflictError } from './permits.ts'
import { Semaphore } from './semaphore.ts'

describe('semaphore leases', () => {
  it('encode their permits in the own naming and in that of Curator', () => {
    expect(permitsOf('guid-lease-3-0000000001')).toBe(3)
    expect(permitsOf('guid-lease-12--2147483648')).toBe(12)
    expect(permitsOf('_c_guid-lease-0000000001')).toBe(1)
    expect(permitsOf('_c_guid-lease--2147483648')).toBe(1)
    expect(permitsOf('foreign')).toBe(0)
  })

  it('fit under the limit or not', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 9 })),
        fc.integer({ min: 1, max: 9 }),
        fc.nat(50),
        (taken, wanted, limit) => {
          const names = taken.map((permits, i) => `g-lease-${permits}-${String(i).padStart(10, '0')}`)
          expect(fits(names, wanted, limit)).toBe(taken.reduce((a, b) => a + b, 0) + wanted <= limit)
        },
      ),
    )
  })
})

describe('a semaphore', () => {
  setupEachTest('a', 'a')
  const of = (client: Client, permits = 3): Semaphore => new Semaphore(client, '/s', { permits })
  const left = async (): Promise<string[]> => [
    ...(await run(a.getChildren('/s/locks'))).children,
    ...(await run(a.getChildren('/s/leases'))).children,
  ]

  it.each([true, false])(
    'keeps no caller whose time is up while its grant is in doubt, and gives the permits back (granted: %s)',
    async (isApplied) => {
      const c = await world.client({ servers: 'c:2181' })
      let restore = (): void => {}
      world.faults.toServer = (chunk, { server }) => {
        if (server.host !== 'c' || !text(chunk).includes('lease-')) return chunk
        delete world.faults.toServer
        world.faults.toClient = (reply, to) => (to.server.host === 'c' ? undefined : reply)
        world.clock.immediate(() => (restore = cutOff('c')))
        return isApplied ? chunk : undefined
      }
      const failed = rejectionOf(of(c).acquire({ timeoutMs: 300 }))
      expect(await world.within(400, failed)).toMatchObject({ code: 'OPERATION_TIMEOUT' })
      delete world.faults.toClient
      restore()
      await world.advance(5000)
      expect(c.state).toBe('connected')
      expect(await left()).toEqual([])
    },
  )

  it('grants permits until none are left, and again after a release', async () => {
    const two = await run(of(a).acquire({ permits: 2 }))
    const one = await run(of(b).acquire({ permits: 1 }))
    const next = of(b).acquire({ permits: 2 })
    const settled = watchSettled(next)
    await world.settle()
    await run(one.release())
    await world.settle()
    expect(settled()).toBe(false)
    await run(two.release())
    await run((await run(next)).release())
    expect(await left()).toEqual([])
    expect(world.server.stats().watches).toBe(0)
  })

  it('costs four requests when permits are free: enqueue, list, read, and take them while leaving the queue', async () => {
    await run((await run(of(a).acquire())).release())
    const semaphore = of(a)
    await run((await run(semaphore.acquire())).release())
    await world.settle()
    meters[0]!.take()
    const held = await run(semaphore.acquire())
    expect(meters[0]!.take().requests).toEqual(['create', 'getChildren', 'getChildren', 'multi'])
    // The watch follows later and delays no one.
    await world.advance(20)
    expect(meters[0]!.take().requests).toEqual(['getData'])
    await run(held.release())
    await world.settle()
    expect(meters[0]!.take()).toEqual({ requests: ['delete'], events: ['nodeDeleted'] })
  })

  it('does not grant by a limit that has changed since it was read', async () => {
    const semaphore = of(a)
    await run((await run(semaphore.acquire())).release())
    await run(of(b).setPermits(1))
    const held = await run(semaphore.acquire())
    const second = semaphore.acquire()
    const settled = watchSettled(second)
    await world.settle()
    expect(settled()).toBe(false)
    await run(of(b).setPermits(9))
    await run(Promise.all([(await run(second)).release(), held.release()]))
    await run((await run(semaphore.acquire({ permits: 9 }))).release())
  })

  it('lets no small request overtake a waiting large one', async () => {
    const held = await run(of(a).acquire({ permits: 2 }))
    const large = of(b).acquire({ permits: 3 })
    const settledLarge = watchSettled(large)
    await world.settle()
    const small = of(a).acquire({ permits: 1 })
    const settledSmall = watchSettled(small)
    await world.settle()
    expect([settledLarge(), settledSmall()]).toEqual([false, false])
    await run(held.release())
    await run((await run(large)).release())
    await run((await run(small)).release())
  })

  it('wakes only the head of the queue per release', async () => {
    const held = await run(of(b, 1).acquire())
    const first = of(b, 1).acquire()
    await world.settle()
    const waiter = of(a, 1).acquire()
    await world.settle()
    meters[0]!.take()
    const other = await world.client()
    await run(other.sync('/'))
    await run(held.release())
    const second = await run(first)
    await world.settle()
    // It became the head of the queue, and nothing else.
    expect(meters[0]!.take().events).toEqual(['nodeDeleted'])
    await run(second.release())
    await run((await run(waiter)).release())
  })

  it('reads its limit from the znode: a different limit is a conflict, and a change wakes the queue', async () => {
    const held = await run(of(a, 1).acquire())
    await expect(run(of(b, 2).acquire())).rejects.toThrow(PermitsConflictError)
    const waiting = of(b, 1).acquire()
    await world.settle()
    await run(of(a, 1).setPermits(2))
    const second = await run(waiting)
    expect(text((await run(a.getData('/s'))).data)).toBe('2')
    await run(of(a, 1).setPermits(1))
    const third = of(b, 7).acquire()
    const settled = watchSettled(third)
    await run(held.release())
    await world.settle()
    expect(settled()).toBe(false)
    await run(second.release())
    await run((await run(third)).release())
  })

  it('rejects a request that exceeds the limit', async () => {
    await expect(run(of(a, 2).acquire({ permits: 3 }))).rejects.toThrow(UsageError)
    await expect(of(a).acquire({ permits: 0 })).rejects.toThrow(
      'acquire /s: Expected permits as a whole number from 1, got 0',
    )
    await expect(
      new Semaphore(a, '/c', { permits: 2, naming: 'curator' }).acquire({ permits: 2 }),
    ).rejects.toThrow('Curator')
    expect(await left()).toEqual([])
  })

  it('leaves the limit to its users with the naming of Curator', async () => {
    const semaphore = new Semaphore(a, '/c', { permits: 1, naming: 'curator' })
    const held = await run(semaphore.acquire())
    expect(held.path).toMatch(/^\/c\/leases\/_c_[0-9a-f-]{36}-lease-\d{10}$/)
    await expect(semaphore.setPermits(2)).rejects.toThrow(UsageError)
    await run(held.release())
    await run(semaphore.run(async (again) => again.assertHeld()))
  })

  it('counts every child as one permit with the naming of kazoo, and stores the limit for kazoo', async () => {
    const semaphore = new Semaphore(a, '/k', { permits: 2, naming: 'kazoo' })
    const held = await run(semaphore.acquire())
    expect(held.path).toMatch(/^\/k\/[0-9a-f]{32}$/)
    expect(text((await run(a.getData('/k'))).data)).toBe('2')
    // As kazoo creates them.
    await run(b.create('/k/0123456789abcdef0123456789abcdef', { mode: 'ephemeral' }))
    const waiting = new Semaphore(b, '/k', { permits: 2, naming: 'kazoo' }).acquire()
    const settled = watchSettled(waiting)
    await world.settle()
    expect(settled()).toBe(false)
    expect((await run(a.getChildren('/k-__lock__'))).children[0]).toMatch(/^[0-9a-f]{32}__lock__\d{10}$/)
    await run(b.delete('/k/0123456789abcdef0123456789abcdef'))
    await run((await run(waiting)).release())
    await expect(semaphore.acquire({ permits: 2 })).rejects.toThrow(
      '1 permit at a time with the naming of kazoo',
    )
    await run(held.release())
    expect((await run(a.getChildren('/k'))).children).toEqual([])
  })

  it('keeps the directories that kazoo expects to stay', async () => {
    await run((await run(new Semaphore(a, '/k', { permits: 2, naming: 'kazoo' }).acquire())).release())
    await run((await run(new Mutex(a, '/m', { naming: 'kazoo' }).acquire())).release())
    for (const path of ['/k', '/k-__lock__', '/m'])
      expect((await run(a.exists(path)))?.ephemeralOwner, path).toBe(0n)
  })

  it('leaves no queue entry and no permits when a waiter aborts (kazoo 429, CURATOR-335: the inner lock stayed)', async () => {
    const held = await run(of(a).acquire({ permits: 3 }))
    const { watches } = world.server.stats()
    const stop = new AbortController()
    const waiting = rejectionOf(of(b).acquire({ permits: 1, signal: stop.signal }))
    await world.settle()
    stop.abort()
    expect(await run(waiting)).toBeInstanceOf(AbortedError)
    await world.settle()
    expect(await left()).toHaveLength(1)
    expect(world.server.stats().watches).toBe(watches)
    await run(held.release())
  })

  it('releases permits that were taken while the reply was lost and the caller aborted', async () => {
    await run((await run(of(a).acquire())).release())
    const stop = new AbortController()
    world.faults.toServer = (chunk) => {
      if (!new TextDecoder('latin1').decode(chunk).includes('lease-1-')) return chunk
      delete world.faults.toServer
      world.loseReply()
      stop.abort()
      return chunk
    }
    expect(await run(rejectionOf(of(a).acquire({ permits: 1, signal: stop.signal })))).toBeInstanceOf(
      AbortedError,
    )
    await world.advance(3000)
    expect(await left()).toEqual([])
  })

  it('releases permits that were granted as the connection broke, when the caller aborts before the reconnect', async () => {
    await run((await run(of(a).acquire())).release())
    await world.settle()
    const stop = new AbortController()
    let goOn = (): void => {}
    world.faults.toServer = (chunk) => {
      if (!new TextDecoder('latin1').decode(chunk).includes('lease-1-')) return chunk
      delete world.faults.toServer
      world.faults.toClient = (reply, wire) => {
        delete world.faults.toClient
        goOn = world.refuseConnections()
        wire.deliver(reply)
        wire.cut()
        return undefined
      }
      return chunk
    }
    const waiting = rejectionOf(of(a).acquire({ permits: 1, signal: stop.signal }))
    await world.settle()
    stop.abort()
    goOn()
    await world.advance(3000)
    expect(await run(waiting)).toBeInstanceOf(AbortedError)
    await world.advance(3000)
    expect(await left()).toEqual([])
  })

  it('resolves permits whose reply was lost', async () => {
    const semaphore = new Semaphore(a, '/s', { permits: 1 })
    await run((await run(semaphore.acquire())).release())
    world.faults.toServer = (chunk) => {
      if (!new TextDecoder('latin1').decode(chunk).includes('lease-1-')) return chunk
      delete world.faults.toServer
      world.loseReply()
      return chunk
    }
    const held = await world.within(5000, semaphore.acquire())
    held.assertHeld()
    expect(await left()).toHaveLength(1)
    await run(held.release())
  })

  it('frees the permits of an expired session', async () => {
    await run(of(a).acquire({ permits: 3 }))
    const waiting = of(b).acquire({ permits: 3 })
    await world.settle()
    const goOn = world.refuseConnections()
    world.connections[0]!.cut()
    const held = await world.within(20_000, waiting)
    held.assertHeld()
    goOn()
    await run(held.release())
  })
})

describe('tryAcquire', () => {
  setupEachTest('a', 'a')

  it('tryAcquire takes free permits, and returns undefined when too few are free or others wait', async () => {
    const of = (on: Client): Semaphore => new Semaphore(on, '/try', { permits: 3, data: bytes('me') })
    const two = (await run(of(a).tryAcquire({ permits: 2 })))!
    expect(await run(of(b).tryAcquire({ permits: 2 }))).toBeUndefined()
    const one = (await run(of(b).tryAcquire()))!
    expect((await run(of(a).holders())).map(({ permits, owner }) => [permits, owner])).toEqual([
      [2, a.session.id],
      [1, b.session.id],
    ])
    expect((await run(of(a).holders()))[0]!.data).toEqual(bytes('me'))
    const waiting = of(b).acquire({ permits: 2 })
    await world.settle()
    await run(one.release())
    // One permit is free, but it is not this caller's turn.
    expect(await run(of(a).tryAcquire())).toBeUndefined()
    await run(two.release())
    await run((await run(waiting)).release())
    expect(await run(of(a).holders())).toEqual([])
    await expect(run(of(a).tryAcquire({ permits: 4 }))).rejects.toThrow('at most 3 permits')
    await world.settle()
    expect(await run(a.getChildren('/try/locks')).then(({ children }) => children)).toEqual([])
    expect(world.server.stats().watches).toBe(0)
  })

  it('tryAcquire never exceeds the limit among many callers', async () => {
    const held = await run(
      Promise.all(
        Array.from({ length: 12 }, (_, n) =>
          new Semaphore(n % 2 === 0 ? a : b, '/many', { permits: 4 }).tryAcquire(),
        ),
      ),
    )
    const granted = held.filter((each) => each !== undefined)
    expect(granted.length).toBeLessThanOrEqual(4)
    for (const each of granted) await run(each.release())
    await world.settle()
    expect(await run(new Semaphore(a, '/many', { permits: 4 }).holders())).toEqual([])
  })
})
