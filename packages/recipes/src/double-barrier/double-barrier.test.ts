import { describe, expect, it } from 'vitest'
import { SessionExpiredError, type Client } from '@zabra/client/core'
import { setupEachTest, run, world } from '../testing/setup.ts'
import {
  after,
  enumerateFaults,
  tree,
  seedsOf,
  cutAtRandom,
  withSeeds,
  type Victim,
} from '../testing/fault-fixture.ts'
import { advanceUntilSettled } from '../testing/settle.ts'
import { bytes, ManualWorld, rejectionOf, text } from '../testing/world.ts'
import { nextLeaveStep, roundOf } from './decide.ts'
import { DoubleBarrier, type BarrierHandle } from './double-barrier.ts'

setupEachTest()
const clientsOf = (count: number): Promise<Client[]> =>
  Promise.all(Array.from({ length: count }, () => world.client()))
const barrierOf = (client: Client, members = 3): DoubleBarrier => new DoubleBarrier(client, '/b', { members })

function count<T>(promises: readonly Promise<T>[]): { done: number } {
  const state = { done: 0 }
  for (const promise of promises) {
    promise.then(
      () => state.done++,
      () => {},
    )
  }
  return state
}

describe('decision of a leaving member', () => {
  it('keeps the lowest member until it is the last, waiting from the highest down', () => {
    expect(nextLeaveStep(['c', 'a', 'b'], 'a')).toEqual({ do: 'wait', forDeletionOf: 'c' })
    expect(nextLeaveStep(['a'], 'a')).toEqual({ do: 'leave', last: true })
  })

  it('lets all other members leave at once and wait for the lowest', () => {
    expect(nextLeaveStep(['a', 'b'], 'b')).toEqual({ do: 'leave', last: false })
    expect(nextLeaveStep(['a', 'c'], 'b')).toEqual({ do: 'wait', forDeletionOf: 'a' })
    expect(nextLeaveStep([], 'b')).toEqual({ do: 'done' })
  })

  it('treats data that is no number as round 0', () => {
    expect(['', '7', '-1', 'x', '1e3'].map(roundOf)).toEqual([0, 7, 0, 0, 0])
  })
})

