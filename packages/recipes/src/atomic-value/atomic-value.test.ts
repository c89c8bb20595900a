import { describe, expect, it } from 'vitest'
import { json, utf8 } from '@zabra/client/core'
import { client, setupEachTest, other, run, world } from '../testing/setup.ts'
import {
  enumerateFaults,
  retryWithoutSignal,
  tree,
  seedsOf,
  cutAtRandom,
  withSeeds,
} from '../testing/fault-fixture.ts'
import { advanceUntilSettled } from '../testing/settle.ts'
import { bytes, rejectionOf, text, ManualWorld } from '../testing/world.ts'
import { AmbiguousResultError } from '../support/ambiguous-result.ts'
import { AtomicValue, Counter } from './atomic-value.ts'
import { bigEndian, decimal, outcomeOf, nextVersion, backoffMs } from './decide.ts'

setupEachTest('a', 'a')

describe('atomic value decisions', () => {
  it('treat an unchanged znode as not written', () => {
    const before = { czxid: 1n, version: 4 }
    expect(outcomeOf(before, { czxid: 1n, version: 4, same: false })).toBe('notWritten')
    expect(outcomeOf(before, { czxid: 1n, version: 5, same: false })).toBe('notWritten')
  })

  it('treat a result as unknown when another client may have caused it', () => {
    const before = { czxid: 1n, version: 4 }
    expect(outcomeOf(before, { czxid: 1n, version: 5, same: true })).toBe('unknown')
    expect(outcomeOf(before, { czxid: 1n, version: 6, same: false })).toBe('unknown')
    expect(outcomeOf(before, { czxid: 9n, version: 4, same: false })).toBe('unknown')
    expect(outcomeOf(before, undefined)).toBe('unknown')
  })

  it('wrap versions around and skip -1', () => {
    expect([0, 2147483647, -2].map(nextVersion)).toEqual([1, -2147483648, 0])
  })

  it('back off longer after more lost races', () => {
    expect([backoffMs(0, 0.99), backoffMs(3, 0.99), backoffMs(20, 0.99)]).toEqual([0, 7, 63])
  })

  it('encode numbers as kazoo and Curator do, and reject numbers that do not fit', () => {
    expect(text(decimal.encode(-12n))).toBe('-12')
    expect([decimal.decode(bytes('')), decimal.decode(bytes('7'))]).toEqual([0n, 7n])
    expect(() => decimal.decode(bytes('7.5'))).toThrow('whole number')
    expect([...bigEndian(4).encode(-2n)]).toEqual([255, 255, 255, 254])
    expect(bigEndian(8).decode(bigEndian(8).encode(-(2n ** 63n)))).toBe(-(2n ** 63n))
    expect(() => bigEndian(4).encode(2n ** 31n)).toThrow('fits 4 bytes')
    expect(() => bigEndian(8).decode(bytes('abc'))).toThrow('8 bytes, got 3')
  })
})

