import { utf8, type Client } from '@zabra/client/core'
import { expect, it } from 'vitest'
import { Barrier } from './barrier/index.ts'
import { Configuration } from './configuration/index.ts'
import { DoubleBarrier } from './double-barrier/index.ts'
import { Group } from './group/index.ts'
import { LeaderElection } from './leader-election/index.ts'
import { Lease } from './lease/index.ts'
import { Mutex } from './mutex/index.ts'
import { Partitioner } from './partitioner/index.ts'
import { Queue } from './queue/index.ts'
import { revoke } from './revocable/index.ts'
import { Semaphore } from './semaphore/index.ts'
import { client, cutOff, expireSession, other, setupEachTest, world } from './testing/setup.ts'
import { settledChildren } from './tree-cache/index.ts'
import { TwoPhaseCommit } from './two-phase-commit/index.ts'

setupEachTest('a', 'b')

/** Starts something that waits or holds; returns the signals that end with it. */
type Start = (own: Client) => Promise<readonly AbortSignal[]>

/** Runs work whose end the test does not await. */
function background(work: Promise<unknown>): void {
  work.catch(() => {})
}

async function drain(stream: AsyncIterable<unknown>): Promise<void> {
  for await (const _item of stream);
}

const limit = { timeoutMs: 600_000 }
const policies = { connection: 'connection', session: 'session', lease: { lease: {} } } as const

const starts: Record<string, Start> = {
  'a lease': async (own) => [
    (await new Lease(own, '/l', { holder: 'me', durationMs: 600_000 }).tryAcquire())!.signal,
  ],
  ...Object.fromEntries(
    Object.entries(policies).map(([name, errorPolicy]) => [
      `a mutex with the policy ${name}`,
      async (own: Client) => [(await new Mutex(own, '/m', { errorPolicy }).acquire()).signal],
    ]),
  ),
  'a wait for a mutex': async (own) => {
    await new Mutex(other, '/m').acquire()
    background(new Mutex(own, '/m').acquire())
    return []
  },
  permits: async (own) => [(await new Semaphore(own, '/s', { permits: 1 }).acquire()).signal],
  'a leadership': async (own) => {
    const terms = new LeaderElection(own, '/e', { announce: true }).leadership()
    return [(await terms.next()).value!.signal]
  },
  'a revocation': async (own) => {
    await new Mutex(other, '/m').acquire()
    background(revoke(own, '/m', { graceMs: 600_000 }))
    return []
  },
  'changes of a group that settle': async (own) => {
    background(drain(new Group(own, '/g', { settleMs: 600_000 }).changes()))
    await own.sync('/')
    await new Group(other, '/g').join('x', new Uint8Array(0))
    return []
  },
  'updates of a configuration with jitter': async (own) => {
    const config = new Configuration(own, '/c', { codec: utf8, defaults: 'a', jitterMs: 600_000 })
    background(drain(config.updates()))
    await own.sync('/')
    return []
  },
  'a partitioner that settles': async (own) => {
    background(new Partitioner(own, '/p', ['i'], { settleMs: 600_000 }).run(() => Promise.resolve()))
    await own.sync('/')
    return []
  },
  'a partitioner that works': async (own) => {
    let start = (_signal: AbortSignal): void => {}
    const started = new Promise<AbortSignal>((resolve) => (start = resolve))
    const work = async ({ signal }: { signal: AbortSignal }): Promise<void> => start(signal)
    background(new Partitioner(own, '/p', ['i'], { settleMs: 0 }).run(work))
    return [await started]
  },
  'a partitioner that waits for work which goes on': async (own) => {
    const started = new Promise<AbortSignal>((resolve) => {
      // The work ignores its signal.
      const work = ({ signal }: { signal: AbortSignal }): Promise<void> => new Promise(() => resolve(signal))
      const items = ['i', 'j', 'k', 'l']
      background(new Partitioner(own, '/p', items, { settleMs: 0, graceMs: 600_000 }).run(work))
    })
    await started
    const others = { settleMs: 0, graceMs: 600_000 }
    background(
      new Partitioner(other, '/p', ['i', 'j', 'k', 'l'], others).run(
        ({ signal }) => new Promise((resolve) => signal.addEventListener('abort', () => resolve())),
      ),
    )
    await own.sync('/')
    return []
  },
  ...Object.fromEntries(
    Object.entries({
      'a mutex': async (own: Client) => {
        await new Mutex(other, '/m').acquire()
        background(new Mutex(own, '/m').acquire(limit))
      },
      permits: async (own: Client) => {
        await new Semaphore(other, '/s', { permits: 1 }).acquire()
        background(new Semaphore(own, '/s', { permits: 1 }).acquire(limit))
      },
      'an item': async (own: Client) => background(new Queue(own, '/q', { codec: utf8 }).take(limit)),
      'room in a queue': async (own: Client) => {
        const queue = new Queue(own, '/q', { codec: utf8, bound: 'hard', maxItems: 1 })
        await queue.put('a')
        background(queue.put('b', limit))
      },
      'a barrier': async (own: Client) => {
        await new Barrier(other, '/b').set()
        background(new Barrier(own, '/b').wait(limit))
      },
      'the presence of a barrier': async (own: Client) =>
        background(new Barrier(own, '/b').waitForPresence(limit)),
      'a double barrier': async (own: Client) =>
        background(new DoubleBarrier(own, '/d', { members: 2 }).enter(limit)),
      'a node of another client': async (own: Client) => {
        await other.create('/names/a', { mode: 'ephemeral', parents: true })
        background(new Group(own, '/names', { codec: utf8 }).join('a', '1', limit))
      },
    }).map(([what, wait]) => [
      `a wait for ${what} with a timeout`,
      async (own: Client) => {
        await wait(own)
        await own.sync('/')
        return []
      },
    ]),
  ),
  'a message': async (own) => {
    const queue = new Queue(own, '/q', { codec: utf8 })
    await queue.put('a')
    return [(await queue.receive().next()).value!.signal]
  },
  'a message that was returned with a delay': async (own) => {
    const queue = new Queue(own, '/q', { codec: utf8 })
    await queue.put('a')
    const message = (await queue.receive().next()).value!
    await message.nack({ delayMs: 600_000 })
    return []
  },
  'a wait for an item with a delay': async (own) => {
    const queue = new Queue(own, '/q', { codec: utf8 })
    await queue.put('a', { delayMs: 600_000 })
    background(queue.take())
    await own.sync('/')
    return []
  },
  'a coordinator': async (own) => {
    const transaction = { participants: ['x'], payload: new Uint8Array(0), deadlineMs: 600_000 }
    background(new TwoPhaseCommit(own, '/t').run(transaction))
    await own.sync('/')
    return []
  },
  'a site that has applied a transaction which others have not': async (own) => {
    const nothing = (): Promise<void> => Promise.resolve()
    let applied = (): void => {}
    const done = new Promise<void>((resolve) => (applied = resolve))
    await new TwoPhaseCommit(own, '/t').join('x', {
      prepare: () => Promise.resolve('abort'),
      commit: nothing,
      abort: () => Promise.resolve(applied()),
    })
    const transaction = { participants: ['x', 'y'], payload: new Uint8Array(0), deadlineMs: 600_000 }
    await new TwoPhaseCommit(other, '/t').run(transaction)
    return done.then(() => [])
  },
  'children that settle': async (own) => {
    background(settledChildren(own, '/', 600_000))
    await own.sync('/')
    return []
  },
}

