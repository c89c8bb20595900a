import { describe, expect, it } from 'vitest'
import { UsageError, utf8, type Client } from '@zabra/client/core'
import { client, setupEachTest, other, run, world } from '../testing/setup.ts'
import { bytes } from '../testing/world.ts'
import { curatorItems } from './curator-items.ts'
import type { Message } from './message.ts'
import { QueueFullError } from './producer.ts'
import { Queue, type QueueOptions } from './queue.ts'

setupEachTest('a', 'a')
const queueOf = (on: Client, options: Partial<QueueOptions<string>> = {}): Queue<string> =>
  new Queue(on, '/q', { codec: utf8, ...options })
const nextOf = async <T>(messages: AsyncGenerator<Message<T>>): Promise<Message<T>> =>
  (await run(messages.next())).value as Message<T>

describe('a hard bound', () => {
  it('is never exceeded by concurrent producers', async () => {
    const clients = await Promise.all([1, 2, 3, 4, 5].map(() => world.client()))
    const bounded = clients.map((each) => queueOf(each, { bound: 'hard', maxItems: 3 }))
    const puts = bounded.flatMap((queue, n) => [0, 1].map((m) => queue.put(`${n}-${m}`)))
    for (const put of puts) put.catch(() => {})
    await world.advance(1000)
    const lengths: number[] = []
    const taken: string[] = []
    for (let n = 0; n < 10; n++) {
      lengths.push(await run(bounded[0]!.size()))
      taken.push(await run(queueOf(client).take()))
      await world.advance(1000)
    }
    await run(Promise.all(puts))
    expect(Math.max(...lengths)).toBe(3)
    expect(new Set(taken).size).toBe(10)
    await world.settle()
    expect(world.server.stats().watches).toBe(0)
  })

  it('puts no items when it is given none', async () => {
    for (const bound of ['soft', 'hard'] as const) {
      expect(await run(queueOf(client, { bound }).putAll([]))).toEqual([])
      expect(await run(queueOf(client).size())).toBe(0)
    }
  })

  it('rejects with a QueueFullError with whenFull fail, and rejects more items than its size', async () => {
    for (const bound of ['soft', 'hard'] as const) {
      const queue = new Queue(client, `/${bound}`, { codec: utf8, bound, maxItems: 1 })
      await run(queue.put('a'))
      await expect(run(queue.put('b', { whenFull: 'fail' }))).rejects.toBeInstanceOf(QueueFullError)
    }
    const queue = queueOf(client, { bound: 'hard', maxItems: 1 })
    await expect(run(queue.putAll(['a', 'b']))).rejects.toBeInstanceOf(UsageError)
  })
})

describe('an item id', () => {
  it('finds its item before its turn and before it is due', async () => {
    const queue = queueOf(client)
    await run(queue.put('first'))
    const name = await run(queue.put('second', { id: 'order/2', delayMs: 60_000 }))
    expect(await run(queueOf(other).takeById('order/2'))).toBe('second')
    expect(await run(queue.takeById('order/2'))).toBeUndefined()
    expect(name).toContain('=order%2F2=-')
    expect(await run(queue.take())).toBe('first')
  })

  it('selects the oldest of several items, and no claimed one', async () => {
    const queue = queueOf(client)
    for (const value of ['a', 'b', 'c']) await run(queue.put(value, { id: 'x' }))
    const message = await nextOf(queueOf(other).receive())
    expect(await run(queue.takeById('x'))).toBe('b')
    expect(await run(queue.takeById('x'))).toBe('c')
    expect(await run(queue.takeById('x'))).toBeUndefined()
    await run(message.nack())
    expect(await run(queue.takeById('x'))).toBe('a')
  })
})

describe("Curator's item format", () => {
  const codec = curatorItems(utf8)

  it('round-trips several items in one znode', () => {
    for (const values of [[], ['a'], ['', 'ä', 'x'.repeat(300)]]) {
      expect(codec.decode(codec.encode(values))).toEqual(values)
    }
    expect([...codec.encode(['ab'])]).toEqual([0, 1, 0, 1, 1, 0, 0, 0, 2, 97, 98, 2])
  })

  it('rejects truncated data and other versions', () => {
    const whole = codec.encode(['ab'])
    for (let length = 0; length < whole.length; length++) {
      expect(() => codec.decode(whole.subarray(0, length))).toThrow(UsageError)
    }
    expect(() => codec.decode(bytes('abcdefgh'))).toThrow(UsageError)
    expect(() => codec.decode(new Uint8Array([0, 1, 0, 1, 1, 255, 255, 255, 255, 2]))).toThrow(UsageError)
  })
})
