import { CreateMode, OPEN_ACL_UNSAFE, OpCode, Reader, writeMultiRequest } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import { SessionPasswords } from '../core/sessions/index.ts'
import { sessionUserOf } from '../core/tree/index.ts'
import { decodeLoggedTxn } from '../persistence/index.ts'
import { login } from '../testing/sasl-login.ts'
import type { RawClient } from '../testing/test-server.ts'
import { EnsembleFixture, type EnsembleFixtureOptions } from './testing/ensemble-fixture.ts'
import type { PipelineFixture } from './testing/pipeline-fixture.ts'

const LOCAL = { localSessions: true, canUpgradeSessions: true }
const SERVERS = ['leader', 'first learner', 'second learner'] as const

/** The parts of a multi that every server applies in several turns. */
const MANY_CREATES = Array.from({ length: 2000 }, (_, i) => ({
  type: OpCode.create,
  path: `/many${i}`,
  data: null,
  acl: OPEN_ACL_UNSAFE,
  flags: 0,
}))

/** Starts three servers that share a secret of sessions. */
const start = (options: EnsembleFixtureOptions = {}): Promise<EnsembleFixture> =>
  EnsembleFixture.start({
    settings: { saslUsers: { bob: 'secret', eve: 'hidden' } },
    passwords: new SessionPasswords({ bytes: new Uint8Array(32).fill(7), since: undefined }),
    ...options,
  })

const at = (ensemble: EnsembleFixture, server: (typeof SERVERS)[number]): PipelineFixture =>
  server === 'leader' ? ensemble.leader : ensemble.learners[SERVERS.indexOf(server) - 1]!.fixture

/** Connects as bob to a server that keeps local sessions, which a creation of `/lock` makes global without a commit. */
async function upgrading(server: (typeof SERVERS)[number]): Promise<[EnsembleFixture, RawClient]> {
  const ensemble = await start(LOCAL)
  const bob = await at(ensemble, server).connect()
  await login(bob, 'bob', 'secret')
  ensemble.holdsCommits = true
  bob.create(1, '/lock', CreateMode.EPHEMERAL)
  await ensemble.settle()
  return [ensemble, bob]
}

/** Asks for a node with the password of a session alone. Returns the client, whose request must not be answered. */
async function steal(fixture: PipelineFixture, { session }: RawClient): Promise<RawClient> {
  const thief = await fixture.client({ resume: session! })
  thief.read(1, OpCode.exists, '/')
  await fixture.untilIdle()
  return thief
}

describe('a local session that becomes global', () => {
  it.each(SERVERS.slice(0, 2))(
    'at the %s is global at no server and no time without its user',
    async (server) => {
      const [ensemble, { session }] = await upgrading(server)
      const { sessionId } = session!
      const ofSession = ensemble.proposals
        .map(({ payload }) => decodeLoggedTxn(new Reader(payload)))
        .filter(({ header }) => header.sessionId === sessionId)
      expect(ofSession.map(({ txn }) => ('path' in txn ? txn.path : txn.type))).toEqual([
        '/zookeeper/sessions',
        `/zookeeper/sessions/${sessionId.toString(16).padStart(16, '0')}`,
        OpCode.createSession,
        '/lock',
      ])
      while (ensemble.proposals.length > 0) {
        ensemble.commitNext()
        await ensemble.settle()
        for (const { fixture, table } of ensemble.learners)
          expect(sessionUserOf(fixture.tree, sessionId) !== undefined || !table.has(sessionId)).toBe(true)
      }
      expect(ensemble.table.has(sessionId)).toBe(true)
    },
  )

  it.each(
    SERVERS.slice(0, 2).flatMap((server) =>
      SERVERS.flatMap((thief) => [0, 1, 2, 3].map((committed) => [server, thief, committed] as const)),
    ),
  )(
    'at the %s is not resumed without a login at the %s after %i commits',
    async (server, place, committed) => {
      const [ensemble, bob] = await upgrading(server)
      for (let i = 0; i < committed; i++) ensemble.commitNext()
      await ensemble.settle()
      const thief = await steal(at(ensemble, place), bob)
      await ensemble.commitHeld()
      thief.read(1, OpCode.exists, '/')
      await ensemble.settle()
      expect([thief.closed, thief.takeReceived().includes('1:0')]).toEqual([true, false])
      const again = await at(ensemble, place).connect({ resume: bob.session! })
      await login(again, 'bob', 'secret')
      again.read(3, OpCode.exists, '/')
      expect(await again.received()).toEqual(['3:0'])
    },
  )
})

