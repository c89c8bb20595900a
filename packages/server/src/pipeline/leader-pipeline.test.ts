import {
  CreateMode,
  ErrorCode,
  OPEN_ACL_UNSAFE,
  OpCode,
  Reader,
  writeCreateRequest,
  writeMultiRequest,
  Writer,
  writeReconfigRequest,
} from '@zabra/protocol'
import { ManualClock } from '@zabra/runtime'
import { describe, expect } from 'vitest'
import { SessionTracker } from '../core/sessions/index.ts'
import { decodeLoggedTxn } from '../persistence/index.ts'
import { LeaderPipeline } from './leader-pipeline.ts'
import { spendTime, watchFalls } from '../testing/many-connections.ts'
import { PipelineFixture } from './testing/pipeline-fixture.ts'
import type { RevalidationCallback, WriteCallback } from './types.ts'
import { EPOCH, EnsembleFixture, it } from './testing/ensemble-fixture.ts'

const bytes = (write: (w: Writer) => void): Uint8Array => {
  const writer = new Writer()
  write(writer)
  return writer.take()
}

const setOf = (path: string, data = 'x'): Uint8Array =>
  bytes((w) => {
    w.string(path)
    w.buffer(new TextEncoder().encode(data))
    w.int(-1)
  })

/** Returns the body of a multi that takes several turns. */
const manyChecks = (): Uint8Array =>
  bytes((w) => {
    const check = { type: OpCode.check, path: '/', version: -1 } as const
    writeMultiRequest(
      w,
      Array.from({ length: 5000 }, () => check),
    )
  })

/** Returns a callback that records which requests are lost, and which syncs are done. */
function recordOutcomes() {
  const outcomes: string[] = []
  const callback = {
    onPart() {},
    onApplied() {},
    onSynced: () => void outcomes.push('synced'),
    onLost: ({ xid }: { readonly xid: number }) => void outcomes.push(`lost ${xid}`),
  }
  return { outcomes, callback }
}