const states: Record<string, () => Promise<unknown>> = {
  'is connected': () => world.settle(),
  'is disconnected': async () => {
    cutOff('a')
    await world.advance(10)
  },
  'has a new session': () => expireSession('a'),
}

/** The names of the timers that remain when a client that did nothing has closed. */
async function timersOfServer(own: Client): Promise<Set<string>> {
  await world.outcome(own.close())
  await world.advance(100)
  return new Set(world.clock.pendingTimers().map(({ name }) => name))
}

const cases = Object.keys(starts).flatMap((start) =>
  Object.keys(states).map((state) => [start, state] as const),
)

it.each(cases)('%s leaves no timer when the client closes while it %s', async (start, state) => {
  const before = await timersOfServer(await world.client())
  const own = await world.client({ servers: 'a:2181' })
  const signals = await world.within(5000, starts[start]!(own))
  await world.advance(100)
  await states[state]!()
  const held = signals.filter(({ aborted }) => !aborted)
  if (state === 'is connected') expect(held).toEqual(signals)
  await world.within(5000, own.close())
  await world.settle()
  for (const { reason } of held) expect(reason).toMatchObject({ name: 'LostError', reason: 'closed' })
  expect(signals.every(({ aborted }) => aborted)).toBe(true)
  await world.within(5000, Promise.all([client.close(), other.close()]))
  const left = world.clock.pendingTimers().map(({ name }) => name)
  expect(left.filter((name) => !before.has(name))).toEqual([])
})

it('a caller that waits in the local queue of a mutex rejects when its client closes, though the holder never releases', async () => {
  const mutex = new Mutex(client, '/m')
  await world.within(5000, mutex.acquire())
  const waiting = Promise.allSettled([mutex.acquire(), mutex.acquire()])
  await world.within(5000, client.close())
  for (const ended of await world.within(5000, waiting))
    expect(ended).toMatchObject({ status: 'rejected', reason: { code: 'CLOSED' } })
})
