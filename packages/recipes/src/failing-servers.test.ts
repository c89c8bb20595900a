import { utf8, type Client } from '@zabra/client/core'
import { expect, it } from 'vitest'
import {
  DoubleBarrier,
  LeaderElection,
  Lease,
  PersistentNode,
  Queue,
  ReadWriteLock,
  Semaphore,
} from './index.ts'
import { client, other, run, setupEachTest, world } from './testing/setup.ts'
import { TwoPhaseCommit } from './two-phase-commit/index.ts'

// A server without space refuses all writes, and one without a leader may reply that it does not know the outcome, at once and as long
// as that lasts. A loop that repeats a call must not keep it busy.

setupEachTest('a', 'b')

const SYSTEM_ERROR = -1
const OPERATION_TIMEOUT = -7
const CREATE = 15
const SET_DATA = 5
const MULTI = 14

/** Replies with an error to all requests of a kind. Returns a function that counts them. */
const failEach = (type: number, code: number): (() => number) =>
  world.answerWith(code, {
    times: 500,
    matches: ({ xid, frame }) =>
      xid > 0 && frame.length >= 12 && new DataView(frame.buffer, frame.byteOffset).getInt32(8) === type,
  })

interface Started {
  readonly count: () => number
  readonly done: Promise<unknown>
}
const queueOf = (of: Client): Queue<string> => new Queue(of, '/q', { codec: utf8, deadLetterAfter: 1 })

const uses: Record<string, () => Promise<Started>> = {
  'a put': async () => ({
    count: failEach(MULTI, OPERATION_TIMEOUT),
    done: queueOf(client).put('x'),
  }),
  'an acknowledgement': async () => {
    await run(queueOf(client).put('x'))
    const { value: message } = await run(queueOf(client).receive().next())
    return { count: failEach(MULTI, OPERATION_TIMEOUT), done: message!.ack() }
  },
  'a return to the queue': async () => {
    await run(queueOf(client).put('x'))
    const { value: message } = await run(queueOf(client).receive().next())
    return { count: failEach(MULTI, OPERATION_TIMEOUT), done: message!.nack() }
  },
  'a move to the dead letters': async () => {
    await run(queueOf(client).put('x'))
    const { value: message } = await run(queueOf(client).receive().next())
    await run(message!.nack())
    const count = failEach(MULTI, OPERATION_TIMEOUT)
    void queueOf(client)
      .take()
      .catch(() => {})
    return { count, done: Promise.resolve() }
  },
  'an acquire of a lease': async () => {
    await run(new Lease(other, '/l', { holder: 'other', durationMs: 60_000 }).acquire())
    const lease = new Lease(client, '/l', { holder: 'mine', durationMs: 60_000 })
    return { count: failEach(MULTI, OPERATION_TIMEOUT), done: lease.tryAcquire() }
  },
  'a resignation, without space': async () => {
    const held = await run(new LeaderElection(client, '/e', { announce: true }).acquire())
    return { count: failEach(MULTI, SYSTEM_ERROR), done: held.release() }
  },
  'an announcement': async () => ({
    count: failEach(MULTI, OPERATION_TIMEOUT),
    done: new LeaderElection(client, '/e', { announce: true }).acquire(),
  }),
  'a registration': async () => {
    await run(client.create('/r'))
    const node = new PersistentNode(client, '/r/x', 'x')
    return { count: failEach(CREATE, OPERATION_TIMEOUT), done: node.ready }
  },
  'a downgrade': async () => {
    const lock = new ReadWriteLock(client, '/rw')
    const held = await run(lock.write.acquire())
    return { count: failEach(MULTI, OPERATION_TIMEOUT), done: lock.downgrade(held) }
  },
  'an acquire of permits': async () => {
    const semaphore = new Semaphore(client, '/s', { permits: 1 })
    await run((await run(semaphore.acquire())).release())
    return { count: failEach(MULTI, OPERATION_TIMEOUT), done: semaphore.acquire() }
  },
  'the opening of a round': async () => ({
    count: failEach(SET_DATA, OPERATION_TIMEOUT),
    done: new DoubleBarrier(client, '/d', { members: 1 }).enter(),
  }),
  'the creation of a transaction': async () => {
    const request = { participants: ['x'], payload: '', deadlineMs: 0 }
    return { count: failEach(MULTI, OPERATION_TIMEOUT), done: new TwoPhaseCommit(client, '/t').run(request) }
  },
  'a decision': async () => {
    const done = new TwoPhaseCommit(client, '/t').run({
      participants: ['x'],
      payload: '',
      deadlineMs: 100,
    })
    await world.settle()
    return { count: failEach(MULTI, OPERATION_TIMEOUT), done }
  },
  'a vote': async () => {
    const nothing = (): Promise<void> => Promise.resolve()
    let vote = (_vote: 'commit'): void => {}
    const voted = new Promise<'commit'>((resolve) => (vote = resolve))
    const handlers = { prepare: () => voted, commit: nothing, abort: nothing }
    await run(new TwoPhaseCommit(client, '/t').join('x', handlers))
    const request = { participants: ['x'], payload: '', deadlineMs: 60_000 }
    const done = new TwoPhaseCommit(other, '/t').run(request)
    await world.settle()
    const count = failEach(MULTI, OPERATION_TIMEOUT)
    vote('commit')
    return { count, done }
  },
}

it.each(Object.entries(uses))(
  '%s is repeated more and more rarely while a server fails',
  async (_name, use) => {
    const { count, done } = await use()
    done.catch(() => {})
    await world.advance(3000)
    expect(count()).toBeGreaterThan(2)
    expect(count()).toBeLessThan(25)
    world.endIsolation()
    await world.within(20_000, done)
  },
)