describe('LeaderPipeline', () => {
  it('gives proposals consecutive zxids from the first of its epoch, and encodes each once', async () => {
    const ensemble = await EnsembleFixture.start()
    ensemble.holdsCommits = true
    const client = await ensemble.leader.client({})
    await ensemble.settle()
    expect(ensemble.proposals.map(({ zxid }) => zxid - EPOCH)).toEqual([1])
    expect(client.frames).toEqual([])
    const { payload } = ensemble.proposals[0]!
    expect(decodeLoggedTxn(new Reader(payload))).toMatchObject({
      header: { zxid: EPOCH + 1 },
      txn: { type: OpCode.createSession, timeOut: 10_000 },
    })
    await ensemble.commitHeld()
    expect(client.takeConnectResponse()?.timeOut).toBe(10_000)
    expect(ensemble.leader.pipeline.proposer.lastSize).toBe(payload.length)
  })

  it('does not change the bytes of proposals, and retains little else with them', async ({ ensemble }) => {
    const client = await ensemble.leader.connect()
    ensemble.holdsCommits = true
    const sizes = Array.from({ length: 200 }, (_, xid) => (xid % 50 === 49 ? 70_000 : (xid * 37) % 900))
    for (const [xid, size] of sizes.entries()) client.create(xid, `/${xid}`, 0, 'x'.repeat(size))
    await ensemble.settle()
    const payloads = ensemble.proposals.map(({ payload }) => payload)
    const txns = payloads.map(
      (payload) => decodeLoggedTxn(new Reader(payload)).txn as { path: string; data: Uint8Array },
    )
    expect(txns.map(({ path, data }) => [path, data.length])).toEqual(
      sizes.map((size, xid) => [`/${xid}`, size]),
    )
    expect(txns.every(({ data }) => data.every((byte) => byte === 0x78))).toBe(true)
    const sum = (lengths: readonly number[]): number => lengths.reduce((all, length) => all + length, 0)
    const kept = [...new Set(payloads.map(({ buffer }) => buffer))].map(({ byteLength }) => byteLength)
    expect(sum(kept)).toBeLessThan(3 * sum(payloads.map(({ length }) => length)))
    expect(Math.max(...kept)).toBeLessThan(200_000)
  })

  it('replies to a write only after a quorum has it, even if its own disk has', async ({ ensemble }) => {
    const client = await ensemble.leader.connect()
    ensemble.holdsCommits = true
    client.create(1, '/a')
    client.read(2, OpCode.exists, '/a')
    expect([await client.received(), ensemble.leader.pipeline.outstanding]).toEqual([[], 1])
    ensemble.holdsCommits = false
    expect(await client.received()).toEqual(['1:0', '2:0'])
  })

  it('keeps a container with a pending change, and one that is not due when its turn comes', async () => {
    const ensemble = await EnsembleFixture.start()
    const client = await ensemble.leader.client({})
    client.ask(1, OpCode.createContainer, (w) =>
      writeCreateRequest(w, { path: '/c', data: null, acl: OPEN_ACL_UNSAFE, flags: CreateMode.CONTAINER }),
    )
    await ensemble.settle()
    const remove = (isDue: boolean): number => {
      const before = ensemble.proposals.length
      ensemble.leader.clientService.runTurn(() => ensemble.leader.pipeline.deleteContainer('/c', () => isDue))
      return ensemble.proposals.length - before
    }
    ensemble.holdsCommits = true
    client.set(2, '/c', 'alive')
    await ensemble.settle()
    expect(remove(true)).toBe(0)
    await ensemble.commitHeld()
    expect([remove(false), remove(true)]).toEqual([0, 1])
  })

  it('completes a sync that waits behind a request which a full disk discards', async ({ ensemble }) => {
    const { pipeline, clientService } = ensemble.leader
    const multi = manyChecks()
    const { outcomes, callback } = recordOutcomes()
    const request = { sessionId: 1n, identities: [] }
    clientService.runTurn(() => {
      pipeline.write({ ...request, xid: 1, type: OpCode.multi }, new Reader(multi), callback)
      expect(pipeline.sync({ ...request, xid: 2, type: OpCode.sync }, callback)).toBe(undefined)
      pipeline.discardAfter(pipeline.proposer.lastZxid)
    })
    await ensemble.settle()
    expect(outcomes).toEqual(['lost 1', 'synced'])
    expect([pipeline.outstanding, pipeline.pendingSyncs]).toEqual([0, 0])
  })

  it('answers nothing behind requests that a full disk is about to discard', async ({ ensemble }) => {
    const { pipeline, clientService } = ensemble.leader
    const { outcomes, callback } = recordOutcomes()
    const request = { sessionId: 1n, identities: [] }
    const write = (xid: number, type: number, body: Uint8Array): void =>
      void pipeline.write({ ...request, xid, type }, new Reader(body), callback)
    ensemble.holdsCommits = true
    const durable = pipeline.proposer.lastZxid
    clientService.runTurn(() => {
      write(1, OpCode.setData, setOf('/zookeeper/quota'))
      write(2, OpCode.multi, manyChecks())
      write(3, OpCode.setData, setOf('/zookeeper/quota'))
      pipeline.closeSession(1n, 4, callback)
      pipeline.sync({ ...request, xid: 5, type: OpCode.sync }, callback)
    })
    // What is not durable is taken back over turns.
    ensemble.log.state = 'full'
    await ensemble.settle()
    expect(outcomes).toEqual([])
    clientService.runTurn(() => {
      pipeline.discardAfter(durable)
      for (const { done } of ensemble.confirms.splice(0)) done()
    })
    await ensemble.settle()
    expect(outcomes).toEqual(['lost 1', 'lost 2', 'lost 3', 'lost 4', 'synced'])
    expect([pipeline.outstanding, pipeline.pendingSyncs]).toEqual([0, 0])
  })

  it('completes a sync behind a request that was prepared on a full disk once that is discarded', async ({
    ensemble,
  }) => {
    const { pipeline, clientService } = ensemble.leader
    const { outcomes, callback } = recordOutcomes()
    const request = { sessionId: 1n, identities: [] }
    const durable = pipeline.proposer.lastZxid
    clientService.runTurn(() =>
      pipeline.write({ ...request, xid: 1, type: OpCode.multi }, new Reader(manyChecks()), callback),
    )
    ensemble.log.state = 'full'
    await ensemble.settle()
    clientService.runTurn(() => {
      pipeline.sync({ ...request, xid: 2, type: OpCode.sync }, callback)
      // Nothing was proposed that a quorum of one would wait for.
      for (const { done } of ensemble.confirms.splice(0)) done()
    })
    await ensemble.clock.untilIdle()
    expect(outcomes).toEqual([])
    clientService.runTurn(() => pipeline.discardAfter(durable))
    await ensemble.settle()
    expect(outcomes).toEqual(['lost 1', 'synced'])
  })

  it('reports a multi as lost, and goes on, when the disk becomes full between two of its steps', async ({
    ensemble,
  }) => {
    const { pipeline, clientService, failures } = ensemble.leader
    const check = { type: OpCode.check, path: '/', version: -1 } as const
    const parts = Array.from({ length: 5000 }, () => check)
    const multi = bytes((w) => writeMultiRequest(w, parts))
    const lost: number[] = []
    const callback = {
      onPart() {},
      onApplied() {},
      onSynced() {},
      onLost: ({ xid }: { readonly xid: number }) => void lost.push(xid),
    }
    const durable = pipeline.proposer.lastZxid
    clientService.runTurn(() => {
      const write = { sessionId: 1n, xid: 1, type: OpCode.multi, identities: [] }
      pipeline.write(write, new Reader(multi), callback)
    })
    ensemble.log.state = 'full'
    await ensemble.settle()
    expect([failures, ensemble.proposals]).toEqual([[], []])
    clientService.runTurn(() => pipeline.discardAfter(durable))
    expect([lost, pipeline.outstanding, pipeline.proposer.lastZxid]).toEqual([[1], 0, durable])
  })

  it('takes 2 ms of a turn for requests that a full disk discards, and refuses writes until all are answered', async () => {
    const ensemble = await EnsembleFixture.start()
    const { leader, clock } = ensemble
    const { pipeline, clientService } = leader
    await leader.connect()
    ensemble.holdsCommits = true
    const durable = pipeline.proposer.lastZxid
    const spend = spendTime(clock)
    const lost: number[] = []
    let refused = 0
    const request = { sessionId: 1n, type: OpCode.setData, identities: [] }
    const write = (xid: number): number =>
      pipeline.write({ ...request, xid }, new Reader(setOf('/')), callback)
    const callback = {
      onLost({ xid }: { readonly xid: number }) {
        lost.push(xid)
        spend(0.5)
        if (xid === 20 && write(99) === ErrorCode.SYSTEMERROR) refused++
      },
    } as unknown as WriteCallback
    clientService.runTurn(() => {
      for (let xid = 0; xid < 40; xid++) write(xid)
    })
    const most = watchFalls(clock, () => 40 - lost.length)
    clock.immediate(() => clientService.runTurn(() => pipeline.discardAfter(durable)))
    await clock.untilIdle()
    expect(lost).toEqual(Array.from({ length: 40 }, (_, xid) => xid))
    expect([most(), refused, pipeline.isWritable]).toEqual([8, 1, true])
  })

  it('applies what is durable over turns when the disk is full, before it answers what is discarded and takes writes', async () => {
    const ensemble = await EnsembleFixture.start()
    const { leader, clock } = ensemble
    const { pipeline, clientService } = leader
    const { sessionId } = (await leader.connect()).session!
    ensemble.holdsCommits = true
    const durable = pipeline.proposer.lastZxid + 60
    const spend = spendTime(clock)
    const [applied, lost, refused]: number[][] = [[], [], []]
    const request = { sessionId, type: OpCode.setData, identities: [] }
    const write = (xid: number): number =>
      pipeline.write({ ...request, xid }, new Reader(setOf('/zookeeper/quota')), callback)
    const callback = {
      onApplied({ xid }: { readonly xid: number }) {
        applied!.push(xid)
        spend(0.5)
      },
      onLost: ({ xid }: { readonly xid: number }) => void lost!.push(xid, applied!.length),
      onRevalidated: (isValid: boolean) => void lost!.push(isValid ? 1 : 0, applied!.length),
    } as unknown as WriteCallback
    clientService.runTurn(() => {
      for (let xid = 0; xid < 60; xid++) write(xid)
      pipeline.closeSession(sessionId, 60, callback)
    })
    const most = watchFalls(clock, () => 60 - applied!.length)
    clock.immediate(() =>
      clientService.runTurn(() => {
        pipeline.discardAfter(durable)
        pipeline.revalidate(sessionId, 10_000, callback as unknown as RevalidationCallback)
        refused!.push(write(61))
      }),
    )
    await clock.untilIdle()
    expect(applied).toEqual(Array.from({ length: 60 }, (_, xid) => xid))
    expect([most(), lost, refused]).toEqual([7, [60, 60, 1, 60], [ErrorCode.SYSTEMERROR]])
    expect([pipeline.isWritable, pipeline.outstanding, write(62)]).toEqual([true, 0, 0])
  })

  it('completes a sync when a quorum has confirmed its leadership, and starts no later request of the session before', async () => {
    const ensemble = await EnsembleFixture.start()
    const client = await ensemble.leader.connect()
    ensemble.holdsConfirms = true
    client.create(1, '/a')
    client.sync(2)
    client.sync(3)
    client.create(4, '/b')
    client.read(5, OpCode.exists, '/b')
    client.create(6, '/c')
    expect([await client.received(), ensemble.leader.pipeline.pendingSyncs]).toEqual([['1:0'], 2])
    ensemble.holdsConfirms = false
    ensemble.holdsCommits = true
    await ensemble.settle()
    // Both writes are in flight together again.
    expect([client.takeReceived(), ensemble.proposals.length]).toEqual([['2:0', '3:0'], 2])
    ensemble.holdsCommits = false
    expect(await client.received()).toEqual(['4:0', '5:0', '6:0'])
  })

  it('commits no request of a learner before an earlier sync of the learner is done', async () => {
    const ensemble = await EnsembleFixture.start()
    const [learner] = ensemble.learners
    const { sessionId } = (await learner!.fixture.connect()).session!
    ensemble.holdsConfirms = true
    const log: string[] = []
    const root = bytes((w) => w.string('/'))
    ensemble.forward(learner!, sessionId, 7, OpCode.sync, root)
    ensemble.forward(learner!, sessionId, 8, OpCode.sync, root)
    ensemble.forward(learner!, sessionId, 9, OpCode.setData, setOf('/zookeeper/quota'))
    ensemble.forward(learner!, sessionId, 10, OpCode.sync, root)
    log.push(`${ensemble.proposals.length} proposals, ${ensemble.confirms.length} syncs`)
    learner!.isHeld = true
    ensemble.holdsConfirms = false
    await ensemble.settle()
    log.push(`${learner!.fromLeader.length} packets`)
    expect(log).toEqual(['0 proposals, 2 syncs', '4 packets'])
  })

  it('drops requests behind the sync of a learner that has disconnected', async ({ ensemble, learner }) => {
    ensemble.holdsConfirms = true
    ensemble.forward(learner, 5n, 1, OpCode.sync)
    ensemble.forward(learner, 5n, 2, OpCode.setData)
    ensemble.leader.pipeline.removeLearner(learner)
    learner.isHeld = true
    ensemble.holdsConfirms = false
    await ensemble.settle()
    expect(ensemble.leader.pipeline.proposer.lastZxid).toBe(EPOCH)
  })

  it.for([
    ['a sync', OpCode.sync, () => bytes((w) => w.string('/'))],
    ['a multi that is prepared in steps', OpCode.multi, () => manyChecks()],
  ] as const)(
    'takes 2 ms of a turn for requests of a learner that waited behind %s, in their order',
    async ([, type, body]) => {
      const ensemble = await EnsembleFixture.start()
      const { leader, clock, proposals } = ensemble
      const learner = ensemble.learners[0]!
      const { sessionId } = (await learner.fixture.connect()).session!
      ensemble.holdsCommits = ensemble.holdsConfirms = true
      const before = proposals.length
      const spend = spendTime(clock)
      ensemble.log.appendPayload = () => spend(0.1)
      const submit = (cxid: number, of: number, content: Uint8Array): void =>
        leader.pipeline.submitForwarded(learner, {
          sessionId,
          xid: cxid,
          type: of,
          body: content,
          identities: [],
        })
      leader.clientService.runTurn(() => {
        submit(1, type, body())
        for (let cxid = 2; cxid < 1002; cxid++) submit(cxid, OpCode.setData, setOf('/zookeeper/quota'))
      })
      expect(proposals.length).toBe(before)
      const most = watchFalls(clock, () => 1002 - proposals.length)
      ensemble.holdsConfirms = false
      await ensemble.settle()
      const cxids = proposals
        .slice(before)
        .map(({ payload }) => decodeLoggedTxn(new Reader(payload)).header.cxid)
      expect(cxids.filter((cxid) => cxid > 1)).toEqual(Array.from({ length: 1000 }, (_, index) => index + 2))
      expect(most()).toBeLessThan(30)
    },
  )

  it('answers every request of a learner by a transaction, even one that cannot be decoded', async () => {
    const ensemble = await EnsembleFixture.start()
    ensemble.holdsCommits = true
    const [learner] = ensemble.learners
    const none = new Uint8Array(0)
    const requests = [
      { type: OpCode.create, body: none },
      { type: OpCode.setData, body: new Uint8Array([0, 0, 0, 9]) },
      { type: OpCode.multi, body: none },
      { type: OpCode.check, body: none },
      { type: OpCode.createSession, body: none },
      { type: OpCode.getData, body: none },
      { type: 77, body: none },
    ]
    requests.forEach(({ type, body }, cxid) => ensemble.forward(learner!, 9n, cxid, type, body))
    const txns = ensemble.proposals.map(({ payload }) => decodeLoggedTxn(new Reader(payload)))
    expect(txns.map(({ header, txn }) => [header.cxid, txn])).toEqual(
      requests.map((_, cxid) => [cxid, { type: OpCode.error, err: ErrorCode.MARSHALLINGERROR }]),
    )
    expect(ensemble.leader.failures).toEqual([])
  })

  it.for([
    { applied: 'everything is applied', isHeld: false },
    { applied: 'a transaction before them is applied', isHeld: true },
  ])('takes 2 ms of a turn for syncs that are confirmed together, once $applied', async ({ isHeld }) => {
    const ensemble = await EnsembleFixture.start()
    const { leader, clock } = ensemble
    const client = await leader.connect()
    ensemble.holdsCommits = ensemble.holdsConfirms = true
    if (isHeld) client.create(1, '/a')
    await ensemble.settle()
    const spend = spendTime(clock)
    let waiting = 40
    const onSynced = (): void => {
      waiting--
      spend(0.5)
    }
    const write = { sessionId: 1n, xid: 1, type: OpCode.sync, identities: [] }
    for (let sync = 0; sync < 40; sync++)
      leader.pipeline.sync(write, { onSynced } as unknown as WriteCallback)
    const most = watchFalls(clock, () => waiting)
    clock.immediate(() =>
      leader.clientService.runTurn(() => {
        for (const { done } of ensemble.confirms.splice(0)) done()
      }),
    )
    await clock.untilIdle()
    await ensemble.commitHeld()
    await ensemble.settle()
    expect([waiting, most() <= 8]).toEqual([0, true])
  })

  it('reports no failed write when its role ends, and accepts no more', async ({ ensemble, client }) => {
    ensemble.holdsCommits = true
    client.create(1, '/a')
    client.sync(2)
    await ensemble.settle()
    void ensemble.leader.clientService.endRole('Closed: the role is over')
    expect([await client.received(), client.closed]).toEqual([[], true])
    ensemble.leader.pipeline.commit(EPOCH + 5)
    ensemble.forward(ensemble.learners[0]!, 1n, 1, OpCode.setData)
    expect(ensemble.leader.tree.has('/a')).toBe(false)
    expect(ensemble.proposals.length).toBe(1)
    expect(ensemble.leader.failures).toEqual([])
  })

  it('neither proposes nor replies while leadership is being transferred', async ({ ensemble, client }) => {
    ensemble.isAccepting = false
    client.create(1, '/a')
    await ensemble.settle()
    expect(client.takeReceived()).toEqual([])
    expect(ensemble.proposals.length).toBe(0)
    expect(ensemble.leader.pipeline.outstanding).toBe(0)
  })

  it('replies to no request after a dropped one, neither of its own clients nor of learners', async () => {
    const ensemble = await EnsembleFixture.start()
    const [own, far] = [await ensemble.leader.client({}), await ensemble.learners[0]!.fixture.client({})]
    await ensemble.settle()
    for (const client of [own, far]) client.takeConnectResponse()
    ensemble.isAccepting = false
    for (const client of [own, far]) {
      client.create(1, '/a')
      client.sync(2)
    }
    expect(await own.received()).toEqual([])
    expect(far.takeReceived()).toEqual([])
    expect(ensemble.leader.pipeline.proposer.hasDropped).toBe(true)
    // Later requests would be validated against a transaction that was never proposed.
    ensemble.isAccepting = true
    own.create(3, '/b')
    expect([await own.received(), ensemble.proposals.length]).toEqual([[], ensemble.proposals.length])
    expect(ensemble.leader.tree.has('/b')).toBe(false)
  })

  it('accepts a client that has seen the first zxid of its epoch on another server', async ({ ensemble }) => {
    const ahead = await ensemble.leader.client({ seen: BigInt(EPOCH) })
    const tooFar = await ensemble.leader.client({ seen: BigInt(EPOCH + 2) })
    await ensemble.settle()
    expect([ahead.takeConnectResponse()?.timeOut, tooFar.closed]).toEqual([10_000, true])
  })
})

