import {
  CreateMode,
  ErrorCode,
  EventType,
  OPEN_ACL_UNSAFE,
  OpCode,
  readMultiHeader,
  readStat,
  writeCreateRequest,
  writeMultiHeader,
  writeMultiRequest,
  Writer,
} from '@zabra/protocol'
import { ManualClock } from '@zabra/runtime'
import { describe, expect } from 'vitest'
import { SessionMap } from '../core/session-map.ts'
import { createOf } from '../core/testing/create-of.ts'
import { LearnerSessions, type SessionTable } from '../core/sessions/index.ts'
import type { LoggedTxn, Txn, Zxid } from '../core/types.ts'
import type { ForwardedRequest } from '../core/zab/index.ts'
import { encodeLoggedTxn } from '../persistence/index.ts'
import type { ClientChannel } from '../connections/client-channel.ts'
import { spendTime, watchFalls } from '../testing/many-connections.ts'
import type { RawClient } from '../testing/test-server.ts'
import { LearnerPipeline } from './learner-pipeline.ts'
import type { RevalidationCallback, WriteCallback } from './types.ts'
import { PipelineFixture } from './testing/pipeline-fixture.ts'
import { EPOCH, EnsembleFixture, it as test, loggedIn } from './testing/ensemble-fixture.ts'

/** A learner whose leader is scripted by the test. */
class LearnerFixture {
  readonly clock = new ManualClock()
  readonly table: SessionTable = new SessionMap()
  readonly forwarded: ForwardedRequest[] = []
  readonly revalidations: bigint[] = []
  readonly failures: string[] = []
  fixture!: PipelineFixture<LearnerPipeline<ClientChannel>>
  zxid: Zxid = EPOCH

  static async start(): Promise<LearnerFixture> {
    const script = new LearnerFixture()
    script.fixture = await PipelineFixture.open({
      clock: script.clock,
      sessions: new LearnerSessions(script.table),
      createPipeline: (context) =>
        new LearnerPipeline({
          ...context,
          epochStart: EPOCH,
          canUpgradeSessions: false,
          touchDelayMs: 1000,
          leader: {
            forward: (sent) => void script.forwarded.push({ ...sent, body: new Uint8Array(sent.body) }),
            revalidate: (id) => void script.revalidations.push(id),
            lastContactAt: () => script.clock.monotonic(),
            fail: (reason) => void script.failures.push(reason),
            reportDivergence: (zxid) => void script.failures.push(`diverged at ${zxid - EPOCH}`),
          },
        }),
    })
    return script
  }

  /** Opens a session, whose transaction the leader commits. */
  async connect(): Promise<RawClient> {
    const client = await this.fixture.client({})
    await this.clock.untilIdle()
    const { sessionId } = this.forwarded[0]!
    this.commit(sessionId, 0, { type: OpCode.createSession, timeOut: 10_000 })
    await this.clock.untilIdle()
    client.takeConnectResponse()
    return client
  }

  /** Commits a transaction as the leader. */
  commit(sessionId: bigint, cxid: number, txn: Txn, digest?: LoggedTxn['digest']): void {
    const zxid = ++this.zxid
    const writer = new Writer()
    encodeLoggedTxn(writer, { header: { sessionId, cxid, zxid, time: 1 }, txn, digest })
    const payload = writer.take()
    this.fromLeader((pipeline) => pipeline.applyCommitted(zxid, payload, loggedIn(payload)))
  }

  fromLeader(action: (pipeline: LearnerPipeline<ClientChannel>) => void): void {
    this.fixture.clientService.runTurn(() => action(this.fixture.pipeline))
  }
}

const it = test
  .extend('script', () => LearnerFixture.start())
  .extend('client', ({ script }) => script.connect())

