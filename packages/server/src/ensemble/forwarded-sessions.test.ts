import { OpCode } from '@zabra/protocol'
import type { Connection } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { decodeRevalidationReply, encodeRevalidation, encodeTouches } from '../core/zab/index.ts'
import type { MemberContext } from './context.ts'
import { ForwardedSessions, MOST_FORWARDED_SESSIONS } from './forwarded-sessions.ts'

/** A learner that claims an id. */
class Learner {
  readonly serverId: number
  readonly accepted = {} as Connection
  readonly replies: unknown[] = []
  /** Why its connection was closed. */
  refusal: string | undefined

  constructor(serverId: number) {
    this.serverId = serverId
  }

  send(_type: number, _zxid: number, data: Uint8Array | null): void {
    this.replies.push(decodeRevalidationReply(data))
  }

  fail(reason: string): void {
    this.refusal = reason
  }
}

/** Forwarded sessions in an ensemble whose configuration names the servers of a set. */
class Fixture {
  readonly named = new Set<number>()
  readonly sessions = new ForwardedSessions({
    membership: { member: (id: number) => (this.named.has(id) ? {} : undefined) },
    security: { isAuthenticated: () => false },
    settings: { maxSessionTimeoutMs: 1000 },
  } as unknown as MemberContext)

  create(learner: Learner, id: bigint): string | undefined {
    const request = { sessionId: id, type: OpCode.createSession, body: new Uint8Array(4) }
    return this.sessions.refusal(learner, request)
  }

  /** Creates the most sessions. */
  fill(learner: Learner): void {
    for (let id = 1; id <= MOST_FORWARDED_SESSIONS; id++) this.create(learner, BigInt(id))
  }

  /** Revalidates a session. Returns a function that says whether it lives; undefined where it is refused at once. */
  revalidate(learner: Learner, id: bigint): ((isAlive?: boolean) => void) | undefined {
    let answered: ((isAlive?: boolean) => void) | undefined
    const data = encodeRevalidation({ session: id, timeout: 1000 })
    this.sessions.revalidate(learner, data, (_id, _timeout, answer) => {
      answered = (isAlive = true) => answer(isAlive)
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

const TOO_MANY = expect.stringContaining('which is the most')

it('revalidations that were in flight together do not exceed the most sessions', () => {
  const fixture = new Fixture()
  const stranger = new Learner(9)
  const ids = Array.from({ length: MOST_FORWARDED_SESSIONS + 1 }, (_, index) => BigInt(index))
  const inFlight = ids.map((id) => fixture.revalidate(stranger, id)!)
  const last = inFlight.pop()!
  for (const isAlive of inFlight) isAlive()
  expect(stranger.refusal).toBe(undefined)
  expect(stranger.replies).toHaveLength(MOST_FORWARDED_SESSIONS)
  last()
  expect(stranger.refusal).toEqual(TOO_MANY)
  expect(stranger.replies).toHaveLength(MOST_FORWARDED_SESSIONS)
  expect(fixture.mayTouch(stranger, ids.at(-1)!)).toBe(false)
  // One of them is revalidated again, and another one refused at once.
  const other = new Learner(10)
  fixture.revalidate(other, 0n)!()
  expect(other.refusal).toBe(undefined)
  expect([fixture.revalidate(other, ids.at(-1)!), other.refusal]).toEqual([undefined, TOO_MANY])
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
  expect(fixture.create(stranger, 0n)).toEqual(TOO_MANY)
  fixture.revalidate(member, 1n)!()
  expect(member.refusal).toBe(undefined)
  expect(fixture.mayTouch(stranger, 1n)).toBe(false)
  expect([fixture.create(stranger, 0n), fixture.create(stranger, 1n)]).toEqual([undefined, TOO_MANY])
})

it('sessions of a server that a configuration names later leave room for those of others, and live on', () => {
  const fixture = new Fixture()
  const [joiner, stranger] = [new Learner(9), new Learner(10)]
  fixture.create(stranger, 0n)
  fixture.fill(joiner)
  fixture.named.add(9)
  expect(fixture.mayTouch(joiner, 1n)).toBe(true)
  expect([fixture.create(stranger, 1n), fixture.mayTouch(stranger, 0n)]).toEqual([undefined, true])
  expect(fixture.mayTouch(stranger, 2n)).toBe(false)
})

it('a removed server keeps its sessions alive until it reconnects, and has no more new ones than other such servers', () => {
  const fixture = new Fixture()
  const removed = new Learner(1)
  fixture.named.add(1)
  expect([fixture.create(removed, -1n), fixture.mayTouch(removed, -1n)]).toEqual([undefined, true])
  fixture.named.delete(1)
  expect(fixture.mayTouch(removed, -1n)).toBe(true)
  fixture.fill(removed)
  expect(fixture.create(removed, 0n)).toEqual(TOO_MANY)
  expect(fixture.mayTouch(new Learner(1), -1n)).toBe(false)
})
