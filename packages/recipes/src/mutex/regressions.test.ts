import { SessionExpiredError } from '@zabra/client/core'
import { describe, expect, it } from 'vitest'
import { client as a, setupEachTest, other as b, run, world } from '../testing/setup.ts'
import { rejectionOf, metered, watchSettled } from '../testing/world.ts'
import { Mutex } from './mutex.ts'

setupEachTest('a', 'a')
const queue = async (): Promise<string[]> => (await run(a.getChildren('/lock'))).children

describe('regressions of other locks', () => {
  it('a waiter whose session expired queues again, and is not granted by its old znode (CURATOR-498, Curator issue 1121)', async () => {
    const holder = await run(new Mutex(a, '/lock', { errorPolicy: 'session' }).acquire())
    const waiting = new Mutex(b, '/lock').acquire()
    await world.settle()
    const before = (await queue()).length
    const { client: c } = await metered(world)
    const later = new Mutex(c, '/lock').acquire()
    await world.settle()
    expect(before).toBe(2)
    const goOn = world.refuseConnections()
    const epoch = b.session.generation
    world.connections[1]!.cut()
    await world.advance(17_000)
    goOn()
    await world.advance(20_000)
    expect(b.session.generation).toBe(epoch + 1)
    await run(holder.release())
    const second = await run(later)
    const settled = watchSettled(waiting)
    await world.settle()
    expect(settled()).toBe(false)
    await run(second.release())
    const third = await run(waiting)
    expect(third.token).toBeGreaterThan(second.token)
    await run(third.release())
  })

  it('a waiter with onSessionLoss throw gets the expiry', async () => {
    const holder = await run(new Mutex(a, '/lock').acquire())
    const waiting = rejectionOf(new Mutex(b, '/lock').acquire({ onExpiry: 'fail' }))
    await world.settle()
    const goOn = world.refuseConnections()
    world.connections[1]!.cut()
    await world.advance(17_000)
    goOn()
    await world.advance(3000)
    expect(await run(waiting)).toBeInstanceOf(SessionExpiredError)
    await run(holder.release())
  })

  it('a client that starts no new session ends the wait', async () => {
    const holder = await run(new Mutex(a, '/lock').acquire())
    const { client: c } = await metered(world, { sessionExpiry: 'close' })
    const waiting = rejectionOf(new Mutex(c, '/lock').acquire())
    await world.settle()
    world.refuseConnections()
    world.connections[2]!.cut()
    await world.advance(17_000)
    expect(await run(waiting)).toBeInstanceOf(SessionExpiredError)
    await run(holder.release())
  })

  it('a waiter wakes when its predecessor left while it was suspended (kazoo 170)', async () => {
    const holder = await run(new Mutex(a, '/lock').acquire())
    const waiting = new Mutex(b, '/lock').acquire()
    await world.settle()
    const goOn = world.refuseConnections()
    world.connections[1]!.cut()
    await world.settle()
    await run(holder.release())
    goOn()
    const held = await world.within(5000, waiting)
    await run(held.release())
  })

  it('a lost reply to the create leaves no orphan znode', async () => {
    world.faults.toClient = (chunk, wire) => {
      if (wire !== world.connections[0]) return chunk
      delete world.faults.toClient
      wire.cut()
      return undefined
    }
    const held = await world.within(5000, new Mutex(a, '/lock').acquire())
    expect(await queue()).toHaveLength(1)
    await run(held.release())
    expect(await queue()).toEqual([])
  })

  it('failed tryAcquire calls leave no znodes under load (kazoo 732)', async () => {
    const holder = await run(new Mutex(a, '/lock').acquire())
    const tries = Array.from({ length: 50 }, () => new Mutex(b, '/lock', { localQueue: false }).tryAcquire())
    expect(await run(Promise.all(tries))).toEqual(tries.map(() => undefined))
    expect(await queue()).toHaveLength(1)
    await run(holder.release())
    const races = Array.from({ length: 50 }, () => new Mutex(b, '/lock', { localQueue: false }).tryAcquire())
    const winners = (await run(Promise.all(races))).filter((held) => held !== undefined)
    expect(winners.length).toBeLessThanOrEqual(1)
    for (const winner of winners) await run(winner.release())
    expect(await queue()).toEqual([])
  })

  it('two locks of one session are two contenders (a session id in the name merged them)', async () => {
    const options = { localQueue: false }
    const first = await run(new Mutex(a, '/lock', options).acquire())
    const second = new Mutex(a, '/lock', options).acquire()
    const settled = watchSettled(second)
    await world.settle()
    expect(settled()).toBe(false)
    await run(first.release())
    await run((await run(second)).release())
  })

  it('a waiter whose znode is deleted gets an error at its turn, and the queue advances', async () => {
    const holder = await run(new Mutex(a, '/lock').acquire())
    const waiting = rejectionOf(new Mutex(b, '/lock').acquire())
    await world.settle()
    const own = (await queue()).find((name) => !holder.path.endsWith(name))!
    await run(a.delete(`/lock/${own}`))
    await run(holder.release())
    expect(await run(waiting)).toMatchObject({ name: 'LostError', reason: 'nodeDeleted' })
  })

  it('waiters queue again when the directory is deleted with all children', async () => {
    const holder = await run(new Mutex(a, '/lock').acquire())
    const waiting = new Mutex(b, '/lock').acquire()
    await world.settle()
    const nodes = (await queue()).map((name) => ({ op: 'delete', path: `/lock/${name}` }) as const)
    await run(a.multi([...nodes, { op: 'delete', path: '/lock' }]))
    await run((await run(waiting)).release())
    await world.advance(20)
    expect(() => holder.assertHeld()).toThrow('its znode was deleted')
    await run(holder.release())
  })

  it('two clients with different chroots share a lock', async () => {
    await run(a.createMissing([{ path: '/app/lock', mode: 'container' }]))
    const view = b.chroot('/app')
    const holder = await run(new Mutex(a, '/app/lock').acquire())
    const waiting = new Mutex(view, '/lock').acquire()
    await world.settle()
    await run(holder.release())
    const held = await run(waiting)
    expect(held.path).toMatch(/^\/lock\//)
    const [made] = await run(held.guard([{ op: 'create', path: '/made' }]))
    expect(made.path).toBe('/made')
    await run(held.release())
  })

  it('contenders with the naming of Curator, kazoo and recipe share a queue', async () => {
    const kinds = ['recipe', 'curator', 'kazoo'] as const
    const order: string[] = []
    const first = await run(new Mutex(a, '/lock').acquire())
    const all = kinds.map(async (naming) => {
      const held = await new Mutex(b, '/lock', { naming, localQueue: false }).acquire()
      order.push(naming)
      await held.release()
    })
    await world.settle()
    const names = (await queue()).join(' ')
    expect(names).toMatch(/_c_[0-9a-f-]{36}-lock-\d{10}/)
    expect(names).toMatch(/(^| )[0-9a-f]{32}__lock__\d{10}/)
    await run(first.release())
    await run(Promise.all(all))
    expect(order).toEqual(kinds)
  })
})