describe('a double barrier', () => {
  it('opens when the last member enters, and not before', async () => {
    const clients = await clientsOf(3)
    const two = clients.slice(0, 2).map((client) => barrierOf(client).enter())
    const state = count(two)
    await world.advance(5000)
    expect(state.done).toBe(0)
    const third = await run(barrierOf(clients[2]!).enter())
    expect((await run(Promise.all(two))).map(({ round }) => round)).toEqual([third.round, third.round])
  })

  it('lets no member leave before the last one does, and leaves nothing behind', async () => {
    const clients = await clientsOf(3)
    const inside = await run(Promise.all(clients.map((client) => barrierOf(client).enter())))
    const leaving = inside.slice(0, 2).map((each) => each.release())
    const state = count(leaving)
    await world.advance(5000)
    expect(state.done).toBe(0)
    await run(inside[2]!.release())
    await run(Promise.all(leaving))
    await world.settle()
    expect(await run(tree(clients[0]!, '/b'))).toEqual(['/b'])
    expect(world.server.stats().watches).toBe(0)
  })

  it('can be reused at once, a hundred times', async () => {
    const clients = await clientsOf(3)
    let inside = 0
    const wrong: string[] = []
    const play = async (client: Client): Promise<void> => {
      const barrier = barrierOf(client)
      for (let n = 0; n < 100; n++) {
        const entered = await barrier.enter()
        const { round } = entered
        if (round !== n) wrong.push(`round ${round} instead of ${n}`)
        inside++
        await Promise.resolve()
        inside--
        await entered.release()
      }
    }
    await advanceUntilSettled(world, 60_000, Promise.all(clients.map(play)))
    expect(wrong).toEqual([])
    expect(inside).toBe(0)
  })

  it('admits no late member into a round that is open', async () => {
    const clients = await clientsOf(3)
    await run(Promise.all(clients.slice(0, 2).map((client) => barrierOf(client, 2).enter())))
    const late = barrierOf(clients[2]!, 2).enter()
    const state = count([late])
    late.catch(() => {})
    await world.advance(1000)
    expect(state.done).toBe(0)
  })

  it('opens a round whose number another client has written again', async () => {
    const [one, two, admin] = (await clientsOf(3)) as [Client, Client, Client]
    const first = barrierOf(one, 2).enter()
    await world.advance(10)
    const second = barrierOf(two, 3).enter()
    await world.advance(10)
    let requests = 0
    world.faults.toServer = (chunk) => (++requests > 100 ? undefined : chunk)
    await run(admin.setData('/b', bytes('0')))
    const inside = await world.within(5000, Promise.all([first, second]))
    expect(inside.map(({ round }) => round)).toEqual([0, 0])
  })

  it('says in time that it was not entered, though the connection hangs', async () => {
    const entering = rejectionOf(barrierOf(await world.client()).enter({ timeoutMs: 500 }))
    await world.advance(100)
    world.faults.toServer = () => undefined
    expect(await world.within(1600, entering)).toMatchObject({ code: 'OPERATION_TIMEOUT' })
  })

  it.each([true, false])(
    'keeps no caller whose time is up while it joins, and is left then (joined: %s)',
    async (isApplied) => {
      const [one, admin] = (await clientsOf(2)) as [Client, Client]
      let restore = (): void => {}
      world.faults.toServer = (chunk, connection) => {
        if (!text(chunk).includes('/b/r0/')) return chunk
        delete world.faults.toServer
        restore = world.refuseConnections()
        world.faults.toClient = (reply, to) => (to === connection ? undefined : reply)
        world.clock.immediate(() => connection.cut())
        return isApplied ? chunk : undefined
      }
      await run(admin.create('/b/r0', { parents: true }))
      const entering = rejectionOf(barrierOf(one, 2).enter({ timeoutMs: 500 }))
      expect(await world.within(600, entering)).toMatchObject({ code: 'OPERATION_TIMEOUT' })
      delete world.faults.toClient
      restore()
      await world.advance(5000)
      expect((await run(admin.getChildren('/b/r0'))).children).toEqual([])
    },
  )

  it('goes on with the round that another client has set', async () => {
    const [one, two, admin] = (await clientsOf(3)) as [Client, Client, Client]
    await run(admin.create('/b', { data: '5' }))
    const first = barrierOf(one, 2).enter()
    await world.advance(10)
    await run(admin.setData('/b', bytes('2')))
    await world.advance(10)
    const inside = await world.within(5000, Promise.all([first, barrierOf(two, 2).enter()]))
    expect(inside.map(({ round }) => round)).toEqual([2, 2])
    expect((await run(tree(admin))).filter((path) => path.startsWith('/b/r5/'))).toEqual([])
  })

  it('is entered by a waiting member whose znode another client has deleted', async () => {
    const [one, two, admin] = (await clientsOf(3)) as [Client, Client, Client]
    const first = barrierOf(one, 2).enter()
    await world.advance(10)
    const { children } = await run(admin.getChildren('/b/r0'))
    await run(admin.delete(`/b/r0/${children[0]}`))
    await world.advance(10)
    const inside = await world.within(5000, Promise.all([first, barrierOf(two, 2).enter()]))
    expect(inside.map(({ round }) => round)).toEqual([0, 0])
    await run(Promise.all(inside.map((each) => each.release())))
    expect(world.server.stats().watches).toBe(0)
  })

  it('is entered in the next session when the session expires before it is opened', async () => {
    const client = await world.client({ servers: 'a:2181' })
    let goOn = (): void => {}
    let isListed = false
    const getChildren2 = 12
    world.faults.toServer = (chunk) => {
      isListed ||= new DataView(chunk.buffer, chunk.byteOffset).getInt32(8) === getChildren2
      return chunk
    }
    world.faults.toClient = (chunk, connection) => {
      if (!isListed) return chunk
      delete world.faults.toServer
      delete world.faults.toClient
      connection.deliver(chunk)
      goOn = world.refuseConnections()
      connection.cut()
      return undefined
    }
    const entering = barrierOf(client, 1).enter()
    await world.advance(30_000)
    goOn()
    expect((await world.within(30_000, entering)).round).toBe(0)
  })

  it('does not open on a spurious wake-up (Curator issue 1290)', async () => {
    const [client, other] = (await clientsOf(2)) as [Client, Client]
    const entering = barrierOf(client).enter()
    entering.catch(() => {})
    const state = count([entering])
    await world.settle()
    await run(other.setData('/b', bytes('0')))
    world.connections[0]!.cut()
    await world.advance(5000)
    expect(state.done).toBe(0)
  })

  it('does not count a member that aborted (Curator issue 601)', async () => {
    const clients = await clientsOf(3)
    const abort = new AbortController()
    const impatient = barrierOf(clients[0]!, 2).enter({ signal: abort.signal })
    impatient.catch(() => {})
    await world.settle()
    abort.abort()
    await expect(run(impatient)).rejects.toMatchObject({ name: 'AbortError' })
    const patient = barrierOf(clients[1]!, 2).enter()
    const state = count([patient])
    await world.advance(1000)
    expect(state.done).toBe(0)
    await run(barrierOf(clients[2]!, 2).enter())
    await run(patient)
  })

  it('does not count a member whose session expired while waiting', async () => {
    const clients = await clientsOf(4)
    const doomed = barrierOf(clients[0]!).enter()
    doomed.catch(() => {})
    const waiting = barrierOf(clients[1]!).enter()
    const state = count([waiting])
    await world.settle()
    await run(clients[0]!.close())
    void barrierOf(clients[2]!).enter()
    await world.advance(1000)
    expect(state.done).toBe(0)
    void barrierOf(clients[3]!).enter()
    await run(waiting)
  })

  it("lets the others leave when a member's session expires inside", async () => {
    const clients = await clientsOf(3)
    const inside = await run(Promise.all(clients.map((client) => barrierOf(client).enter())))
    const leaving = inside.slice(0, 2).map((each) => each.release())
    await world.settle()
    await run(clients[2]!.close())
    await run(Promise.all(leaving))
  })

  it('lets a member leave alone when its signal aborts', async () => {
    const clients = await clientsOf(2)
    const inside = await run(Promise.all(clients.map((client) => barrierOf(client, 2).enter())))
    const abort = new AbortController()
    const leaving = inside[0]!.release({ signal: abort.signal })
    leaving.catch(() => {})
    await world.settle()
    abort.abort()
    await expect(run(leaving)).rejects.toMatchObject({ name: 'AbortError' })
    await run(inside[1]!.release())
    expect(world.server.stats().watches).toBe(0)
  })

  it('wakes each waiter once when it opens, and costs two notifications per leaving member', async () => {
    let events = 0
    const crowd = await Promise.all(
      Array.from({ length: 10 }, () => world.client({ instrumentation: { event: () => void events++ } })),
    )
    const entering: Promise<BarrierHandle>[] = []
    for (const client of crowd) {
      entering.push(barrierOf(client, 10).enter())
      await world.settle()
    }
    const inside = await run(Promise.all(entering))
    expect(events).toBe(9)
    events = 0
    await run(Promise.all(inside.map((each) => each.release())))
    expect(events).toBeLessThanOrEqual(20)
  })
})

