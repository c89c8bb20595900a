import { OpCode } from '@zabra/protocol'
import { ManualClock, type Connection } from '@zabra/runtime'
import { expect, it } from 'vitest'
import {
  decodeRevalidationReply,
  encodeRevalidation,
  encodeTouches,
  type MemberExtension,
} from '../core/zab/index.ts'
import type { ClientChannel } from '../connections/client-channel.ts'
import { movedSessionCheck, type PipelineContext } from '../pipeline/index.ts'
import type { MemberContext } from './context.ts'
import { ForwardedSessions, MOST_FORWARDED_SESSIONS } from './forwarded-sessions.ts'
import { SAID } from './testing/played-learner.ts'

/** A learner that claims an id. */
class Learner {
  readonly serverId: number
  readonly address = '127.0.0.1:1'
  readonly accepted = { remote: { host: '127.0.0.1', port: 1 } } as Connection
  readonly replies: unknown[] = []
  readonly extension: MemberExtension | undefined

  constructor(serverId: number, extension?: MemberExtension) {
    this.serverId = serverId
    this.extension = extension
  }

  send(_type: number, _zxid: number, data: Uint8Array | null): void {
    this.replies.push(decodeRevalidationReply(data))
  }
}

/** Forwarded sessions in an ensemble whose configuration names the servers of a set. */
class Fixture {
  readonly named = new Set<number>()
  readonly lines: object[] = []
  /** Sessions that are known to live. */
  readonly known = new Set<bigint>()
  readonly sessions = new ForwardedSessions({
    membership: { member: (id: number) => (this.named.has(id) ? {} : undefined) },
    security: { isAuthenticated: () => false },
    settings: { maxSessionTimeoutMs: 1000 },
    platform: { clock: new ManualClock(), logger: { warn: (context: object) => this.lines.push(context) } },
  } as unknown as MemberContext)
  readonly context = this.sessions.contextOf({
    sessions: { get: (id: bigint) => (this.known.has(id) ? {} : undefined) },
    onSessionClosed() {},
  } as unknown as PipelineContext<ClientChannel>)

  /** Returns whether a session may be created. */
  create(learner: Learner, id: bigint): boolean {
    const request = {
      sessionId: id,
      xid: 5,
      type: OpCode.createSession,
      body: new Uint8Array(4),
      identities: [],
    }
    const admitted = this.sessions.admit(learner, request)
    if (admitted === request) return true
    expect(admitted).toEqual(movedSessionCheck({ sessionId: id, xid: 5 }))
    return false
  }

  /** Creates the most sessions. */
  fill(learner: Learner): void {
    for (let id = 1; id <= MOST_FORWARDED_SESSIONS; id++) this.create(learner, BigInt(id))
  }

  /** Revalidates a session. Returns a function that says whether it lives; undefined where it is refused at once. */
  revalidate(learner: Learner, id: bigint): ((isAlive?: boolean) => void) | undefined {
    let answered: ((isAlive?: boolean) => void) | undefined
    const data = encodeRevalidation({ session: id, timeout: 1000 })
    this.sessions.revalidate(learner, data, (_id, _timeout, callback) => {
      answered = (isAlive = true) => callback.onRevalidated(isAlive)
    })
    return answered
  }

  mayTouch(learner: Learner, id: bigint): boolean {
    const touched: bigint[] = []
    const ping = encodeTouches([{ id, timeout: 1000 }])
    for (const _ of this.sessions.pingSteps(learner, ping, (one) => void touched.push(one)));
    return touched.length > 0
  }
}

