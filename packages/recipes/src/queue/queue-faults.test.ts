import { expect, it } from 'vitest'
import { utf8, type Client } from '@zabra/client/core'
import { LostError } from '../handles/lost.ts'
import { AmbiguousResultError } from '../support/ambiguous-result.ts'
import {
  after,
  enumerateFaults,
  retryWithoutSignal,
  tree,
  seedsOf,
  cutAtRandom,
  dropInFlight,
  withSeeds,
  type FaultFixture,
  type Victim,
} from '../testing/fault-fixture.ts'
import { advanceUntilSettled } from '../testing/settle.ts'
import { DeliveryChecker } from '../testing/scenarios/delivery-checker.ts'
import { ManualWorld } from '../testing/world.ts'
import { Queue } from './queue.ts'

const queueOf = (client: Client): Queue<string> => new Queue(client, '/q', { codec: utf8 })

async function drain(queue: Queue<string>, account: DeliveryChecker): Promise<void> {
  while ((await queue.size()) > 0) await account.recordTake(queue.take())
}

async function checkNothingLeft(fixture: FaultFixture, client: Client): Promise<void> {
  await fixture.waitUntilQuiet()
  const left = (await tree(client)).filter((path) => /\/(items|claims|marks|line|putters)\//.test(path))
  if (left.length > 0) throw new Error(`left behind: ${left.join(' ')}`)
}

/** Only an expired session may leave an ambiguous result. */
function checkDoubts(account: DeliveryChecker, victim: Victim): void {
  const doubts = account.maybePut.length + account.maybeOut.length
  if (doubts > 0 && !victim.fault?.startsWith('session')) throw new Error('in doubt without a reason')
}

it('take returns each item exactly once under any fault at any request', async () => {
  const played = await enumerateFaults(async (fixture, victim) => {
    const bystander = await fixture.world.client()
    const queue = queueOf(victim.client)
    const account = new DeliveryChecker()
    await account.recordPut(
      'a',
      retryWithoutSignal(victim, (signal) => queue.put('a', { ...(signal && { signal }) })),
    )
    await account.recordPut(
      'b',
      retryWithoutSignal(victim, (signal) => queue.put('b', { ...(signal && { signal }) })),
    )
    await account.recordTake(
      retryWithoutSignal(victim, (signal) => queue.take({ ...(signal && { signal }) })),
    )
    await account.recordPut('c', queueOf(bystander).put('c'))
    await account.recordTake(
      retryWithoutSignal(victim, (signal) => queue.take({ ...(signal && { signal }) })),
    )
    await drain(queueOf(bystander), account)
    const late = account.recordTake(
      retryWithoutSignal(victim, (signal) => queue.take({ ...(signal && { signal }) })),
    )
    await after(fixture.world, 500)
    await account.recordPut('d', queueOf(bystander).put('d'))
    await late
    await drain(queueOf(bystander), account)
    account.checkExactlyOnce()
    checkDoubts(account, victim)
    await checkNothingLeft(fixture, bystander)
  })
  expect(played).toBeGreaterThan(120)
})

it('receive delivers each message until it is acknowledged under any fault at any request', async () => {
  const played = await enumerateFaults(async (fixture, victim) => {
    const bystander = await fixture.world.client()
    const account = new DeliveryChecker()
    for (const value of ['a', 'b', 'c']) await account.recordPut(value, queueOf(bystander).put(value))
    const work = async (queue: Queue<string>, count: number, signal?: AbortSignal): Promise<void> => {
      let done = 0
      for await (const message of queue.receive({ ...(signal && { signal }) })) {
        account.out.push(message.value)
        if (message.value === 'b' && message.deliveries === 1) continue
        try {
          await message.ack()
        } catch (error) {
          const isDoubt = error instanceof AmbiguousResultError && victim.fault?.startsWith('session')
          if (!(error instanceof LostError || isDoubt)) throw error
        }
        if (++done === count) return
      }
    }
    await retryWithoutSignal(victim, (signal) => work(queueOf(victim.client), 2, signal))
    await after(fixture.world, 1000)
    const rest = await queueOf(bystander).size()
    if (rest > 0) await work(queueOf(bystander), rest)
    account.checkAtLeastOnce()
    await checkNothingLeft(fixture, bystander)
  })
  expect(played).toBeGreaterThan(60)
})

it('a waiting producer adds its item exactly once under any fault at any request', async () => {
  await enumerateFaults(async (fixture, victim) => {
    const bystander = await fixture.world.client()
    const options = { codec: utf8, maxItems: 1 }
    const account = new DeliveryChecker()
    await account.recordPut('a', new Queue(bystander, '/q', options).put('a'))
    const waiting = account.recordPut(
      'b',
      retryWithoutSignal(victim, (signal) =>
        new Queue(victim.client, '/q', options).put('b', { ...(signal && { signal }) }),
      ),
    )
    await after(fixture.world, 500)
    await account.recordTake(queueOf(bystander).take())
    await waiting
    await drain(queueOf(bystander), account)
    account.checkExactlyOnce()
    await checkNothingLeft(fixture, bystander)
  })
})

it('ten concurrent puts of one client into a new queue all succeed when replies are lost', async () => {
  // 46: a put failed that was making the directory while another one lost its reply.
  await withSeeds([...seedsOf(20), 46], async (random) => {
    const world = await ManualWorld.start()
    const client = await world.client()
    const heal = dropInFlight(world, random)
    const puts = Array.from({ length: 10 }, (_, n) => queueOf(client).put(String(n)))
    await advanceUntilSettled(world, 60_000, Promise.all(puts))
    heal()
    expect(await world.within(5000, queueOf(client).size())).toBe(10)
    await world.end()
  })
})

it('many producers and consumers lose and duplicate nothing with random cuts and expiries', async () => {
  await withSeeds(seedsOf(8), async (random) => {
    const world = await ManualWorld.start()
    const account = new DeliveryChecker()
    const producers = await Promise.all(Array.from({ length: 1 + random.below(5) }, () => world.client()))
    const takers = await Promise.all(Array.from({ length: 2 + random.below(10) }, () => world.client()))
    const watcher = await world.client({ servers: 'watcher:2181' })
    const stop = new AbortController()
    const puts = producers.map(async (client, n) => {
      for (let i = 0; i < 6; i++) await account.recordPut(`${n}-${i}`, queueOf(client).put(`${n}-${i}`))
    })
    const takes = takers.map(async (client) => {
      const queue = queueOf(client)
      while (!stop.signal.aborted) await account.recordTake(queue.take({ signal: stop.signal }))
    })
    for (const take of takes) take.catch(() => {})
    await cutAtRandom(world, random, 30, 200, ['watcher'])
    await advanceUntilSettled(world, 60_000, Promise.all(puts))
    await advanceUntilSettled(
      world,
      60_000,
      (async () => {
        while ((await queueOf(watcher).size()) > 0) await after(world, 100)
      })(),
    )
    // A take that is aborted without a connection may be in doubt.
    await advanceUntilSettled(world, 60_000, Promise.all(takers.map((client) => client.sync('/'))))
    stop.abort()
    await advanceUntilSettled(world, 60_000, Promise.allSettled(takes))
    await world.advance(1000)
    account.checkExactlyOnce()
    expect(account.maybeOut).toEqual([])
    expect(world.server.stats().watches).toBe(0)
    await world.end()
  })
})

it('ten thousand items are delivered in order with few listings', async () => {
  const world = await ManualWorld.start()
  const client = await world.client()
  const queue = new Queue<string>(client, '/q', { codec: utf8, maxItems: 20_000 })
  for (let n = 0; n < 10_000; n += 1000) {
    await world.outcome(queue.putAll(Array.from({ length: 1000 }, (_, i) => String(n + i))))
  }
  const requests: string[] = []
  const taker = await world.client({
    instrumentation: { request: ({ operation }) => void requests.push(operation) },
  })
  const own = queueOf(taker)
  for (let n = 0; n < 250; n++) expect(await world.outcome(own.take())).toBe(String(n))
  expect(requests.filter((operation) => operation === 'getChildren')).toHaveLength(3)
  await world.end()
})