it('example: three workers start and finish together', async () => {
  const log: string[] = []
  const work = async (client: Client, name: string): Promise<void> => {
    const inside = await new DoubleBarrier(client, '/start', { members: 3 }).enter()
    log.push(`${name} begins`)
    await inside.release()
    log.push('done')
  }
  const clients = await clientsOf(3)
  await run(Promise.all(clients.map((client, n) => work(client, `worker ${n}`))))
  expect(log.slice(0, 3).every((line) => line.endsWith('begins'))).toBe(true)
  expect(log.slice(3)).toEqual(['done', 'done', 'done'])
})

async function leave(victim: Victim, inside: BarrierHandle): Promise<void> {
  try {
    await inside.release({ signal: victim.abort.signal })
  } catch (error) {
    if (!(error instanceof SessionExpiredError) && (error as Error).name !== 'AbortError') throw error
  }
}

it('never opens early or hangs under any fault at any request of a member', async () => {
  const played = await enumerateFaults(async (fixture, victim) => {
    const peer = await fixture.world.client()
    const arrived = new Set<string>()
    const through = async (
      client: Client,
      name: string,
      call: (barrier: DoubleBarrier) => Promise<BarrierHandle>,
    ) => {
      arrived.add(name)
      const inside = await call(barrierOf(client, 2))
      if (arrived.size < 2) throw new Error('too early')
      return inside
    }
    let peerInside = false
    const own = through(victim.client, 'victim', (barrier) =>
      barrier.enter({ signal: victim.abort.signal }),
    ).catch(async (error: unknown) => {
      if ((error as Error).name !== 'AbortError') throw error
      await after(fixture.world, 1000)
      // The others may have counted it before it aborted.
      return peerInside ? undefined : barrierOf(victim.client, 2).enter()
    })
    own.catch(() => {})
    await after(fixture.world, 500)
    const others = through(peer, 'peer', (barrier) => barrier.enter())
    others.then(
      () => (peerInside = true),
      () => {},
    )
    const [mine, second] = await Promise.allSettled([own, others])
    if (second.status === 'rejected') throw second.reason
    if (mine.status === 'rejected' && !(mine.reason instanceof SessionExpiredError)) throw mine.reason
    const leaving = second.value.release()
    if (mine.status === 'fulfilled' && mine.value !== undefined) await leave(victim, mine.value)
    await leaving
    await fixture.waitUntilQuiet()
    const left = await tree(peer, '/b')
    if (left.some((path) => path.split('/').length > 3)) throw new Error(`left behind: ${left.join(' ')}`)
  })
  expect(played).toBeGreaterThan(40)
})

it('keeps rounds together among many participants with random cuts', async () => {
  await withSeeds(seedsOf(5), async (random) => {
    const own = await ManualWorld.start()
    const size = 3 + random.below(8)
    const clients = await Promise.all(Array.from({ length: size }, () => own.client()))
    const inside = new Map<number, number>()
    const play = async (client: Client): Promise<void> => {
      const barrier = new DoubleBarrier(client, '/b', { members: size })
      for (let n = 0; n < 5; n++) {
        const entered = await barrier.enter()
        const { round } = entered
        inside.set(round, (inside.get(round) ?? 0) + 1)
        await entered.release()
        if (inside.get(round) !== size)
          throw new Error(`left round ${round} with ${inside.get(round)} of ${size}`)
      }
    }
    const all = Promise.all(clients.map(play))
    all.catch(() => {})
    await cutAtRandom(own, random, 20, 300)
    await advanceUntilSettled(own, 120_000, all)
    expect([...inside.keys()]).toEqual([0, 1, 2, 3, 4])
    expect(own.server.stats().watches).toBe(0)
    await own.end()
  })
})