describe('LearnerPipeline', () => {
  it('forwards a write unchanged with the identities of its client, and replies when its transaction is committed', async () => {
    const ensemble = await EnsembleFixture.start()
    const [learner] = ensemble.learners
    const client = await learner!.fixture.connect()
    const { sessionId } = client.session!
    expect(learner!.requests[0]).toMatchObject({ sessionId, xid: 0, type: OpCode.createSession })
    expect([...learner!.requests[0]!.body]).toEqual([0, 0, 0x27, 0x10])
    client.create(7, '/a', 0, 'data')
    await ensemble.settle()
    const request = learner!.requests[1]!
    expect(request).toMatchObject({
      sessionId,
      xid: 7,
      type: OpCode.create,
      identities: [{ scheme: 'ip', id: '127.0.0.1' }],
    })
    expect([...request.body.subarray(0, 6)]).toEqual([0, 0, 0, 2, 0x2f, 0x61])
    const [reply] = client.replies()
    expect([reply!.xid, reply!.zxid, reply!.err, reply!.body.string()]).toEqual([7, EPOCH + 2, 0, '/a'])
  })

  it('replies in order to a session that writes and reads while others write', async ({ ensemble }) => {
    const [first, second] = ensemble.learners
    const [client, other, home] = [
      await first!.fixture.client({}),
      await second!.fixture.client({}),
      await ensemble.leader.client({}),
    ]
    await ensemble.settle()
    for (const one of [client, other, home]) one.takeConnectResponse()
    client.create(1, '/a')
    client.read(2, OpCode.getData, '/a', true)
    other.create(1, '/b')
    home.create(1, '/c')
    client.set(3, '/a', 'one')
    client.read(4, OpCode.exists, '/a')
    client.set(5, '/a', 'two')
    client.sync(6)
    client.read(7, OpCode.exists, '/c')
    other.set(2, '/b', 'x')
    expect(await client.received()).toEqual([
      '1:0',
      '2:0',
      `event ${EventType.NodeDataChanged} /a`,
      '3:0',
      '4:0',
      '5:0',
      '6:0',
      '7:0',
    ])
    expect([other.takeReceived(), home.takeReceived()]).toEqual([['1:0', '2:0'], ['1:0']])
    const digests = [ensemble.leader, first!.fixture, second!.fixture].map(({ tree }) => tree.digest)
    expect(digests[1]).toEqual(digests[0])
    expect(digests[2]).toEqual(digests[0])
    expect(first!.fixture.pipeline.outstanding).toBe(0)
  })

  it('applies the transactions of the leader, and replies to all sessions, in random histories', async () => {
    const ensemble = await EnsembleFixture.start()
    const sides = [ensemble.leader, ...ensemble.learners.map(({ fixture }) => fixture)]
    const clients = await Promise.all(sides.flatMap((fixture) => [fixture.client({}), fixture.client({})]))
    await ensemble.settle()
    for (const client of clients) client.takeConnectResponse()
    // A small generator of pseudo-random numbers, the same each time.
    let seed = 20261121
    const random = (below: number): number => (seed = (seed * 48271) % 2147483647) % below
    const sent = clients.map(() => 0)
    for (let round = 0; round < 300; round++) {
      const which = random(clients.length)
      const client = clients[which]!
      const xid = ++sent[which]!
      const path = `/n${random(12)}`
      const kind = random(6)
      if (kind === 0) client.create(xid, path)
      else if (kind === 1) client.create(xid, path, CreateMode.EPHEMERAL)
      else if (kind === 2) client.delete(xid, path)
      else if (kind === 3) client.ask(xid, OpCode.sync, (w) => w.string(path))
      else if (kind === 4) client.read(xid, OpCode.exists, path, random(2) === 0)
      else client.set(xid, path, `${round}`)
      ensemble.holdsConfirms = random(3) === 0
      if (random(4) === 0) await ensemble.settle()
    }
    ensemble.holdsConfirms = false
    await ensemble.settle()
    clients.forEach((client, which) => {
      const xids = client
        .replies()
        .map(({ xid }) => xid)
        .filter((xid) => xid > 0)
      expect(xids).toEqual(Array.from({ length: sent[which]! }, (_, at) => at + 1))
    })
    for (const { tree, failures } of sides)
      expect([tree.digest, failures]).toEqual([ensemble.leader.tree.digest, []])
    expect(ensemble.learners.flatMap(({ broken, diverged }) => [...broken, ...diverged])).toEqual([])
  })

  it('rejects requests that the leader would never answer, in their order', async ({ ensemble, learner }) => {
    const client = await learner.fixture.connect()
    client.create(1, '/a')
    client.ask(2, OpCode.create, (w) => w.int(99))
    client.ask(3, OpCode.multi, (w) => {
      writeMultiHeader(w, { type: OpCode.create, done: false, err: -1 })
      w.string('/x')
      w.buffer(null)
      w.int(-1)
      w.int(0)
      writeMultiHeader(w, { type: -1, done: true, err: -1 })
    })
    client.ask(4, OpCode.reconfig)
    client.ask(5, OpCode.setData)
    client.set(6, '/a', 'x')
    await ensemble.settle()
    const err = ErrorCode.MARSHALLINGERROR
    expect(client.takeReceived()).toEqual(['1:0', `2:${err}`, `3:${err}`, `4:${err}`, `5:${err}`, '6:0'])
    expect(learner.requests.map(({ xid }) => xid)).toEqual([0, 1, 6])
  })

  it.each([3, 900])(
    'replies to each creation of a multi of %i by the operation that the client sent, as the leader does',
    async (count) => {
      const ensemble = await EnsembleFixture.start()
      const [learner] = ensemble.learners
      const kinds = [
        [OpCode.create, 0, OpCode.create],
        [OpCode.create2, 0, OpCode.create2],
        [OpCode.create2, CreateMode.CONTAINER, OpCode.create2],
      ] as const
      const kindOf = (index: number): (typeof kinds)[number] => kinds[index % kinds.length]!
      for (const fixture of [ensemble.leader, learner!.fixture]) {
        const client = await fixture.connect()
        const parent = fixture === ensemble.leader ? '/led' : '/learned'
        client.create(1, parent)
        client.ask(2, OpCode.multi, (w) => {
          for (let i = 0; i < count; i++) {
            const [type, flags] = kindOf(i)
            writeMultiHeader(w, { type, done: false, err: -1 })
            writeCreateRequest(w, { path: `${parent}/${i}`, data: null, acl: OPEN_ACL_UNSAFE, flags })
          }
          writeMultiHeader(w, { type: -1, done: true, err: -1 })
        })
        await ensemble.settle()
        const reply = client.replies().find(({ xid }) => xid === 2)!
        for (let i = 0; i < count; i++) {
          const { type } = readMultiHeader(reply.body)
          expect([i, type, reply.body.string()]).toEqual([i, kindOf(i)[2], `${parent}/${i}`])
          if (type === OpCode.create2) expect(readStat(reply.body).czxid).toBe(BigInt(reply.zxid))
        }
        expect(readMultiHeader(reply.body).done).toBe(true)
        expect(reply.body.remaining).toBe(0)
      }
    },
  )

  it('completes syncs in their order, one for each SYNC of the leader', async ({ script, client }) => {
    client.ask(1, OpCode.sync, (w) => w.string('/x'))
    client.ask(2, OpCode.sync, (w) => w.string(null))
    client.read(3, OpCode.exists, '/a')
    expect(await client.received()).toEqual([])
    expect(script.forwarded.slice(1).map(({ type }) => type)).toEqual([OpCode.sync, OpCode.sync])
    script.fromLeader((pipeline) => pipeline.completeSync())
    script.commit(99n, 1, createOf('/a'))
    expect(await client.received()).toEqual(['1:0'])
    script.fromLeader((pipeline) => pipeline.completeSync())
    expect(await client.received()).toEqual(['2:0', '3:0'])
    script.fromLeader((pipeline) => pipeline.completeSync())
    expect(script.failures).toEqual([
      'Expected a leader that follows the protocol, but it answers a sync that this server has not sent',
    ])
  })

  it('leaves a leader that answers a sync before an older write of the session', async ({ script }) => {
    const client = await script.connect()
    client.create(1, '/a')
    client.sync(2)
    await script.clock.untilIdle()
    script.fromLeader((pipeline) => pipeline.completeSync())
    expect([await client.received(), script.failures.length, script.fixture.failures]).toEqual([[], 1, []])
  })

  it('matches a transaction only with the oldest request of its session, by the xid', async ({ script }) => {
    const client = await script.connect()
    const { sessionId } = client.session!
    client.create(5, '/a')
    client.create(6, '/b')
    await script.clock.untilIdle()
    // The same xid of another session, and another xid of this session, sent through another server.
    script.commit(99n, 5, createOf('/x'))
    script.commit(sessionId, 4, createOf('/y'))
    expect([await client.received(), script.fixture.pipeline.outstanding]).toEqual([[], 2])
    script.commit(sessionId, 5, createOf('/a'))
    script.commit(sessionId, 6, { type: OpCode.error, err: ErrorCode.NODEEXISTS })
    expect(await client.received()).toEqual(['5:0', `6:${ErrorCode.NODEEXISTS}`])
    expect(['/x', '/y', '/a'].map((path) => script.fixture.tree.has(path))).toEqual([true, true, true])
  })

  it('resumes a session of a reconnecting client only after the leader has revalidated it', async () => {
    const script = await LearnerFixture.start()
    const resume = {
      protocolVersion: 0,
      timeOut: 10_000,
      sessionId: 0x0123456789abcdefn,
      passwd: new Uint8Array([
        0xf7, 0xcd, 0x1b, 0x8b, 0x3f, 0x94, 0x6c, 0x47, 0x74, 0x25, 0xd4, 0x1b, 0xe3, 0xf6, 0x67, 0xc6,
      ]),
      readOnly: false,
    }
    const [first, gone, second, wrong] = [
      await script.fixture.client({ resume }),
      await script.fixture.client({ resume }),
      await script.fixture.client({ resume }),
      await script.fixture.client({ resume, password: new Uint8Array(16) }),
    ]
    await script.clock.untilIdle()
    // This server rejects a wrong password itself.
    expect([script.revalidations.length, wrong.takeConnectResponse()?.timeOut, first.frames.length]).toEqual([
      3, 0, 0,
    ])
    first.read(1, OpCode.exists, '/')
    gone.connection.cut()
    await script.clock.untilIdle()
    script.fromLeader((pipeline) => pipeline.completeRevalidation(resume.sessionId, true))
    await script.clock.untilIdle()
    expect(first.takeConnectResponse()?.sessionId).toEqual(resume.sessionId)
    expect(first.takeReceived()).toEqual(['1:0'])
    script.fromLeader((pipeline) => pipeline.completeRevalidation(resume.sessionId, true))
    await script.clock.untilIdle()
    expect(first.closed).toBe(false)
    script.fromLeader((pipeline) => pipeline.completeRevalidation(resume.sessionId, false))
    script.fromLeader((pipeline) => pipeline.completeRevalidation(77n, true))
    await script.clock.untilIdle()
    expect([second.takeConnectResponse()?.timeOut, second.closed, script.failures]).toEqual([0, true, []])
  })

  it('closes the connection of a session that has moved, without a reply', async ({ script, client }) => {
    const { sessionId } = client.session!
    client.create(1, '/a')
    await script.clock.untilIdle()
    script.commit(sessionId, 0, { type: OpCode.closeSession, paths2Delete: [] })
    script.commit(sessionId, 1, { type: OpCode.error, err: ErrorCode.SESSIONEXPIRED })
    expect([await client.received(), client.closed, script.table.size]).toEqual([[], true, 0])
    expect(script.fixture.failures).toEqual([])
  })

  it('reports neither failed writes nor closed sessions when its role ends', async ({ script, client }) => {
    const session = client.session!
    const { sessionId } = session
    client.create(1, '/a')
    client.sync(2)
    const [arriving, coming] = [
      await script.fixture.client({}),
      await script.fixture.client({ resume: session }),
    ]
    await script.clock.untilIdle()
    void script.fixture.clientService.endRole('Closed: the role is over')
    // Later packets of the old leader are ignored.
    script.commit(sessionId, 1, createOf('/a'))
    script.fixture.pipeline.completeSync()
    script.fixture.pipeline.completeRevalidation(sessionId, false)
    await script.clock.untilIdle()
    for (const one of [client, arriving, coming]) expect([one.frames.length, one.closed]).toEqual([0, true])
    expect([script.fixture.tree.has('/a'), script.fixture.failures, script.failures]).toEqual([false, [], []])
  })

  it.for(['learner', 'leader'] as const)(
    'finishes a large transaction over turns of the event loop when the role of a %s ends',
    async (role) => {
      const ensemble = await EnsembleFixture.start()
      const { clock } = ensemble
      const { fixture } = ensemble.learners[0]!
      const { clientService, tree } = role === 'leader' ? ensemble.leader : fixture
      const client = await fixture.connect()
      const spend = spendTime(clock)
      const applyPart = tree.applyPart.bind(tree)
      let left = 2000
      tree.applyPart = (...args) => (left--, spend(0.05), applyPart(...args))
      const mostApplied = watchFalls(clock, () => left)
      const immediate = clock.immediate.bind(clock)
      let ended: Promise<unknown> | undefined
      clock.immediate = (action) =>
        immediate(() => {
          action()
          if (tree.isApplying) ended ??= clientService.endRole('Closed: the role is over').then(() => left)
        })
      const part = { type: OpCode.setData, path: '/', data: new Uint8Array(1), version: -1 } as const
      client.ask(1, OpCode.multi, (w) =>
        writeMultiRequest(
          w,
          Array.from({ length: 2000 }, () => part),
        ),
      )
      await ensemble.settle()
      expect([left, await ended, tree.isApplying, mostApplied() <= 200]).toEqual([0, 0, false, true])
    },
  )

  it('stops at a transaction whose digest differs from its tree, and does not reply to it', async () => {
    const script = await LearnerFixture.start()
    const client = await script.connect()
    const { sessionId } = client.session!
    client.create(1, '/a')
    await script.clock.untilIdle()
    script.commit(sessionId, 1, createOf('/a'), { hi: 1, lo: 2 })
    script.commit(sessionId, 2, createOf('/b'))
    expect(await client.received()).toEqual([])
    expect(script.failures).toEqual(['diverged at 2'])
    expect(script.fixture.tree.has('/b')).toBe(false)
  })

  it('leaves a leader that sends a malformed transaction, or one with another zxid', async () => {
    const one = await LearnerFixture.start()
    one.fromLeader((pipeline) => pipeline.applyCommitted(EPOCH + 1, new Uint8Array([1, 2, 3]), undefined))
    const two = await LearnerFixture.start()
    two.zxid = EPOCH + 4
    const writer = new Writer()
    encodeLoggedTxn(writer, {
      header: { sessionId: 1n, cxid: 1, zxid: EPOCH + 5, time: 0 },
      txn: { type: OpCode.error, err: -1 },
      digest: undefined,
    })
    two.fromLeader((pipeline) => pipeline.applyCommitted(EPOCH + 6, writer.take(), undefined))
    expect([one.failures.length, two.failures]).toEqual([
      1,
      ['Expected a leader that follows the protocol, but its packet of 0x300000006 holds 0x300000005'],
    ])
    expect([one.fixture.failures, two.fixture.failures]).toEqual([[], []])
  })

  it('does not reply to pings once the session may have expired at a leader that is silent', async () => {
    const ensemble = await EnsembleFixture.start()
    const [learner] = ensemble.learners
    const client = await learner!.fixture.connect({ timeout: 4000 })
    ensemble.heardAt = ensemble.clock.monotonic()
    await ensemble.advance(2900)
    client.ask(-2, OpCode.ping)
    expect(await client.received()).toEqual(['-2:0'])
    await ensemble.advance(200)
    client.ask(-2, OpCode.ping)
    client.read(1, OpCode.exists, '/')
    expect(await client.received()).toEqual(['1:0'])
    ensemble.heardAt = undefined
    client.ask(-2, OpCode.ping)
    expect(await client.received()).toEqual(['-2:0'])
  })
})