describe('an atomic value', () => {
  it('starts with the initial value, and update computes from the current one', async () => {
    const value = new AtomicValue(client, '/deep/v', { codec: json<number[]>(), initial: [] })
    expect((await run(value.get())).value).toEqual([])
    expect(await run(value.update((list) => [...list, 1]))).toEqual([1])
    expect(await run(value.set([9]))).toEqual([9])
  })

  it('is set over data that its codec cannot read', async () => {
    await run(other.create('/v', { data: '{' }))
    const value = new AtomicValue(client, '/v', { codec: json<number>(), initial: 0 })
    await expect(run(value.update((n) => n + 1))).rejects.toMatchObject({ name: 'CodecError' })
    expect(await run(value.set(5))).toBe(5)
    expect((await run(value.get())).value).toBe(5)
  })

  it('says that an update may be applied when its client closes before the outcome is known', async () => {
    const counter = new Counter(client, '/n')
    await run(counter.add())
    await world.settle()
    world.faults.toServer = (chunk, connection) => {
      if (!text(chunk).includes('/n-ops/op-')) return chunk
      delete world.faults.toServer
      world.faults.toClient = (reply, to) => (to === connection ? undefined : reply)
      world.refuseConnections()
      world.clock.immediate(() => connection.cut())
      return chunk
    }
    const failed = rejectionOf(counter.add())
    await world.advance(50)
    await run(client.close())
    expect(await run(failed)).toMatchObject({ code: 'CLOSED', maybeApplied: true })
    expect(await run(new Counter(other, '/n').get())).toBe(2n)
  })

  it('is written by compareAndSet only if no other client wrote first', async () => {
    const value = new AtomicValue(client, '/v', { codec: utf8, initial: 'a' })
    const read = await run(value.get())
    expect(await run(value.compareAndSet(read, 'b'))).toBe(true)
    expect(await run(value.compareAndSet(read, 'c'))).toBe(false)
    await run(client.delete('/v'))
    expect(await run(value.compareAndSet(read, 'd'))).toBe(false)
  })

  it('yields every newest value, also after its znode was created again (CURATOR-688)', async () => {
    const value = new AtomicValue(client, '/v', { codec: utf8, initial: 'a' })
    const abort = new AbortController()
    const seen = world.collect(value.updates({ signal: abort.signal }))
    await world.settle()
    await run(new AtomicValue(other, '/v', { codec: utf8, initial: 'x' }).set('b'))
    await world.settle()
    await run(other.delete('/v'))
    await run(other.create('/v', { data: bytes('c') }))
    await world.settle()
    expect(seen.at(-1)).toBe('c')
    expect(seen.slice(0, 2)).toEqual(['a', 'b'])
    abort.abort()
    await world.settle()
    expect(world.server.stats().watches).toBe(0)
  })

  it('costs a read, a transaction and the deletion of its marker per update', async () => {
    const requests: string[] = []
    const counted = await world.client({
      instrumentation: { request: ({ operation }) => void requests.push(operation) },
    })
    const counter = new Counter(counted, '/n')
    await run(counter.add())
    requests.length = 0
    await run(counter.add())
    expect(requests).toEqual(['getData', 'multi', 'delete'])
    const fast = new Counter(counted, '/n', { mode: 'fast' })
    requests.length = 0
    await run(fast.add())
    expect(requests).toEqual(['getData', 'setData'])
  })

  it('applies an update once when its reply is lost', async () => {
    const counter = new Counter(client, '/n')
    await run(counter.add())
    // The first reply is to the read, the second to the change.
    world.loseReply(1)
    await world.within(20_000, counter.add())
    expect(await run(counter.get())).toBe(2n)
  })

  it('rejects with an AmbiguousResultError in fast mode when the reply is lost', async () => {
    const counter = new Counter(client, '/n', { mode: 'fast' })
    await run(counter.add())
    world.loseReply(1)
    const adding = counter.add()
    adding.catch(() => {})
    await expect(world.within(20_000, adding)).rejects.toBeInstanceOf(AmbiguousResultError)
  })
})

it('example: a counter of visits', async () => {
  const [here, there] = [new Counter(client, '/visits'), new Counter(other, '/visits')]
  // Concurrent updates may back off, which takes time.
  await world.within(1000, Promise.all([here.add(1), there.add(2), here.add(3)]))
  expect(await run(there.get())).toBe(6n)
})

it('applies each update exactly once under any fault at any request', async () => {
  const played = await enumerateFaults(async (fixture, victim) => {
    const rival = await fixture.world.client()
    const counter = new Counter(victim.client, '/n')
    let sure = 0n
    let doubts = 0n
    const add = async (own: Counter, amount: bigint, signal?: AbortSignal): Promise<void> => {
      try {
        await own.add(amount, signal ? { signal } : {})
        sure += amount
      } catch (error) {
        if (!(error instanceof AmbiguousResultError)) throw error
        if (!victim.fault?.startsWith('session')) throw error
        doubts += amount
      }
    }
    await retryWithoutSignal(victim, (signal) => add(counter, 1n, signal))
    await Promise.all([
      retryWithoutSignal(victim, (signal) => add(counter, 10n, signal)),
      add(new Counter(rival, '/n'), 100n),
    ])
    await retryWithoutSignal(victim, (signal) => add(counter, 1000n, signal))
    const sum = await new Counter(rival, '/n').get()
    if (sum !== sure && sum !== sure + doubts)
      throw new Error(`counted ${sum} instead of ${sure} or ${sure + doubts}`)
    await fixture.waitUntilQuiet()
    const left = (await tree(rival)).filter((path) => path.includes('/op-') || path.includes('/line/'))
    if (left.length > 0) throw new Error(`left behind: ${left.join(' ')}`)
  })
  expect(played).toBeGreaterThan(60)
})

it('adds up exactly with many clients and random cuts, and every client succeeds', async () => {
  await withSeeds(seedsOf(6), async (random) => {
    const own = await ManualWorld.start()
    const clients = await Promise.all(Array.from({ length: 3 + random.below(18) }, () => own.client()))
    const all = Promise.all(
      clients.map(async (each) => {
        for (let n = 0; n < 5; n++) await new Counter(each, '/n').add()
      }),
    )
    all.catch(() => {})
    await cutAtRandom(own, random, 10, 300)
    await advanceUntilSettled(own, 120_000, all)
    expect(await advanceUntilSettled(own, 30_000, new Counter(clients[0]!, '/n').get())).toBe(
      BigInt(clients.length * 5),
    )
    await own.end()
  })
})
