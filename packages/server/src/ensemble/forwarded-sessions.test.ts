import { OpCode } from '@zabra/protocol'
import type { Connection } from '@zabra/runtime'
import { expect, it } from 'vitest'
import type { MemberContext } from './context.ts'
import type { Forwarder } from './forwarded-identities.ts'
import { ForwardedSessions, MOST_FORWARDED_SESSIONS } from './forwarded-sessions.ts'

/** Forwarded sessions in an ensemble whose configuration names the servers of a set. */
class Fixture {
  readonly named = new Set<number>()
  readonly sessions = new ForwardedSessions({
    membership: { member: (id: number) => (this.named.has(id) ? {} : undefined) },
    security: { isAuthenticated: () => false },
  } as unknown as MemberContext)

  learner(serverId: number): Forwarder {
    return { serverId, accepted: {} as Connection }
  }

  create(learner: Forwarder, id: bigint): string | undefined {
    const request = { sessionId: id, type: OpCode.createSession, body: new Uint8Array(4) }
    return this.sessions.refusal(learner, request)
  }

  /** Creates the most sessions. */
  fill(learner: Forwarder): void {
    for (let id = 1; id <= MOST_FORWARDED_SESSIONS; id++) this.create(learner, BigInt(id))
  }
}

const TOO_MANY = expect.stringContaining('which is the most')

it('revalidations that were in flight together do not exceed the most sessions', () => {
  const fixture = new Fixture()
  const { sessions } = fixture
  const stranger = fixture.learner(9)
  const ids = Array.from({ length: MOST_FORWARDED_SESSIONS + 1 }, (_, index) => BigInt(index))
  expect(ids.filter((id) => sessions.refusalToRevalidate(stranger, id) !== undefined)).toEqual([])
  const refusals = ids.map((id) => sessions.revalidated(stranger, id))
  expect([refusals.at(-2), refusals.at(-1)]).toEqual([undefined, TOO_MANY])
  expect(sessions.mayTouch(stranger)(ids.at(-1)!)).toBe(false)
  // One of them is revalidated again.
  expect(sessions.revalidated(fixture.learner(10), 0n)).toBe(undefined)
})

it('a session that moves to a server which is believed leaves room for another one', () => {
  const fixture = new Fixture()
  const [stranger, member] = [fixture.learner(9), fixture.learner(1)]
  fixture.named.add(1)
  fixture.fill(stranger)
  expect(fixture.create(stranger, 0n)).toEqual(TOO_MANY)
  expect(fixture.sessions.revalidated(member, 1n)).toBe(undefined)
  expect(fixture.sessions.mayTouch(stranger)(1n)).toBe(false)
  expect([fixture.create(stranger, 0n), fixture.create(stranger, 1n)]).toEqual([undefined, TOO_MANY])
})

it('sessions of a server that a configuration names later leave room for those of others, and live on', () => {
  const fixture = new Fixture()
  const [joiner, stranger] = [fixture.learner(9), fixture.learner(10)]
  fixture.create(stranger, 0n)
  fixture.fill(joiner)
  fixture.named.add(9)
  expect(fixture.sessions.mayTouch(joiner)(1n)).toBe(true)
  expect([fixture.create(stranger, 1n), fixture.sessions.mayTouch(stranger)(0n)]).toEqual([undefined, true])
  expect(fixture.sessions.mayTouch(stranger)(2n)).toBe(false)
})

it('a removed server keeps its sessions alive until it reconnects, and has no more new ones than other such servers', () => {
  const fixture = new Fixture()
  const removed = fixture.learner(1)
  fixture.named.add(1)
  expect([fixture.create(removed, -1n), fixture.sessions.mayTouch(removed)(-1n)]).toEqual([undefined, true])
  fixture.named.delete(1)
  expect(fixture.sessions.mayTouch(removed)(-1n)).toBe(true)
  fixture.fill(removed)
  expect(fixture.create(removed, 0n)).toEqual(TOO_MANY)
  expect(fixture.sessions.mayTouch(fixture.learner(1))(-1n)).toBe(false)
})