describe('global sessions', () => {
  it('get a new deadline from a new leader, and expire with their ephemeral nodes', async () => {
    const ensemble = await EnsembleFixture.start({ known: [[0x77n, 4000]] })
    expect(ensemble.leader.clientService.sessions.get(0x77n)).toMatchObject({ timeout: 4000 })
    await ensemble.advance(3900)
    ensemble.expire()
    await ensemble.settle()
    expect(ensemble.table.has(0x77n)).toBe(true)
    await ensemble.advance(1200)
    ensemble.expire()
    await ensemble.settle()
    expect([ensemble.table.has(0x77n), ensemble.learners[1]!.table.has(0x77n)]).toEqual([false, false])
  })

  it('live while their learner reports them, and expire on all servers when it does not', async () => {
    const ensemble = await EnsembleFixture.start()
    const [learner, other] = ensemble.learners
    const client = await learner!.fixture.connect({ timeout: 4000 })
    const { sessionId } = client.session!
    client.create(1, '/e', CreateMode.EPHEMERAL)
    await ensemble.settle()
    for (let i = 0; i < 6; i++) {
      client.ask(-2, OpCode.ping)
      await ensemble.advance(1000)
      ensemble.ping()
      ensemble.expire()
    }
    await ensemble.settle()
    expect([client.closed, other!.fixture.tree.has('/e')]).toEqual([false, true])
    // The client sends pings, but its learner does not report them.
    for (let i = 0; i < 6; i++) {
      client.ask(-2, OpCode.ping)
      await ensemble.advance(1000)
      ensemble.expire()
    }
    await ensemble.settle()
    expect(client.closed).toBe(true)
    expect(other!.fixture.tree.has('/e')).toBe(false)
    expect(other!.table.has(sessionId)).toBe(false)
  })

  it('move to another server, and a later request through the old one closes that connection', async () => {
    const ensemble = await EnsembleFixture.start()
    const [first, second] = ensemble.learners
    const old = await first!.fixture.connect()
    const session = old.session!
    old.create(1, '/a')
    expect(await old.received()).toEqual(['1:0'])
    const moved = await second!.fixture.client({ resume: session })
    await ensemble.settle()
    expect(moved.takeConnectResponse()).toMatchObject({ sessionId: session.sessionId })
    old.read(2, OpCode.exists, '/a')
    expect(await old.received()).toEqual(['2:0'])
    old.set(3, '/a', 'too late')
    moved.set(1, '/a', 'in time')
    expect([await old.received(), old.closed, moved.takeReceived()]).toEqual([[], true, ['1:0']])
    // The session moves to the leader itself.
    const home = await ensemble.leader.connect({ resume: session })
    moved.delete(2, '/a')
    home.set(1, '/a', 'home')
    expect([await moved.received(), moved.closed, home.takeReceived()]).toEqual([[], true, ['1:0']])
  })

  it('keep the timeout of their transaction in the table when clients negotiate another one later', async () => {
    const ensemble = await EnsembleFixture.start()
    const [first, second] = ensemble.learners
    const session = (await first!.fixture.connect({ timeout: 8000 })).session!
    const moved = await second!.fixture.client({ resume: session, timeout: 5000 })
    await ensemble.settle()
    expect(moved.takeConnectResponse()?.timeOut).toBe(5000)
    const tables = [ensemble.table, first!.table, second!.table]
    expect(tables.map((table) => table.get(session.sessionId))).toEqual([8000, 8000, 8000])
  })

  it('stay closed when a learner reports them that has not applied their closing', async ({ ensemble }) => {
    const client = await ensemble.learners[0]!.fixture.connect()
    const session = client.session!
    ensemble.holdsCommits = true
    ensemble.leader.clientService.runTurn(() =>
      ensemble.leader.pipeline.closeSession(session.sessionId, 0, undefined),
    )
    ensemble.leader.pipeline.touchSession(session.sessionId, 10_000)
    const answers: boolean[] = []
    for (const id of [session.sessionId, 12345n])
      ensemble.leader.clientService.runTurn(() =>
        ensemble.leader.pipeline.revalidateForLearner(ensemble.learners[1]!, id, 10_000, (valid) =>
          answers.push(valid),
        ),
      )
    expect(answers).toEqual([])
    await ensemble.commitHeld()
    expect([client.closed, ensemble.table.size, answers]).toEqual([true, 0, [false, false]])
  })

  it('are refused only by a leader that a quorum has confirmed', async ({ ensemble }) => {
    const known = (await ensemble.leader.connect()).session!
    const ended = (await ensemble.leader.connect()).session!
    ensemble.leader.clientService.runTurn(() =>
      ensemble.leader.pipeline.closeSession(ended.sessionId, 0, undefined),
    )
    await ensemble.settle()
    ensemble.holdsConfirms = true
    const client = await ensemble.leader.client({ resume: ended })
    const moved = await ensemble.learners[0]!.fixture.client({ resume: ended })
    const resumed = await ensemble.leader.client({ resume: known })
    await ensemble.settle()
    expect([client.takeConnectResponse(), moved.takeConnectResponse()]).toEqual([undefined, undefined])
    expect(resumed.takeConnectResponse()?.sessionId).toBe(known.sessionId)
    ensemble.holdsConfirms = false
    await ensemble.settle()
    expect([client.takeConnectResponse()?.timeOut, moved.takeConnectResponse()?.timeOut]).toEqual([0, 0])
  })

  it('may write before their createSession is committed, and not after their closeSession is proposed', async () => {
    const ensemble = await EnsembleFixture.start()
    ensemble.holdsCommits = true
    const [learner] = ensemble.learners
    const timeout = bytes((w) => w.int(5000))
    ensemble.forward(learner!, 6n, 0, OpCode.createSession, timeout)
    ensemble.forward(learner!, 6n, 1, OpCode.setData, setOf('/zookeeper/quota'))
    ensemble.forward(learner!, 6n, 2, OpCode.closeSession)
    ensemble.forward(learner!, 6n, 3, OpCode.setData, setOf('/zookeeper/quota'))
    const txns = ensemble.proposals.map(({ payload }) => decodeLoggedTxn(new Reader(payload)).txn)
    expect(txns.map(({ type }) => type)).toEqual([
      OpCode.createSession,
      OpCode.setData,
      OpCode.closeSession,
      OpCode.error,
    ])
    expect(txns[3]).toMatchObject({ err: ErrorCode.SESSIONEXPIRED })
    // Its createSession is committed, and its closeSession is not.
    ensemble.commitNext()
    expect(ensemble.leader.clientService.sessions.isOpen(6n)).toBe(false)
    await ensemble.commitHeld()
    expect(ensemble.table.has(6n)).toBe(false)
  })

  it('close once: a learner that forwards a second closeSession gets an error transaction', async () => {
    const ensemble = await EnsembleFixture.start()
    const [learner] = ensemble.learners
    const client = await learner!.fixture.connect()
    const { sessionId } = client.session!
    ensemble.holdsCommits = true
    ensemble.leader.clientService.runTurn(() =>
      ensemble.leader.pipeline.closeSession(sessionId, 0, undefined),
    )
    ensemble.forward(learner!, sessionId, 8, OpCode.closeSession)
    const proposed = [...ensemble.proposals]
    await ensemble.commitHeld()
    ensemble.holdsCommits = true
    ensemble.forward(learner!, sessionId, 9, OpCode.closeSession)
    proposed.push(...ensemble.proposals)
    await ensemble.commitHeld()
    const txns = proposed.map(({ payload }) => decodeLoggedTxn(new Reader(payload)))
    expect(txns.map(({ header, txn }) => [header.cxid, txn.type, 'err' in txn ? txn.err : 0])).toEqual([
      [0, OpCode.closeSession, 0],
      [8, OpCode.error, ErrorCode.SESSIONEXPIRED],
      [9, OpCode.error, ErrorCode.SESSIONEXPIRED],
    ])
    expect([client.closed, learner!.broken]).toEqual([true, []])
  })

  it('that left ephemeral nodes are closed by a new leader, by a proposed transaction', async () => {
    const ensemble = await EnsembleFixture.start()
    const client = await ensemble.learners[0]!.fixture.connect()
    const { sessionId } = client.session!
    client.create(1, '/e', CreateMode.EPHEMERAL)
    await ensemble.settle()
    ensemble.leader.clientService.sessions.remove(sessionId)
    ensemble.leader.clientService.runTurn(() => ensemble.leader.pipeline.closeOrphanedSessions())
    await ensemble.settle()
    const trees = [ensemble.leader, ...ensemble.learners.map(({ fixture }) => fixture)].map(({ tree }) =>
      tree.has('/e'),
    )
    expect(trees).toEqual([false, false, false])
  })
})

