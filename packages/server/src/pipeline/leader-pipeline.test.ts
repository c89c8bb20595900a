import {
  CreateMode,
  ErrorCode,
  OPEN_ACL_UNSAFE,
  OpCode,
  Reader,
  writeCreateRequest,
  Writer,
  writeReconfigRequest,
} from '@zabra/protocol'
import { ManualClock } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import { SessionTracker } from '../core/sessions/index.ts'
import { decodeLoggedTxn } from '../persistence/index.ts'
import { LeaderPipeline } from './leader-pipeline.ts'
import { PipelineFixture } from './testing/pipeline-fixture.ts'
import { EPOCH, EnsembleFixture } from './testing/ensemble-fixture.ts'

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

describe('a leader', () => {
  it('numbers its proposals from the first of its epoch on, and encodes each once', async () => {
    const trio = await EnsembleFixture.start()
    trio.holdsCommits = true
    const client = await trio.leader.client({})
    await trio.settle()
    expect(trio.proposals.map(({ zxid }) => zxid - EPOCH)).toEqual([1])
    expect(client.frames).toEqual([])
    const { payload } = trio.proposals[0]!
    expect(decodeLoggedTxn(new Reader(payload))).toMatchObject({
      header: { zxid: EPOCH + 1 },
      txn: { type: OpCode.createSession, timeOut: 10_000 },
    })
    trio.holdsCommits = false
    await trio.settle()
    expect(client.takeConnectResponse()?.timeOut).toBe(10_000)
    expect(trio.leader.pipeline.proposer.lastSize).toBe(payload.length)
  })

  it('leaves what it has proposed as it was, and keeps little else with it, however much it proposes', async () => {
    const trio = await EnsembleFixture.start()
    const client = await trio.leader.client({})
    await trio.settle()
    client.takeConnectResponse()
    trio.holdsCommits = true
    const sizes = Array.from({ length: 300 }, (_, xid) => (xid % 50 === 49 ? 70_000 : (xid * 37) % 900))
    for (const [xid, size] of sizes.entries()) client.create(xid, `/${xid}`, 0, 'x'.repeat(size))
    await trio.settle()
    const payloads = trio.proposals.map(({ payload }) => payload)
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

  it('answers nobody before a quorum has it, whatever its own disk does', async () => {
    const trio = await EnsembleFixture.start()
    const client = await trio.leader.client({})
    await trio.settle()
    client.takeConnectResponse()
    trio.holdsCommits = true
    client.create(1, '/a')
    client.read(2, OpCode.exists, '/a')
    await trio.settle()
    expect([client.takeReceived(), trio.leader.pipeline.outstanding]).toEqual([[], 1])
    trio.holdsCommits = false
    await trio.settle()
    expect(client.takeReceived()).toEqual(['1:0', '2:0'])
  })

  it('removes no container while a change of it is on its way, nor one that is not due when its turn comes', async () => {
    const trio = await EnsembleFixture.start()
    const client = await trio.leader.client({})
    client.ask(1, OpCode.createContainer, (w) =>
      writeCreateRequest(w, { path: '/c', data: null, acl: OPEN_ACL_UNSAFE, flags: CreateMode.CONTAINER }),
    )
    await trio.settle()
    const remove = (isDue: boolean): number => {
      const before = trio.proposals.length
      trio.leader.clientService.runTurn(() => trio.leader.pipeline.deleteContainer('/c', 0, () => isDue))
      return trio.proposals.length - before
    }
    trio.holdsCommits = true
    client.set(2, '/c', 'alive')
    await trio.settle()
    expect(remove(true)).toBe(0)
    trio.holdsCommits = false
    await trio.settle()
    expect([remove(false), remove(true)]).toEqual([0, 1])
  })

  it('answers a sync once a quorum has confirmed it, and begins nothing of the session behind it before', async () => {
    const trio = await EnsembleFixture.start()
    const client = await trio.leader.client({})
    await trio.settle()
    client.takeConnectResponse()
    trio.holdsConfirms = true
    client.create(1, '/a')
    client.ask(2, OpCode.sync, (w) => w.string('/'))
    client.ask(3, OpCode.sync, (w) => w.string('/'))
    client.create(4, '/b')
    client.read(5, OpCode.exists, '/b')
    client.create(6, '/c')
    await trio.settle()
    expect([client.takeReceived(), trio.leader.pipeline.pendingSyncs]).toEqual([['1:0'], 2])
    trio.holdsConfirms = false
    trio.holdsCommits = true
    await trio.settle()
    // Both writes are on their way together again.
    expect([client.takeReceived(), trio.proposals.length]).toEqual([['2:0', '3:0'], 2])
    trio.holdsCommits = false
    await trio.settle()
    expect(client.takeReceived()).toEqual(['4:0', '5:0', '6:0'])
  })

  it('never commits a request of a learner before the sync that came before it is over', async () => {
    const trio = await EnsembleFixture.start()
    const [learner] = trio.learners
    const client = await learner!.fixture.client({})
    await trio.settle()
    const { sessionId } = client.takeConnectResponse()!
    trio.holdsConfirms = true
    const log: string[] = []
    const note = (cxid: number, type: number): void =>
      trio.leader.clientService.runTurn(() =>
        trio.leader.pipeline.submitForwarded(learner!, {
          sessionId,
          cxid,
          type,
          body: type === OpCode.sync ? bytes((w) => w.string('/')) : setOf('/zookeeper/quota'),
          identities: [],
        }),
      )
    note(7, OpCode.sync)
    note(8, OpCode.sync)
    note(9, OpCode.setData)
    note(10, OpCode.sync)
    log.push(`${trio.proposals.length} proposals, ${trio.confirms.length} syncs`)
    learner!.isHeld = true
    trio.holdsConfirms = false
    await trio.settle()
    log.push(`${learner!.fromLeader.length} packets`)
    expect(log).toEqual(['0 proposals, 2 syncs', '4 packets'])
  })

  it('forgets what waits behind the sync of a learner that is gone', async () => {
    const trio = await EnsembleFixture.start()
    const [learner] = trio.learners
    trio.holdsConfirms = true
    const send = (cxid: number, type: number): void =>
      trio.leader.clientService.runTurn(() =>
        trio.leader.pipeline.submitForwarded(learner!, {
          sessionId: 5n,
          cxid,
          type,
          body: new Uint8Array(0),
          identities: [],
        }),
      )
    send(1, OpCode.sync)
    send(2, OpCode.setData)
    trio.leader.pipeline.removeLearner(learner!)
    learner!.isHeld = true
    trio.holdsConfirms = false
    await trio.settle()
    expect(trio.leader.pipeline.proposer.lastZxid).toBe(EPOCH)
  })

  it('answers every request of a learner by a transaction, also one that nobody can read', async () => {
    const trio = await EnsembleFixture.start()
    trio.holdsCommits = true
    const [learner] = trio.learners
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
    trio.leader.clientService.runTurn(() =>
      requests.forEach(({ type, body }, cxid) =>
        trio.leader.pipeline.submitForwarded(learner!, { sessionId: 9n, cxid, type, body, identities: [] }),
      ),
    )
    const txns = trio.proposals.map(({ payload }) => decodeLoggedTxn(new Reader(payload)))
    expect(txns.map(({ header, txn }) => [header.cxid, txn])).toEqual(
      requests.map((_, cxid) => [cxid, { type: OpCode.error, err: ErrorCode.MARSHALLINGERROR }]),
    )
    expect(trio.leader.failures).toEqual([])
  })

  it('tells nobody that a write failed when its role ends, and takes no more', async () => {
    const trio = await EnsembleFixture.start()
    const client = await trio.leader.client({})
    await trio.settle()
    client.takeConnectResponse()
    trio.holdsCommits = true
    client.create(1, '/a')
    client.ask(2, OpCode.sync, (w) => w.string('/'))
    await trio.settle()
    trio.leader.clientService.endRole('Closed: the role is over')
    await trio.settle()
    expect([client.takeReceived(), client.closed]).toEqual([[], true])
    trio.leader.pipeline.commit(EPOCH + 5)
    trio.leader.pipeline.submitForwarded(trio.learners[0]!, {
      sessionId: 1n,
      cxid: 1,
      type: OpCode.setData,
      body: new Uint8Array(0),
      identities: [],
    })
    expect([trio.leader.tree.has('/a'), trio.proposals.length, trio.leader.failures]).toEqual([false, 1, []])
  })

  it('proposes nothing while leadership is handed over, and answers nothing either', async () => {
    const trio = await EnsembleFixture.start()
    const client = await trio.leader.client({})
    await trio.settle()
    client.takeConnectResponse()
    trio.isAccepting = false
    client.create(1, '/a')
    await trio.settle()
    expect([client.takeReceived(), trio.proposals.length, trio.leader.pipeline.outstanding]).toEqual([
      [],
      0,
      0,
    ])
  })

  it('answers nothing behind what it does not propose, its own clients as little as learners', async () => {
    const trio = await EnsembleFixture.start()
    const [own, far] = [await trio.leader.client({}), await trio.learners[0]!.fixture.client({})]
    await trio.settle()
    for (const client of [own, far]) client.takeConnectResponse()
    trio.isAccepting = false
    for (const client of [own, far]) {
      client.create(1, '/a')
      client.ask(2, OpCode.sync, (w) => w.string('/'))
    }
    await trio.settle()
    expect([own.takeReceived(), far.takeReceived(), trio.leader.pipeline.proposer.hasDropped]).toEqual([
      [],
      [],
      true,
    ])
    // What is prepared from now on would stand on what never came about.
    trio.isAccepting = true
    own.create(3, '/b')
    await trio.settle()
    expect([own.takeReceived(), trio.proposals.length]).toEqual([[], trio.proposals.length])
    expect(trio.leader.tree.has('/b')).toBe(false)
  })

  it('serves a client that has seen the beginning of its epoch elsewhere', async () => {
    const trio = await EnsembleFixture.start()
    const ahead = await trio.leader.client({ seen: BigInt(EPOCH) })
    const tooFar = await trio.leader.client({ seen: BigInt(EPOCH + 2) })
    await trio.settle()
    expect([ahead.takeConnectResponse()?.timeOut, tooFar.closed]).toEqual([10_000, true])
  })
})

describe('sessions of an ensemble', () => {
  it('get a full life from a new leader, and end with their ephemeral nodes when they are silent', async () => {
    const trio = await EnsembleFixture.start({ known: [[0x77n, 4000]] })
    expect(trio.leader.clientService.sessions.get(0x77n)).toMatchObject({ timeout: 4000 })
    await trio.advance(3900)
    trio.expire()
    await trio.settle()
    expect(trio.table.has(0x77n)).toBe(true)
    await trio.advance(1200)
    trio.expire()
    await trio.settle()
    expect([trio.table.has(0x77n), trio.learners[1]!.table.has(0x77n)]).toEqual([false, false])
  })

  it('live on while their learner tells of them, and end everywhere when it does not', async () => {
    const trio = await EnsembleFixture.start()
    const [learner, other] = trio.learners
    const client = await learner!.fixture.client({ timeout: 4000 })
    await trio.settle()
    const { sessionId } = client.takeConnectResponse()!
    client.create(1, '/e', CreateMode.EPHEMERAL)
    await trio.settle()
    for (let i = 0; i < 6; i++) {
      client.ask(-2, OpCode.ping)
      await trio.advance(1000)
      trio.ping()
      trio.expire()
    }
    await trio.settle()
    expect([client.closed, other!.fixture.tree.has('/e')]).toEqual([false, true])
    // The client goes on, and nobody tells the leader.
    for (let i = 0; i < 6; i++) {
      client.ask(-2, OpCode.ping)
      await trio.advance(1000)
      trio.expire()
    }
    await trio.settle()
    expect([client.closed, other!.fixture.tree.has('/e'), other!.table.has(sessionId)]).toEqual([
      true,
      false,
      false,
    ])
  })

  it('move from one server to another, and what still comes through the old one closes that connection', async () => {
    const trio = await EnsembleFixture.start()
    const [first, second] = trio.learners
    const old = await first!.fixture.client({})
    await trio.settle()
    const session = old.takeConnectResponse()!
    old.create(1, '/a')
    await trio.settle()
    expect(old.takeReceived()).toEqual(['1:0'])
    const moved = await second!.fixture.client({ resume: session })
    await trio.settle()
    expect(moved.takeConnectResponse()).toMatchObject({ sessionId: session.sessionId })
    old.read(2, OpCode.exists, '/a')
    await trio.settle()
    expect(old.takeReceived()).toEqual(['2:0'])
    old.set(3, '/a', 'too late')
    moved.set(1, '/a', 'in time')
    await trio.settle()
    expect([old.takeReceived(), old.closed, moved.takeReceived()]).toEqual([[], true, ['1:0']])
    // And to the leader itself.
    const home = await trio.leader.client({ resume: session })
    await trio.settle()
    home.takeConnectResponse()
    moved.ask(2, OpCode.delete, (w) => (w.string('/a'), w.int(-1)))
    home.set(1, '/a', 'home')
    await trio.settle()
    expect([moved.takeReceived(), moved.closed, home.takeReceived()]).toEqual([[], true, ['1:0']])
  })

  it('keep in the table the timeout of their transaction, whatever their clients ask for later', async () => {
    const trio = await EnsembleFixture.start()
    const [first, second] = trio.learners
    const old = await first!.fixture.client({ timeout: 8000 })
    await trio.settle()
    const session = old.takeConnectResponse()!
    const moved = await second!.fixture.client({ resume: session, timeout: 5000 })
    await trio.settle()
    expect(moved.takeConnectResponse()?.timeOut).toBe(5000)
    const tables = [trio.table, first!.table, second!.table]
    expect(tables.map((table) => table.get(session.sessionId))).toEqual([8000, 8000, 8000])
  })

  it('are not brought back by a learner that has not heard of their end', async () => {
    const trio = await EnsembleFixture.start()
    const client = await trio.learners[0]!.fixture.client({})
    await trio.settle()
    const session = client.takeConnectResponse()!
    trio.holdsCommits = true
    trio.leader.clientService.runTurn(() =>
      trio.leader.pipeline.closeSession(session.sessionId, 0, undefined, 0),
    )
    trio.leader.pipeline.touchSession(session.sessionId, 10_000)
    expect(trio.leader.pipeline.revalidateForLearner(trio.learners[1]!, session.sessionId, 10_000)).toBe(
      false,
    )
    expect(trio.leader.pipeline.revalidateForLearner(trio.learners[1]!, 12345n, 10_000)).toBe(false)
    trio.holdsCommits = false
    await trio.settle()
    expect([client.closed, trio.table.size]).toEqual([true, 0])
  })

  it('may write before their first transaction is committed, and no more once their last one is on its way', async () => {
    const trio = await EnsembleFixture.start()
    trio.holdsCommits = true
    const [learner] = trio.learners
    const send = (cxid: number, type: number, body: Uint8Array): void =>
      trio.leader.clientService.runTurn(() =>
        trio.leader.pipeline.submitForwarded(learner!, { sessionId: 6n, cxid, type, body, identities: [] }),
      )
    send(
      0,
      OpCode.createSession,
      bytes((w) => w.int(5000)),
    )
    send(1, OpCode.setData, setOf('/zookeeper/quota'))
    send(2, OpCode.closeSession, new Uint8Array(0))
    send(3, OpCode.setData, setOf('/zookeeper/quota'))
    const txns = trio.proposals.map(({ payload }) => decodeLoggedTxn(new Reader(payload)).txn)
    expect(txns.map(({ type }) => type)).toEqual([
      OpCode.createSession,
      OpCode.setData,
      OpCode.closeSession,
      OpCode.error,
    ])
    expect(txns[3]).toMatchObject({ err: ErrorCode.SESSIONEXPIRED })
    // Its beginning is committed and its end is not.
    trio.commitNext()
    expect(trio.leader.clientService.sessions.isOpen(6n)).toBe(false)
    trio.holdsCommits = false
    await trio.settle()
    expect(trio.table.has(6n)).toBe(false)
  })

  it('end once: a learner that closes what is over already is told so, with a transaction that changes nothing', async () => {
    const trio = await EnsembleFixture.start()
    const [learner] = trio.learners
    const client = await learner!.fixture.client({})
    await trio.settle()
    const { sessionId } = client.takeConnectResponse()!
    const close = (cxid: number): void =>
      trio.leader.clientService.runTurn(() =>
        trio.leader.pipeline.submitForwarded(learner!, {
          sessionId,
          cxid,
          type: OpCode.closeSession,
          body: new Uint8Array(0),
          identities: [],
        }),
      )
    trio.holdsCommits = true
    trio.leader.clientService.runTurn(() => trio.leader.pipeline.closeSession(sessionId, 0, undefined, 0))
    close(8)
    const proposed = [...trio.proposals]
    trio.holdsCommits = false
    await trio.settle()
    trio.holdsCommits = true
    close(9)
    proposed.push(...trio.proposals)
    trio.holdsCommits = false
    await trio.settle()
    const txns = proposed.map(({ payload }) => decodeLoggedTxn(new Reader(payload)))
    expect(txns.map(({ header, txn }) => [header.cxid, txn.type, 'err' in txn ? txn.err : 0])).toEqual([
      [0, OpCode.closeSession, 0],
      [8, OpCode.error, ErrorCode.SESSIONEXPIRED],
      [9, OpCode.error, ErrorCode.SESSIONEXPIRED],
    ])
    expect([client.closed, learner!.broken]).toEqual([true, []])
  })

  it('whose ephemeral nodes outlived them are ended by the new leader, with a transaction that everybody gets', async () => {
    const trio = await EnsembleFixture.start()
    const client = await trio.learners[0]!.fixture.client({})
    await trio.settle()
    const { sessionId } = client.takeConnectResponse()!
    client.create(1, '/e', CreateMode.EPHEMERAL)
    await trio.settle()
    trio.leader.clientService.sessions.remove(sessionId)
    trio.leader.clientService.runTurn(() => trio.leader.pipeline.closeOrphanedSessions())
    await trio.settle()
    const trees = [trio.leader, ...trio.learners.map(({ fixture: side }) => side)].map(({ tree }) =>
      tree.has('/e'),
    )
    expect(trees).toEqual([false, false, false])
  })
})

describe('local sessions', () => {
  it('cost no transaction, end with their server only, and are unknown elsewhere', async () => {
    const trio = await EnsembleFixture.start({ localSessions: true, canUpgradeSessions: true })
    const [first, second] = trio.learners
    const client = await first!.fixture.client({ timeout: 4000 })
    await trio.settle()
    const session = client.takeConnectResponse()!
    client.create(1, '/a')
    client.read(2, OpCode.exists, '/a')
    await trio.settle()
    expect([client.takeReceived(), trio.leader.pipeline.proposer.lastZxid]).toEqual([
      ['1:0', '2:0'],
      EPOCH + 1,
    ])
    const elsewhere = await second!.fixture.client({ resume: session })
    await trio.settle()
    expect(elsewhere.takeConnectResponse()?.timeOut).toBe(0)
    const again = await first!.fixture.client({ resume: session })
    await trio.settle()
    expect([again.takeConnectResponse()?.sessionId, client.closed]).toEqual([session.sessionId, true])
    again.ask(3, OpCode.closeSession)
    await trio.settle()
    expect([again.takeReceived(), again.closed, trio.leader.pipeline.proposer.lastZxid]).toEqual([
      ['3:0'],
      true,
      EPOCH + 1,
    ])
  })

  it('expire where they are known', async () => {
    const trio = await EnsembleFixture.start({ localSessions: true })
    const { fixture: side } = trio.learners[0]!
    const client = await side.client({ timeout: 4000 })
    await trio.settle()
    client.takeConnectResponse()
    await trio.advance(5100)
    side.clientService.runTurn(() => side.clientService.expiry.run())
    await trio.settle()
    expect([client.closed, side.clientService.localSessions!.size]).toEqual([true, 0])
  })

  it.each(['leader', 'learner'] as const)(
    'become known to all when they make an ephemeral node, at a %s',
    async (where) => {
      const trio = await EnsembleFixture.start({ localSessions: true, canUpgradeSessions: true })
      const side = where === 'leader' ? trio.leader : trio.learners[0]!.fixture
      const client = await side.client({ timeout: 4000 })
      await trio.settle()
      const { sessionId } = client.takeConnectResponse()!
      client.create(1, '/e', CreateMode.EPHEMERAL)
      client.read(2, OpCode.exists, '/e')
      await trio.settle()
      expect(client.takeReceived()).toEqual(['1:0', '2:0'])
      expect([trio.table.get(sessionId), side.clientService.localSessions!.size]).toEqual([4000, 0])
      for (let i = 0; i < 6; i++) {
        client.ask(-2, OpCode.ping)
        await trio.advance(1000)
        trio.ping()
        for (const { clientService: core } of [
          trio.leader,
          ...trio.learners.map((learner) => learner.fixture),
        ])
          core.runTurn(() => core.expiry.run())
      }
      expect(client.closed).toBe(false)
      client.takeReceived()
      client.ask(3, OpCode.closeSession)
      await trio.settle()
      expect([client.takeReceived(), trio.table.size, trio.learners[1]!.fixture.tree.has('/e')]).toEqual([
        ['3:0'],
        0,
        false,
      ])
    },
  )

  it.each(['leader', 'learner'] as const)(
    'are refused an ephemeral node where they may not become known, at a %s',
    async (where) => {
      const trio = await EnsembleFixture.start({ localSessions: true })
      const side = where === 'leader' ? trio.leader : trio.learners[0]!.fixture
      const client = await side.client({})
      await trio.settle()
      client.takeConnectResponse()
      client.create(1, '/e', CreateMode.EPHEMERAL)
      client.create(2, '/p')
      await trio.settle()
      expect(client.takeReceived()).toEqual([`1:${ErrorCode.EPHEMERALONLOCALSESSION}`, '2:0'])
    },
  )
})

describe('a change of the ensemble', () => {
  const ask = (curConfigId = -1n): ((w: Writer) => void) => {
    const request = { joiningServers: null, leavingServers: '3', newMembers: null, curConfigId }
    return (w) => writeReconfigRequest(w, request)
  }

  async function leader(answer: string | number, loggedIn: boolean) {
    const clock = new ManualClock()
    const proposals: Uint8Array[] = []
    const side: PipelineFixture<LeaderPipeline<never>> = await PipelineFixture.open({
      clock,
      sessions: new SessionTracker(1000, 0),
      settings: { skipAcl: loggedIn },
      reconfigure: () => answer,
      createPipeline: (kit) =>
        new LeaderPipeline({
          ...kit,
          log: { state: 'open', appendPayload() {} },
          quorum: {
            isAccepting: true,
            propose: (zxid, payload) => {
              proposals.push(payload)
              clock.immediate(() => side.clientService.runTurn(() => side.pipeline.commit(zxid)))
            },
            confirmLeadership() {},
            sendSync() {},
          },
          lastZxid: EPOCH,
          serverId: 1,
        }) as unknown as LeaderPipeline<never>,
    })
    const client = await side.client({})
    await clock.untilIdle()
    client.takeConnectResponse()
    return { client, clock, proposals, side }
  }

  it('becomes the content of the configuration node, under a transaction of its own type', async () => {
    const { client, clock, proposals, side } = await leader('server.1=…\nversion=300000002', true)
    client.ask(1, OpCode.reconfig, ask())
    await clock.untilIdle()
    const [reply] = client.replies()
    expect([
      reply!.err,
      new TextDecoder().decode(side.tree.dataOf(side.tree.find('/zookeeper/config'))!),
    ]).toEqual([0, 'server.1=…\nversion=300000002'])
    expect(decodeLoggedTxn(new Reader(proposals[1]!)).txn).toMatchObject({
      type: OpCode.reconfig,
      path: '/zookeeper/config',
      version: -1,
    })
    expect(side.failures).toEqual([])
  })

  it('is refused for what the ensemble says, and to whoever may not write the node', async () => {
    const busy = await leader(ErrorCode.RECONFIGINPROGRESS, true)
    busy.client.ask(1, OpCode.reconfig, ask())
    const stranger = await leader('server.1=…', false)
    stranger.client.ask(1, OpCode.reconfig, ask())
    await busy.clock.untilIdle()
    await stranger.clock.untilIdle()
    expect([busy.client.takeReceived(), stranger.client.takeReceived()]).toEqual([
      [`1:${ErrorCode.RECONFIGINPROGRESS}`],
      [`1:${ErrorCode.NOAUTH}`],
    ])
  })
})