describe('LearnerSessions', () => {
  it('reports each session touched since the last report once', () => {
    const sessions = new LearnerSessions(
      new SessionMap([
        [1n, 4000],
        [2n, 5000],
        [3n, 6000],
      ]),
    )
    const one = sessions.resume(1n, 4000, 0)
    sessions.resume(2n, 7000, 0)
    sessions.touch(one, 10)
    expect(sessions.takeTouched().map(({ id, timeout }) => [id, timeout])).toEqual([
      [1n, 4000],
      [2n, 7000],
    ])
    expect(sessions.takeTouched()).toEqual([])
    sessions.touch(one, 20)
    sessions.remove(1n)
    expect([sessions.takeTouched(), sessions.size, sessions.isOpen(1n)]).toEqual([[], 2, false])
    expect([...sessions].map(({ id, timeout }) => [id, timeout])).toEqual([
      [2n, 7000],
      [3n, 6000],
    ])
    expect([sessions.expire(), sessions.nextDeadline]).toEqual([[], Infinity])
  })

  it('resumes a session before its createSession transaction is applied', () => {
    const table: SessionTable = new SessionMap()
    const sessions = new LearnerSessions(table)
    const session = sessions.resume(8n, 4000, 0)
    expect([sessions.isOpen(8n), table.size]).toEqual([true, 0])
    expect(sessions.add(8n, 4000, 5)).toBe(session)
    expect([table.get(8n), sessions.takeTouched().length]).toEqual([4000, 1])
    sessions.detach(8n)
    expect([sessions.isOpen(8n), sessions.get(8n)?.timeout]).toEqual([true, 4000])
  })

  it('takes 2 ms of a turn for answers of the leader to syncs and revalidations that arrive together', async ({
    script,
  }) => {
    const spend = spendTime(script.clock)
    const { pipeline } = script.fixture
    let waiting = 40
    const answered = (): void => {
      waiting--
      spend(0.5)
    }
    const callback = { onRevalidated: answered, onSynced: answered } as unknown as WriteCallback &
      RevalidationCallback
    const write = { sessionId: 1n, xid: 1, type: OpCode.sync, identities: [] }
    for (let id = 1n; id <= 20n; id++) {
      pipeline.revalidate(id, 10_000, callback)
      pipeline.sync(write, callback)
    }
    const most = watchFalls(script.clock, () => waiting)
    script.clock.immediate(() =>
      script.fromLeader(() => {
        for (let id = 1n; id <= 20n; id++) pipeline.completeRevalidation(id, true)
        for (let sync = 0; sync < 20; sync++) pipeline.completeSync()
      }),
    )
    await script.clock.untilIdle()
    expect([waiting, most()]).toEqual([0, 8])
  })

  it('notifies hundreds of the watchers of a node in a turn, before it replies to the write that has changed it', async ({
    script,
    client,
  }) => {
    const { watches } = script.fixture.clientService
    script.commit(99n, 1, createOf('/a'))
    let left = 5000
    for (let added = 0; added < 5000; added++)
      watches.watchData(
        {
          watchedPaths: new Set<string>(),
          identities: [],
          deliver: () => left--,
        } as unknown as ClientChannel,
        '/a',
      )
    const most = watchFalls(script.clock, () => left)
    client.set(1, '/a', 'x')
    await script.clock.untilIdle()
    const { sessionId } = client.session!
    script.clock.immediate(() =>
      script.commit(sessionId, 1, { type: OpCode.setData, path: '/a', data: new Uint8Array(0), version: 1 }),
    )
    const immediate = script.clock.immediate.bind(script.clock)
    let isEarly = false
    script.clock.immediate = (action) =>
      immediate(() => {
        action()
        isEarly ||= left > 0 && client.frames.length > 0
      })
    await script.clock.untilIdle()
    expect([left, most(), isEarly, client.takeReceived()]).toEqual([0, 900, false, ['1:0']])
  })
})