describe('local sessions', () => {
  it('need no transaction, end with their server, and are unknown to other servers', async () => {
    const ensemble = await EnsembleFixture.start({ localSessions: true, canUpgradeSessions: true })
    const [first, second] = ensemble.learners
    const client = await first!.fixture.connect({ timeout: 4000 })
    const session = client.session!
    client.create(1, '/a')
    client.read(2, OpCode.exists, '/a')
    expect(await client.received()).toEqual(['1:0', '2:0'])
    expect(ensemble.leader.pipeline.proposer.lastZxid).toEqual(EPOCH + 1)
    const elsewhere = await second!.fixture.client({ resume: session })
    await ensemble.settle()
    expect(elsewhere.takeConnectResponse()?.timeOut).toBe(0)
    const again = await first!.fixture.client({ resume: session })
    await ensemble.settle()
    expect([again.takeConnectResponse()?.sessionId, client.closed]).toEqual([session.sessionId, true])
    again.ask(3, OpCode.closeSession)
    expect(await again.received()).toEqual(['3:0'])
    expect(again.closed).toBe(true)
    expect(ensemble.leader.pipeline.proposer.lastZxid).toEqual(EPOCH + 1)
  })

  it('expire on their server', async () => {
    const ensemble = await EnsembleFixture.start({ localSessions: true })
    const { fixture } = ensemble.learners[0]!
    const client = await fixture.connect({ timeout: 4000 })
    await ensemble.advance(5100)
    fixture.clientService.runTurn(() => fixture.clientService.expiry.run())
    await ensemble.settle()
    expect([client.closed, fixture.clientService.localSessions!.size]).toEqual([true, 0])
  })

  it.each(['leader', 'learner'] as const)(
    'become global when they create an ephemeral node, on a %s',
    async (where) => {
      const ensemble = await EnsembleFixture.start({ localSessions: true, canUpgradeSessions: true })
      const fixture = where === 'leader' ? ensemble.leader : ensemble.learners[0]!.fixture
      const client = await fixture.connect({ timeout: 4000 })
      const { sessionId } = client.session!
      client.create(1, '/e', CreateMode.EPHEMERAL)
      client.read(2, OpCode.exists, '/e')
      expect(await client.received()).toEqual(['1:0', '2:0'])
      expect([ensemble.table.get(sessionId), fixture.clientService.localSessions!.size]).toEqual([4000, 0])
      for (let i = 0; i < 6; i++) {
        client.ask(-2, OpCode.ping)
        await ensemble.advance(1000)
        ensemble.ping()
        for (const { clientService } of [
          ensemble.leader,
          ...ensemble.learners.map((learner) => learner.fixture),
        ])
          clientService.runTurn(() => clientService.expiry.run())
      }
      expect(client.closed).toBe(false)
      client.takeReceived()
      client.ask(3, OpCode.closeSession)
      await ensemble.settle()
      expect(client.takeReceived()).toEqual(['3:0'])
      expect(ensemble.table.size).toBe(0)
      expect(ensemble.learners[1]!.fixture.tree.has('/e')).toBe(false)
    },
  )

  it.each(['leader', 'learner'] as const)(
    'cannot create an ephemeral node where they may not become global, on a %s',
    async (where) => {
      const ensemble = await EnsembleFixture.start({ localSessions: true })
      const fixture = where === 'leader' ? ensemble.leader : ensemble.learners[0]!.fixture
      const client = await fixture.connect()
      client.create(1, '/e', CreateMode.EPHEMERAL)
      client.create(2, '/p')
      expect(await client.received()).toEqual([`1:${ErrorCode.EPHEMERALONLOCALSESSION}`, '2:0'])
    },
  )
})

