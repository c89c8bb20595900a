import { describe, expect, it } from 'vitest'
import { json, UsageError, utf8, type Client } from '@zabra/client/core'
import { LostError } from '../handles/lost.ts'
import { client, setupEachTest, expireSession, other, run, world } from '../testing/setup.ts'
import { tree } from '../testing/fault-fixture.ts'
import { bytes, rejectionOf, text } from '../testing/world.ts'
import type { Message } from './message.ts'
import { Queue, type QueueOptions } from './queue.ts'

setupEachTest('a', 'b')
const queueOf = (on: Client, options: Partial<QueueOptions<string>> = {}): Queue<string> =>
  new Queue(on, '/q', { codec: utf8, ...options })
const nextOf = async <T>(messages: AsyncGenerator<Message<T>>): Promise<Message<T>> => {
  const { done, value } = await run(messages.next())
  if (done) throw new Error('Expected a message')
  return value as Message<T>
}
const leftOver = async (): Promise<string[]> => {
  await world.settle()
  return (await run(tree(client))).filter((path) => /\/(items|claims|marks|line|putters)\//.test(path))
}

describe('take', () => {
  it('returns items in the order in which they were put, and leaves nothing', async () => {
    const queue = queueOf(client)
    for (const value of ['a', 'b', 'c']) await run(queue.put(value))
    const taken = [await run(queue.take()), await run(queue.take()), await run(queue.take())]
    expect(taken).toEqual(['a', 'b', 'c'])
    expect(await leftOver()).toEqual([])
    expect(world.server.stats().watches).toBe(0)
  })

  it('waits for an item, with one watch for all waiting consumers', async () => {
    const waiting = [client, other, client].map((each) => queueOf(each).take())
    await world.settle()
    expect(world.server.stats().watches).toBe(3)
    const producer = queueOf(client)
    await run(producer.putAll(['a', 'b', 'c']))
    expect((await run(Promise.all(waiting))).toSorted()).toEqual(['a', 'b', 'c'])
    expect(await leftOver()).toEqual([])
    expect(world.server.stats().watches).toBe(0)
  })

  it('wakes one of many consumers per item', async () => {
    const events: string[] = []
    const crowd = await Promise.all(
      Array.from({ length: 10 }, () =>
        world.client({ instrumentation: { event: ({ type, path }) => void events.push(`${type} ${path}`) } }),
      ),
    )
    await run(queueOf(client).put('first'))
    await run(queueOf(client).take())
    const abort = new AbortController()
    const waits = crowd.map((each) => queueOf(each).take({ signal: abort.signal }))
    for (const wait of waits) wait.catch(() => {})
    await world.settle()
    await run(queueOf(client).put('a'))
    await world.settle()
    expect(events.filter((event) => event.includes('/items'))).toHaveLength(1)
    expect(events.filter((event) => event.includes('/line/'))).toHaveLength(1)
    abort.abort()
    await world.settle()
    expect(world.server.stats().watches).toBe(0)
    expect(await leftOver()).toEqual([])
  })

  it('removes its queue entry and watch when its signal aborts', async () => {
    const abort = new AbortController()
    const waiting = queueOf(client).take({ signal: abort.signal })
    waiting.catch(() => {})
    await world.settle()
    abort.abort()
    await expect(run(waiting)).rejects.toMatchObject({ name: 'AbortError' })
    await run(queueOf(other).put('a'))
    expect(await run(queueOf(other).take())).toBe('a')
    expect(await leftOver()).toEqual([])
  })

  it('wakes the next consumer when the session of the first one expires', async () => {
    const doomed = queueOf(other).take()
    doomed.catch(() => {})
    await world.settle()
    const heir = queueOf(client).take()
    await world.settle()
    await run(other.close())
    await run(queueOf(client).put('a'))
    expect(await run(heir)).toBe('a')
  })

  it('takes items that follow the ZooKeeper recipes page', async () => {
    await run(
      client.create('/q/items/queue-', {
        data: bytes('a'),
        mode: 'persistentSequential',
        parents: true,
        protected: false,
      }),
    )
    await run(client.create('/q/items/readme', { data: bytes('no item') }))
    expect(await run(queueOf(client).take())).toBe('a')
  })
})

describe('priority and delay', () => {
  it('an urgent item overtakes, for waiting and for busy consumers', async () => {
    const queue = queueOf(client)
    await run(queue.put('later', { priority: 5 }))
    await run(queue.put('normal'))
    await run(queue.put('urgent', { priority: -5 }))
    expect(await run(queue.take())).toBe('urgent')
    await run(queue.put('more urgent', { priority: -6 }))
    expect(await run(queue.take())).toBe('more urgent')
    expect(await run(queue.take())).toBe('normal')
    expect(await run(queue.take())).toBe('later')
  })

  it('an item is held back until it is due', async () => {
    const queue = queueOf(client)
    await run(queue.put('late', { delayMs: 5000 }))
    await run(queue.put('early', { delayMs: 2000 }))
    const taken: string[] = []
    for (let i = 0; i < 2; i++)
      void queueOf(other)
        .take()
        .then((value) => taken.push(value))
    await world.advance(1900)
    expect(taken).toEqual([])
    await world.advance(400)
    expect(taken).toEqual(['early'])
    await world.advance(3000)
    expect(taken).toEqual(['early', 'late'])
    expect(await leftOver()).toEqual([])
  })

  it.each([1e14, Infinity])('a delay of %d ms, which no name can hold, is refused', async (delayMs) => {
    await expect(run(queueOf(client).put('never', { delayMs }))).rejects.toBeInstanceOf(UsageError)
    expect(await run(queueOf(client).size())).toBe(0)
  })

  it('delays follow the server clock when the local clock jumps', async () => {
    const queue = queueOf(client)
    await run(queue.put('late', { delayMs: 5000 }))
    world.clock.jumpWall(3_600_000)
    const taking = queueOf(other).take()
    let taken = false
    void taking.then(() => (taken = true))
    await world.settle()
    expect(taken).toBe(true)
  })

  it('ready items come before delayed ones', async () => {
    const queue = queueOf(client)
    await run(queue.put('late', { delayMs: 5000, priority: -100 }))
    await run(queue.put('now'))
    expect(await run(queue.take())).toBe('now')
  })
})

describe('receive', () => {
  it('delivers each message to one consumer, and removes it on acknowledgement', async () => {
    await run(queueOf(client).putAll(['a', 'b']))
    const [one, two] = [queueOf(client).receive(), queueOf(other).receive()]
    const first = await nextOf(one)
    const second = await nextOf(two)
    expect([first.value, second.value]).toEqual(['a', 'b'])
    expect(first.deliveries).toBe(1)
    expect(second.token).toBeGreaterThan(first.token)
    await run(first.ack())
    expect(await run(queueOf(client).size())).toBe(1)
    expect(first.signal.reason).toMatchObject({ reason: 'released' })
    await run(second.ack())
    await run(Promise.all([one.return(), two.return()]))
    expect(await leftOver()).toEqual([])
  })

  it('returns a message that is left without an acknowledgement', async () => {
    const queue = queueOf(client)
    await run(queue.put('a'))
    await run(
      (async () => {
        for await (const message of queue.receive()) {
          await using own = message
          expect(own.deliveries).toBe(1)
          break
        }
      })(),
    )
    const again = await nextOf(queueOf(other).receive())
    expect([again.value, again.deliveries]).toEqual(['a', 2])
    await run(again.ack())
  })

  it('wakes a waiting consumer when a message is returned', async () => {
    await run(queueOf(client).put('a'))
    const message = await nextOf(queueOf(client).receive())
    const waiting = queueOf(other).receive().next()
    await world.settle()
    await run(message.nack())
    expect(((await run(waiting)).value as Message<string>).value).toBe('a')
  })

  it('delays a message that is returned with a delay', async () => {
    await run(queueOf(client).put('a'))
    const message = await nextOf(queueOf(client).receive())
    await run(message.nack({ delayMs: 2000 }))
    const waiting = queueOf(other).take()
    let got = false
    void waiting.then(() => (got = true))
    await world.advance(1900)
    expect(got).toBe(false)
    await world.advance(200)
    expect(got).toBe(true)
    expect(await leftOver()).toEqual([])
  })

  it("delivers again when a consumer's session expires between claim and acknowledgement", async () => {
    await run(queueOf(client).put('a'))
    const dying = await nextOf(queueOf(other).receive())
    const waiting = queueOf(client).receive().next()
    await world.settle()
    await run(other.close())
    expect(dying.signal.reason).toBeInstanceOf(LostError)
    const message = (await run(waiting)).value as Message<string>
    expect([message.value, message.deliveries]).toEqual(['a', 2])
    await run(message.ack())
  })

  it('aborts the signal when the connection breaks, and rejects the acknowledgement after another delivery', async () => {
    await run(queueOf(client).put('a'))
    const message = await nextOf(queueOf(other).receive())
    world.connections[1]!.cut()
    await world.settle()
    expect(message.signal.reason).toMatchObject({ reason: 'suspended' })
    await world.advance(3000)
    // No other consumer was waiting, so it can still be acknowledged.
    await run(message.ack())
    expect(await leftOver()).toEqual([])
  })

  it('rejects an acknowledgement after a delivery to another consumer', async () => {
    await run(queueOf(client).put('a'))
    const stale = await nextOf(queueOf(other).receive())
    await expireSession('b')
    const fresh = await world.client()
    const message = await nextOf(queueOf(fresh).receive())
    const late = stale.ack()
    late.catch(() => {})
    await expect(run(late)).rejects.toBeInstanceOf(LostError)
    await run(message.ack())
    await expect(run(message.ack())).resolves.toBeUndefined()
  })

  it('rejects an acknowledgement after the message was returned', async () => {
    await run(queueOf(client).put('a'))
    const message = await nextOf(queueOf(client).receive())
    await run(message.nack())
    await expect(run(message.ack())).rejects.toMatchObject({ reason: 'released' })
  })

  it('processes as many messages at once as concurrency allows', async () => {
    await run(queueOf(client).putAll(['a', 'b', 'c']))
    const messages = queueOf(client).receive({ concurrency: 2 })
    const first = await nextOf(messages)
    const second = await nextOf(messages)
    const third = messages.next()
    let got = false
    void third.then(() => (got = true))
    await world.settle()
    expect(got).toBe(false)
    await run(first.ack())
    expect(((await run(third)).value as Message<string>).value).toBe('c')
    await run(second.ack())
  })

  it('keeps nothing of the messages that pass while one is processed for long', async () => {
    await run(queueOf(client).putAll(Array.from({ length: 40 }, (_, n) => `${n}`)))
    const messages = queueOf(client).receive({ concurrency: 2 })
    const held = await nextOf(messages)
    let message = await nextOf(messages)
    const times = new Map<unknown, number>()
    // A spy of the test runner would call it itself.
    const then = Reflect.get(Promise.prototype, 'then') as (...reactions: never[]) => Promise<unknown>
    const counting = function (this: Promise<unknown>, ...reactions: [never, never]): Promise<unknown> {
      times.set(this, (times.get(this) ?? 0) + 1)
      return then.apply(this, reactions)
    }
    try {
      Reflect.set(Promise.prototype, 'then', counting)
      for (let n = 0; n < 38; n++) {
        const next = nextOf(messages)
        await world.settle()
        await run(message.ack())
        message = await next
      }
    } finally {
      Reflect.set(Promise.prototype, 'then', then)
    }
    // A race among all messages would leave a reaction in the one that is held, each time.
    expect(Math.max(...times.values())).toBeLessThan(20)
    await run(message.ack())
    await run(held.ack())
  })

  it('moves a message to the dead letters after too many deliveries', async () => {
    const queue = queueOf(client, { deadLetterAfter: 2 })
    await run(queue.putAll(['poison', 'good']))
    const messages = queue.receive()
    const seen = [await nextOf(messages), await nextOf(messages)].map(
      ({ value, deliveries }) => `${value} ${deliveries}`,
    )
    expect(seen).toEqual(['poison 1', 'poison 2'])
    expect((await nextOf(messages)).value).toBe('good')
    const [dead] = await run(queue.deadLetters())
    expect(text(dead!.data)).toBe('poison')
    await run(messages.return())
  })

  it('moves a message to the dead letters beside one of the same name', async () => {
    const queue = new Queue(client, '/q', { codec: json<number>() })
    const name = await run(queue.put(1))
    await run(other.setData(`/q/items/${name}`, '{'))
    await run(other.create(`/q/dead/${name}`, { data: 'older', parents: true }))
    await run(queue.put(2))
    let requests = 0
    world.faults.toServer = (chunk) => (++requests > 100 ? undefined : chunk)
    expect(await world.within(5000, queue.take())).toBe(2)
    expect((await run(queue.deadLetters())).map(({ data }) => utf8.decode(data)).toSorted()).toEqual([
      'older',
      '{',
    ])
  })

  it('rejects when a message cannot be moved to the dead letters', async () => {
    const queue = new Queue(client, '/q', { codec: json<number>() })
    await run(other.setData(`/q/items/${await run(queue.put(1))}`, '{'))
    await run(other.create('/q/dead', { acl: [{ scheme: 'world', id: 'anyone', perms: 1 }] }))
    let requests = 0
    world.faults.toServer = (chunk) => (++requests > 100 ? undefined : chunk)
    expect(await world.within(5000, rejectionOf(queue.take()))).toMatchObject({ name: 'NoAuthError' })
  })

  it('holds no caller whose time is up while a message moves to the dead letters', async () => {
    const queue = new Queue(client, '/q', { codec: json<number>() })
    const name = await run(queue.put(1))
    await run(other.setData(`/q/items/${name}`, '{'))
    let restore = (): void => {}
    world.faults.toServer = (chunk, connection) => {
      if (!text(chunk).includes('/q/dead/')) return chunk
      delete world.faults.toServer
      restore = world.refuseConnections()
      world.clock.immediate(() => connection.cut())
      return undefined
    }
    const failed = rejectionOf(queue.take({ timeoutMs: 300 }))
    expect(await world.within(400, failed)).toMatchObject({ code: 'OPERATION_TIMEOUT' })
    restore()
    await world.advance(5000)
    expect((await run(tree(other))).filter((path) => /\/(items|claims|dead|line)\//.test(path))).toEqual([
      `/q/items/${name}`,
    ])
  })

  it('ends its loop when its signal aborts while as many messages as concurrency allows are processed', async () => {
    const queue = new Queue(client, '/q', { codec: json<number>() })
    await run(queue.putAll([1, 2, 3]))
    const stop = new AbortController()
    const loop = queue.receive({ concurrency: 2, signal: stop.signal })
    const messages = [(await run(loop.next())).value!, (await run(loop.next())).value!]
    const third = loop.next()
    await world.advance(100)
    stop.abort()
    expect((await world.within(1000, third)).done).toBe(true)
    await run(Promise.all(messages.map((message) => message.ack())))
    expect(await run(queue.size())).toBe(1)
  })

  it('moves an undecodable message to the dead letters', async () => {
    const queue = new Queue<{ n: number }>(client, '/q', { codec: json() })
    await run(queue.put({ n: 1 }))
    const [name] = (await run(client.getChildren('/q/items'))).children
    await run(client.setData(`/q/items/${name}`, bytes('{')))
    await run(queue.put({ n: 2 }))
    expect(await run(queue.take())).toEqual({ n: 2 })
    expect(await run(queue.deadLetters())).toHaveLength(1)
  })
})

describe('a full queue', () => {
  it('makes producers wait, and wakes one per taken item', async () => {
    const queue = queueOf(client, { maxItems: 2 })
    await run(queue.put('a'))
    await run(queue.put('b'))
    const done: string[] = []
    for (const value of ['c', 'd'])
      void queueOf(other, { maxItems: 2 })
        .put(value)
        .then(() => done.push(value))
    await world.settle()
    expect(done).toEqual([])
    expect(await run(queue.take())).toBe('a')
    await world.settle()
    expect(done).toEqual(['c'])
    expect(await run(queue.take())).toBe('b')
    await world.settle()
    expect(done).toEqual(['c', 'd'])
    await world.settle()
    expect(world.server.stats().watches).toBe(0)
  })

  it('releases a waiting producer when its signal aborts', async () => {
    const queue = queueOf(client, { maxItems: 1 })
    await run(queue.put('a'))
    const abort = new AbortController()
    const waiting = queue.put('b', { signal: abort.signal })
    waiting.catch(() => {})
    await world.settle()
    abort.abort()
    await expect(run(waiting)).rejects.toMatchObject({ name: 'AbortError' })
    await world.settle()
    expect(world.server.stats().watches).toBe(0)
    expect((await leftOver()).filter((path) => path.includes('putters/'))).toEqual([])
  })
})

describe('cost per item', () => {
  async function counted(): Promise<{ queue: Queue<string>; requests: string[] }> {
    const requests: string[] = []
    const own = await world.client({
      instrumentation: { request: ({ operation }) => void requests.push(operation) },
    })
    return { queue: queueOf(own), requests }
  }

  it('put: a transaction and the deletion of its marker', async () => {
    const { queue, requests } = await counted()
    await run(queue.put('first'))
    requests.length = 0
    await run(queue.put('second'))
    expect(requests).toEqual(['multi', 'delete'])
  })

  it('receive from a long queue: a read, the claim and the acknowledgement', async () => {
    await run(queueOf(client).putAll(Array.from({ length: 400 }, (_, n) => String(n))))
    const { queue, requests } = await counted()
    const messages = queue.receive()
    for (let n = 0; n < 40; n++) {
      const message = await nextOf(messages)
      expect(message.value).toBe(String(n))
      await run(message.ack())
    }
    expect(requests.filter((operation) => operation === 'getChildren').length).toBeLessThanOrEqual(3)
    expect(requests.length).toBeLessThanOrEqual(40 * 3 + 5)
    await run(messages.return())
  })

  it('receive after waiting: a listing, a read and the claim, besides the queue entry', async () => {
    const { queue, requests } = await counted()
    const messages = queue.receive()
    const costs: string[][] = []
    const step = (): void => void costs.push(requests.splice(0))
    for (let n = 0; n < 2; n++) {
      const next = messages.next()
      await world.settle()
      step()
      await run(queueOf(client).put('x'))
      const message = (await run(next)).value as Message<string>
      step()
      await run(message.ack())
      step()
    }
    // The first put creates directories.
    expect(costs.slice(3)).toEqual([
      ['create', 'getChildren', 'getChildren'],
      ['getChildren', 'getData', 'multi'],
      ['multi'],
    ])
  })

  it('put with a hard bound: two more reads', async () => {
    const requests: string[] = []
    const own = await world.client({
      instrumentation: { request: ({ operation }) => void requests.push(operation) },
    })
    const queue = queueOf(own, { bound: 'hard', maxItems: 5 })
    await run(queue.put('first'))
    requests.length = 0
    await run(queue.put('second'))
    expect(requests).toEqual(['exists', 'exists', 'multi', 'delete'])
  })
})

it('example: workers share jobs, and a failed worker loses no job', async () => {
  interface Job {
    readonly to: string
  }
  const jobs = new Queue<Job>(client, '/jobs', { codec: json<Job>(), deadLetterAfter: 3 })
  await run(jobs.put({ to: 'ada' }))
  await run(jobs.put({ to: 'grace' }, { priority: -1 }))
  const done: string[] = []
  const stop = new AbortController()
  let failures = 1
  const worker = async (own: Queue<Job>): Promise<void> => {
    for await (const job of own.receive({ signal: stop.signal })) {
      if (failures-- > 0) continue // not acknowledged: it is delivered again
      done.push(job.value.to)
      await job.ack()
    }
  }
  const workers = [worker(jobs), worker(new Queue<Job>(other, '/jobs', { codec: json<Job>() }))]
  await world.advance(100)
  stop.abort()
  await run(Promise.allSettled(workers))
  expect(done.toSorted()).toEqual(['ada', 'grace'])
})

it('peek returns what would be taken next, and takes nothing', async () => {
  const queue = queueOf(client)
  expect(await run(queue.peek())).toBeUndefined()
  await run(queue.putAll(['a', 'b', 'c']))
  await run(queue.put('urgent', { priority: -1 }))
  expect([await run(queue.peek()), await run(queue.peek())]).toEqual(['urgent', 'urgent'])
  const message = await nextOf(queue.receive())
  expect(message.value).toBe('urgent')
  // A claimed item cannot be taken.
  expect(await run(queueOf(other).peek())).toBe('a')
  await run(message.ack())
  expect([await run(queue.take()), await run(queue.peek()), await run(queue.take())]).toEqual(['a', 'b', 'b'])
  expect(await run(queue.size())).toBe(1)
})

it('a plain queue of kazoo holds its items directly below its path', async () => {
  const plain = new Queue(client, '/plain', { codec: utf8, naming: 'kazooPlain' })
  await run(plain.put('a'))
  expect((await run(client.getChildren('/plain'))).children).toEqual(['entry-100-0000000000'])
  await run(
    other.create('/plain/entry-007-', { data: bytes('b'), mode: 'persistentSequential', protected: false }),
  )
  expect([await run(plain.take()), await run(plain.take())]).toEqual(['b', 'a'])
  expect(await run(plain.size())).toBe(0)
})