it('revalidations that were in flight together do not exceed the most sessions', () => {
  const fixture = new Fixture()
  const stranger = new Learner(9, SAID)
  const ids = Array.from({ length: MOST_FORWARDED_SESSIONS + 1 }, (_, index) => BigInt(index))
  const inFlight = ids.map((id) => fixture.revalidate(stranger, id)!)
  const last = inFlight.pop()!
  for (const isAlive of inFlight) isAlive()
  expect(stranger.replies).toHaveLength(MOST_FORWARDED_SESSIONS)
  const refused = { session: ids.at(-1)!, valid: false, isRefused: true }
  last()
  expect(stranger.replies.splice(0).at(-1)).toEqual(refused)
  expect(fixture.mayTouch(stranger, ids.at(-1)!)).toBe(false)
  // One of them is revalidated again, and another one refused at once where it lives.
  fixture.revalidate(stranger, 0n)!()
  fixture.known.add(ids.at(-1)!)
  expect(fixture.revalidate(stranger, ids.at(-1)!)).toBe(undefined)
  expect(stranger.replies).toEqual([{ session: 0n, valid: true }, refused])
  // A server of Apache ZooKeeper gets no answer: it would take any for valid or over.
  const apache = new Learner(10)
  expect(fixture.revalidate(apache, ids.at(-1)!)).toBe(undefined)
  expect(apache.replies).toEqual([])
  fixture.revalidate(apache, -1n)!(false)
  expect(apache.replies).toEqual([{ session: -1n, valid: false }])
  expect(fixture.lines).toEqual([{ peer: 9, address: '127.0.0.1:1' }])
})

it('a session that is closed leaves room for another one', () => {
  const fixture = new Fixture()
  const stranger = new Learner(9)
  fixture.fill(stranger)
  expect([fixture.create(stranger, 0n), fixture.mayTouch(stranger, 0n)]).toEqual([false, false])
  fixture.context.onSessionClosed(1n, undefined, { type: OpCode.closeSession, paths2Delete: [] })
  expect([fixture.create(stranger, 0n), fixture.create(stranger, 1n)]).toEqual([true, false])
})

it('requests of a learner that are dropped while a session of theirs is refused leave their own room', () => {
  const fixture = new Fixture()
  const stranger = new Learner(9)
  fixture.fill(stranger)
  fixture.create(stranger, 0n)
  const [dropped, refused] = [
    { sessionId: 1n, type: OpCode.createSession },
    { sessionId: 2n, type: OpCode.check },
  ]
  fixture.sessions.dropped([dropped, refused])
  expect([fixture.create(stranger, 0n), fixture.create(stranger, 1n)]).toEqual([true, false])
})

it('a learner that revalidates sessions gets whether each lives, and one that does not live takes no room', () => {
  const fixture = new Fixture()
  const stranger = new Learner(9)
  fixture.revalidate(stranger, 1n)!(false)
  fixture.revalidate(stranger, 2n)!(true)
  expect(stranger.replies).toEqual([
    { session: 1n, valid: false },
    { session: 2n, valid: true },
  ])
  expect([fixture.mayTouch(stranger, 1n), fixture.mayTouch(stranger, 2n)]).toEqual([false, true])
})

it('a session that moves to a server which is believed leaves room for another one', () => {
  const fixture = new Fixture()
  const [stranger, member] = [new Learner(9), new Learner(1)]
  fixture.named.add(1)
  fixture.fill(stranger)
  expect(fixture.create(stranger, 0n)).toBe(false)
  fixture.revalidate(member, 1n)!()
  expect(member.replies).toEqual([{ session: 1n, valid: true }])
  expect(fixture.mayTouch(stranger, 1n)).toBe(false)
  expect([fixture.create(stranger, 0n), fixture.create(stranger, 1n)]).toEqual([true, false])
})

it('sessions of a server that a configuration names later leave room for those of others, and live on', () => {
  const fixture = new Fixture()
  const [joiner, stranger] = [new Learner(9), new Learner(10)]
  fixture.create(stranger, 0n)
  fixture.fill(joiner)
  fixture.named.add(9)
  expect(fixture.mayTouch(joiner, 1n)).toBe(true)
  expect([fixture.create(stranger, 1n), fixture.mayTouch(stranger, 0n)]).toEqual([true, true])
  expect(fixture.mayTouch(stranger, 2n)).toBe(false)
})

it('a removed server keeps its sessions alive until it reconnects, and has no more new ones than other such servers', () => {
  const fixture = new Fixture()
  const removed = new Learner(1)
  fixture.named.add(1)
  expect([fixture.create(removed, -1n), fixture.mayTouch(removed, -1n)]).toEqual([true, true])
  fixture.named.delete(1)
  expect(fixture.mayTouch(removed, -1n)).toBe(true)
  fixture.fill(removed)
  expect(fixture.create(removed, 0n)).toBe(false)
  expect(fixture.mayTouch(new Learner(1), -1n)).toBe(false)
})