it('a local session that becomes global while the leader answers whether it is global is not resumed without a login', async () => {
  const ensemble = await start(LOCAL)
  const bob = await ensemble.leader.connect()
  await login(bob, 'bob', 'secret')
  ensemble.holdsConfirms = true
  const thief = await steal(ensemble.learners[0]!.fixture, bob)
  ensemble.holdsCommits = true
  bob.create(1, '/lock', CreateMode.EPHEMERAL)
  await ensemble.settle()
  ensemble.holdsConfirms = false
  await ensemble.settle()
  expect(thief.frames).toEqual([])
  await ensemble.commitHeld()
  expect([thief.closed, thief.frames]).toEqual([true, []])
})

describe('a global session', () => {
  it.each(SERVERS)(
    'is not resumed without a login at the %s while its user is being stored',
    async (place) => {
      const ensemble = await start()
      const bob = await at(ensemble, 'first learner').connect()
      ensemble.holdsCommits = true
      await login(bob, 'bob', 'secret')
      const thief = await steal(at(ensemble, place), bob)
      expect(thief.takeReceived()).not.toContain('1:0')
      await ensemble.commitHeld()
      thief.read(1, OpCode.exists, '/')
      await ensemble.settle()
      expect([thief.closed, thief.takeReceived().includes('1:0')]).toEqual([true, false])
    },
  )

  it.each(['leader', 'second learner'] as const)(
    'closes a connection without a login at the %s once its user is stored',
    async (place) => {
      const ensemble = await start()
      const bob = await at(ensemble, 'first learner').connect()
      const thief = await steal(at(ensemble, place), bob)
      expect(thief.takeReceived()).toContain('1:0')
      const again = await at(ensemble, 'first learner').connect({ resume: bob.session! })
      await login(again, 'bob', 'secret')
      await ensemble.settle()
      expect([thief.closed, again.closed]).toEqual([true, false])
      const late = await at(ensemble, place).connect({ resume: bob.session! })
      await login(late, 'bob', 'secret')
      await ensemble.settle()
      expect(late.closed).toBe(false)
    },
  )

  it('is not resumed without a login at a learner that still applies transactions before that of its user', async () => {
    const ensemble = await start()
    const bob = await at(ensemble, 'first learner').connect()
    const [, second] = ensemble.learners
    second!.isHeld = true
    const other = await ensemble.leader.connect()
    other.ask(1, OpCode.multi, (w) => writeMultiRequest(w, MANY_CREATES))
    await login(bob, 'bob', 'secret')
    const thief = await steal(second!.fixture, bob)
    expect(second!.fromLeader.length).toBeGreaterThan(2)
    second!.isHeld = false
    await ensemble.settle()
    expect(thief.takeReceived()).not.toContain('1:0')
  })
})

describe('a session that belongs to a user', () => {
  it('is not said to be over by a leader that cannot commit its end', async () => {
    const ensemble = await start()
    const bob = await at(ensemble, 'leader').connect()
    await login(bob, 'bob', 'secret')
    bob.connection.destroy()
    ensemble.holdsCommits = true
    await ensemble.advance(20_000)
    ensemble.expire()
    const again = await ensemble.leader.client({ resume: bob.session! })
    await ensemble.settle()
    expect([again.closed, again.frames.length]).toEqual([true, 0])
    await ensemble.commitHeld()
    const late = await ensemble.leader.connect({ resume: bob.session! })
    expect(late.session!.sessionId).toBe(0n)
  })

  it('is not said to be over by a learner that has its user and not the session yet', async () => {
    const [ensemble, bob] = await upgrading('first learner')
    ensemble.commitNext()
    ensemble.commitNext()
    await ensemble.settle()
    const again = await ensemble.learners[1]!.fixture.client({ resume: bob.session! })
    await ensemble.settle()
    expect([again.closed, again.frames.length]).toEqual([true, 0])
    await ensemble.commitHeld()
    const late = await ensemble.learners[1]!.fixture.connect({ resume: bob.session! })
    await login(late, 'bob', 'secret')
    expect(late.closed).toBe(false)
  })
})