describe('a reconfiguration', () => {
  const ask = (curConfigId = -1n): ((w: Writer) => void) => {
    const request = { joiningServers: null, leavingServers: '3', newMembers: null, curConfigId }
    return (w) => writeReconfigRequest(w, request)
  }

  async function leader(answer: string | number, loggedIn: boolean) {
    const clock = new ManualClock()
    const proposals: Uint8Array[] = []
    const fixture: PipelineFixture<LeaderPipeline<never>> = await PipelineFixture.open({
      clock,
      sessions: new SessionTracker(1000, 0),
      settings: { skipAcl: loggedIn },
      reconfigure: () => answer,
      createPipeline: (context) =>
        new LeaderPipeline({
          ...context,
          log: { state: 'open', append() {}, appendPayload() {} },
          quorum: {
            sendsPayloads: true,
            isAccepting: true,
            propose: (zxid, payload) => {
              proposals.push(payload)
              clock.immediate(() => fixture.clientService.runTurn(() => fixture.pipeline.commit(zxid)))
            },
            confirmLeadership() {},
            sendSync() {},
          },
          lastZxid: EPOCH,
          serverId: 1,
        }) as unknown as LeaderPipeline<never>,
    })
    const client = await fixture.connect()
    return { client, clock, proposals, fixture }
  }

  it('writes the configuration node by a transaction of its own type', async () => {
    const { client, clock, proposals, fixture } = await leader('server.1=…\nversion=300000002', true)
    client.ask(1, OpCode.reconfig, ask())
    await clock.untilIdle()
    const [reply] = client.replies()
    expect([
      reply!.err,
      new TextDecoder().decode(fixture.tree.dataOf(fixture.tree.find('/zookeeper/config'))!),
    ]).toEqual([0, 'server.1=…\nversion=300000002'])
    expect(decodeLoggedTxn(new Reader(proposals[1]!)).txn).toMatchObject({
      type: OpCode.reconfig,
      path: '/zookeeper/config',
      version: -1,
    })
    expect(fixture.failures).toEqual([])
  })

  it('fails with the error of the ensemble, or without permission to write the node', async () => {
    const busy = await leader(ErrorCode.RECONFIGINPROGRESS, true)
    busy.client.ask(1, OpCode.reconfig, ask())
    const unauthorized = await leader('server.1=…', false)
    unauthorized.client.ask(1, OpCode.reconfig, ask())
    await busy.clock.untilIdle()
    await unauthorized.clock.untilIdle()
    expect(busy.client.takeReceived()).toEqual([`1:${ErrorCode.RECONFIGINPROGRESS}`])
    expect(unauthorized.client.takeReceived()).toEqual([`1:${ErrorCode.NOAUTH}`])
  })
})
