import { ErrorCode, OpCode } from '@zabra/protocol'
import { ManualClock } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import { SessionTracker, type Session } from '../core/sessions/index.ts'
import type { Txn } from '../core/types.ts'
import { LeaderSessions, MIN_CLOSED } from './leader-sessions.ts'

const { OK, SESSIONEXPIRED, SESSIONMOVED, EPHEMERALONLOCALSESSION } = ErrorCode
const CREATE: Txn = { type: OpCode.createSession, timeOut: 4000 }
const CLOSE: Txn = { type: OpCode.closeSession, paths2Delete: [] }
/** Ids of sessions that server 3, the leader, and server 4 have begun. */
const OWN = 0x0300_0000_0000_0001n

const FOREIGN = 0x0400_0000_0000_0001n
const MIN = BigInt(MIN_CLOSED)

function leaderSessions({ allowsLocal = false, serverId = 3 } = {}) {
  const clock = new ManualClock()
  const sessions = new SessionTracker(1000, 0)
  const localSessions = allowsLocal ? new SessionTracker(1000, 0, { isLocal: true }) : undefined
  const created: Session[] = []
  const closed: bigint[] = []
  const leader = new LeaderSessions({
    clock,
    sessions,
    localSessions,
    serverId,
    onSessionCreated: (session) => created.push(session),
    onSessionClosed: (id) => closed.push(id),
  })
  return { leader, clock, sessions, localSessions, created, closed }
}

describe('the leader lets a session write', () => {
  it('through its owner only, which is the first one that asks', () => {
    const { leader } = leaderSessions()
    const [follower, other] = [{}, {}]
    leader.apply(OWN, CREATE, undefined)
    expect([follower, other, follower].map((owner) => leader.check(OWN, true, owner))).toEqual([
      OK,
      SESSIONMOVED,
      OK,
    ])
    expect(leader.revalidate(OWN, 4000, other)).toBe(true)
    expect([follower, other].map((owner) => leader.check(OWN, false, owner))).toEqual([SESSIONMOVED, OK])
  })

  it('before its creation is applied through the server that creates it', () => {
    const { leader, created } = leaderSessions()
    const [follower, other] = [{}, {}]
    leader.markCreating(OWN, follower)
    expect([follower, other].map((owner) => leader.check(OWN, true, owner))).toEqual([OK, SESSIONMOVED])
    leader.apply(OWN, CREATE, undefined)
    expect(created).toMatchObject([{ id: OWN, timeout: 4000, owner: follower, isClosing: false }])
    expect([follower, other].map((owner) => leader.check(OWN, true, owner))).toEqual([OK, SESSIONMOVED])
  })

  it('not after its end is prepared, whether its creation is applied or not, until that is undone', () => {
    const { leader, created } = leaderSessions()
    const follower = {}
    leader.markCreating(OWN, follower)
    leader.markClosing(OWN)
    expect([leader.check(OWN, true, follower), leader.isClosed(OWN)]).toEqual([SESSIONEXPIRED, true])
    expect(leader.revalidate(OWN, 4000, follower)).toBe(false)
    leader.apply(OWN, CREATE, undefined)
    expect(created[0]!.isClosing).toBe(true)
    expect(leader.check(OWN, true, follower)).toBe(SESSIONEXPIRED)
    leader.reopen(OWN)
    expect([leader.check(OWN, true, follower), leader.isClosed(OWN)]).toEqual([OK, false])
    leader.markClosing(OWN)
    expect(leader.isClosed(OWN)).toBe(true)
  })

  it('not when it is unknown, closed, or its creation is lost', () => {
    const { leader, closed } = leaderSessions()
    const follower = {}
    expect([leader.check(OWN, false, follower), leader.isClosed(OWN)]).toEqual([SESSIONEXPIRED, true])
    expect(leader.revalidate(OWN, 4000, follower)).toBe(false)
    leader.markCreating(OWN, follower)
    leader.discardCreating()
    expect(leader.check(OWN, false, follower)).toBe(SESSIONEXPIRED)
    leader.apply(OWN, CREATE, undefined)
    leader.apply(OWN, CLOSE, undefined)
    expect([leader.check(OWN, false, follower), closed]).toEqual([SESSIONEXPIRED, [OWN]])
    leader.markClosing(OWN)
    leader.reopen(OWN)
    expect(leader.isClosed(OWN)).toBe(true)
  })
})

describe('the leader takes a session that it does not know', () => {
  const follower = {}

  it.each([
    [3, FOREIGN],
    [0x104, OWN],
  ])(
    'for a local one of the server that has begun it (server %i), which cannot own a node',
    (serverId, id) => {
      const { leader } = leaderSessions({ allowsLocal: true, serverId })
      expect([false, true].map((global) => leader.check(id, global, follower))).toEqual([OK, SESSIONEXPIRED])
    },
  )

  it.each([
    [3, OWN],
    [0x103, OWN],
    [0xff, -1n],
  ])('for a local one of its own (server %i) only while that is open', (serverId, id) => {
    const { leader, localSessions } = leaderSessions({ allowsLocal: true, serverId })
    expect(leader.check(id, false, follower)).toBe(SESSIONEXPIRED)
    localSessions!.add(id, 4000, 0)
    expect([false, true].map((global) => leader.check(id, global, follower))).toEqual([
      OK,
      EPHEMERALONLOCALSESSION,
    ])
  })

  it('for none that it has closed, of which it remembers the last 32,768 at least', () => {
    const { leader } = leaderSessions({ allowsLocal: true })
    for (let n = 0n; n < 2n * MIN; n++) leader.apply(FOREIGN + n, CLOSE, undefined)
    const checks = [MIN - 1n, MIN, 2n * MIN - 1n, 2n * MIN].map((n) =>
      leader.check(FOREIGN + n, false, follower),
    )
    expect(checks).toEqual([OK, SESSIONEXPIRED, SESSIONEXPIRED, OK])
  })
})

describe('the deadline of a session', () => {
  it('moves when its client is back or a learner reports it, and not once it closes', () => {
    const { leader, clock, sessions } = leaderSessions()
    leader.apply(OWN, CREATE, undefined)
    const session = sessions.get(OWN)!
    const deadlines: number[] = []
    const note = (): number => deadlines.push(session.deadline - clock.monotonic())
    const start = clock.monotonic()
    note()
    leader.touch(OWN, 6000)
    note()
    leader.revalidate(OWN, 9000, {})
    note()
    leader.touch(FOREIGN, 5000)
    leader.markClosing(OWN)
    leader.touch(OWN, 1000)
    note()
    expect([deadlines, clock.monotonic()]).toEqual([[4000, 6000, 9000, 9000], start])
  })
})
