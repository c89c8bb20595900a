import {
  CreateMode,
  ErrorCode,
  OPEN_ACL_UNSAFE,
  OpCode,
  Reader,
  writeMultiRequest,
  Writer,
} from '@zabra/protocol'
import { ManualClock } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import { SessionMap } from '../core/session-map.ts'
import type { ClientChannel } from '../connections/client-channel.ts'
import { LearnerSessions } from '../core/sessions/index.ts'
import { createOf } from '../core/testing/create-of.ts'
import { SESSION_USER_XID } from '../core/tree/index.ts'
import type { LoggedTxn, SubTxn, Txn, Zxid } from '../core/types.ts'
import type { ForwardedRequest } from '../core/zab/index.ts'
import { encodeLoggedTxn } from '../persistence/index.ts'
import { runToEnd } from '../core/steps.ts'
import { LearnerPipeline } from './learner-pipeline.ts'
import { loggedIn } from './testing/ensemble-fixture.ts'
import { createBody, multiOf } from './testing/leader-fixture.ts'
import { PipelineFixture } from './testing/pipeline-fixture.ts'
import type { WriteCallback } from './types.ts'

const EPOCH: Zxid = 3 * 2 ** 32
const SESSION = 7n
/** A session that is local to this server. */
const LOCAL = 9n
const SECOND_ROUTE = 2

interface Given {
  readonly hasObservers?: boolean
  readonly canUpgradeSessions?: boolean
}

/** A learner without connections: the test calls its pipeline, as its clients and the leader do. */
async function given({ hasObservers, canUpgradeSessions = false }: Given = {}) {
  const clock = new ManualClock()
  const table = new SessionMap([[SESSION, 5000]])
  const sessions = new LearnerSessions(table)
  const forwarded: ForwardedRequest[] = []
  const failures: string[] = []
  const reports: string[] = []
  const begun: number[] = []
  const runs: boolean[] = []
  let heardAt = 0
  const fixture = await PipelineFixture.open({
    clock,
    sessions,
    localSessions: true,
    createPipeline: (context) => {
      context.stages.begun = (zxid) => void begun.push(zxid)
      return new LearnerPipeline<ClientChannel>({
        ...context,
        onSessionUserStored: (id) => void reports.push(`user ${id}`),
        onSessionClosed: (id) => void reports.push(`closed ${id}`),
        onUpgradeRefused: (id) => void reports.push(`not global: ${id}`),
        epochStart: EPOCH,
        canUpgradeSessions,
        touchDelayMs: 1000,
        ...(hasObservers === undefined ? {} : { hasObservers }),
        leader: {
          forward: (sent) => void forwarded.push({ ...sent, body: new Uint8Array(sent.body) }),
          revalidate() {},
          lastContactAt: () => heardAt,
          fail: (reason) => void failures.push(reason),
          reportDivergence: (zxid) => void failures.push(`diverged at ${zxid - EPOCH}`),
        },
      })
    },
  })
  const { pipeline, clientService, tree } = fixture
  const run = <T>(action: () => T): T => {
    let result!: T
    clientService.runTurn(() => void (result = action()))
    return result
  }
  const callback: WriteCallback = {
    onPart: (part, isApplied) => void reports.push(`part ${part.type} ${isApplied}`),
    onApplied: ({ xid }, err) => void reports.push(`applied ${xid}: ${err}`),
    onLost() {},
    onSynced: () => void reports.push('synced'),
  }
  let zxid = EPOCH
  return {
    clock,
    table,
    sessions,
    forwarded,
    failures,
    reports,
    begun,
    runs,
    pipeline,
    tree,
    callback,
    run,
    localSessions: clientService.localSessions!,
    heard: (at: number) => void (heardAt = at),
    write: (xid: number, type: number, body: Uint8Array, sessionId = SESSION) =>
      run(() => pipeline.write({ sessionId, xid, type, identities: [] }, new Reader(body), callback)),
    close: (id: bigint) => run(() => pipeline.closeSession(id, 0, undefined)),
    sync: (xid = 1) =>
      run(() => pipeline.sync({ sessionId: SESSION, xid, type: OpCode.sync, identities: [] }, callback)),
    /** Asks the leader for a session; `by` names it in the reports. */
    revalidate: (id: bigint, by: string, from?: number) =>
      run(() =>
        pipeline.revalidate(
          id,
          5000,
          {
            onRevalidated: (valid) => void reports.push(`${by}: ${valid}`),
            onRefused: () => void reports.push(`${by}: refused`),
          },
          from,
        ),
      ),
    fromObserver: (type: number, xid: number, from = SECOND_ROUTE, sessionId = SESSION) =>
      run(() =>
        pipeline.forwardFromObserver(
          { sessionId, xid, type, body: new Uint8Array(0), identities: [] },
          from,
          () => reports.push(`observer synced`),
        ),
      ),
    /** Commits a transaction as the leader. Returns its zxid. */
    commit: (cxid: number, txn: Txn, { sessionId = SESSION, digest }: Partial<CommitOptions> = {}): Zxid => {
      zxid++
      const writer = new Writer()
      encodeLoggedTxn(writer, { header: { sessionId, cxid, zxid, time: 1 }, txn, digest })
      const payload = writer.take()
      run(() => pipeline.applyCommitted(zxid, payload, loggedIn(payload)))
      return zxid
    },
    /** As `commit`, for bytes. */
    commitBytes: (bytes: Uint8Array) => run(() => pipeline.applyCommitted(++zxid, bytes, loggedIn(bytes))),
  }
}

interface CommitOptions {
  readonly sessionId: bigint
  readonly digest: LoggedTxn['digest']
}

const creating = (type: number, flags: number): Uint8Array => {
  const writer = new Writer()
  writeMultiRequest(writer, [{ type: type as 1, path: '/g', data: null, acl: OPEN_ACL_UNSAFE, flags }])
  return writer.take()
}
const MULTI_WITH_EPHEMERAL = creating(OpCode.create, CreateMode.EPHEMERAL)
const MULTI_WITH_CREATE2 = creating(OpCode.create2, CreateMode.PERSISTENT)

/** The end of a session that is applied in several turns. */
const LARGE_END: Txn = {
  type: OpCode.closeSession,
  paths2Delete: Array.from({ length: 1000 }, (_, i) => `/${i}`),
}
/** A multi that is decoded and applied in several turns. */
const multiTxn = (parts: number): Txn => ({
  type: OpCode.multi,
  txns: Array.from({ length: parts }, (_, i): SubTxn => createOf(`/multi-${i}`)),
})

describe('LearnerPipeline', () => {
  it('counts what waits for its leader, by what it waits for', async () => {
    const { pipeline, write, sync, commit, run, clock } = await given()
    expect([pipeline.outstanding, pipeline.queues]).toEqual([0, { forward: 0, apply: 0, sync: 0 }])
    write(1, OpCode.create, createBody('/a'))
    sync()
    commit(0, LARGE_END, { sessionId: 8n })
    commit(1, createOf('/a'))
    expect([pipeline.outstanding, pipeline.queues]).toEqual([1, { forward: 1, apply: 2, sync: 1 }])
    await clock.untilIdle()
    run(() => pipeline.completeSync())
    expect([pipeline.outstanding, pipeline.queues]).toEqual([0, { forward: 0, apply: 0, sync: 0 }])
  })

  it('accepts writes until its role ends', async () => {
    const { pipeline, run } = await given()
    expect(pipeline.isWritable).toBe(true)
    run(() => pipeline.end())
    expect(pipeline.isWritable).toBe(false)
  })

  it('serves clients that have seen the first zxid of the epoch, and what it has applied since', async () => {
    const { pipeline, commit } = await given()
    expect(pipeline.lastVisibleZxid).toBe(EPOCH)
    commit(0, createOf('/a'))
    expect(pipeline.lastVisibleZxid).toBe(EPOCH + 1)
  })

  it('keeps digests of what it has applied', async () => {
    const { pipeline, commit, tree } = await given()
    for (let i = 1; i <= 128; i++) commit(0, createOf(`/${i}`))
    expect(pipeline.digests).toEqual([{ zxid: EPOCH + 128, digest: tree.digest }])
  })

  it('forwards the end of a session, which is closing from then on, even if it does not know it', async () => {
    const { close, sessions, forwarded } = await given()
    const session = sessions.resume(SESSION, 5000, 0)
    expect([close(SESSION), session.isClosing, close(99n)]).toEqual([true, true, true])
    expect(forwarded.map(({ sessionId, type, identities }) => [sessionId, type, identities])).toEqual([
      [SESSION, OpCode.closeSession, []],
      [99n, OpCode.closeSession, []],
    ])
  })

  it.each([
    [2000, 999, 1000],
    [8000, 6999, 7000],
  ])(
    'answers pings of a session of %i ms for %i ms after its leader was there',
    async (timeout, last, first) => {
      const { pipeline, heard } = await given()
      heard(500)
      expect([
        pipeline.canAnswerPing(timeout, 500 + last),
        pipeline.canAnswerPing(timeout, 500 + first),
      ]).toEqual([true, false])
    },
  )

  describe('while a large transaction is applied', () => {
    it('applies later ones, and answers syncs and revalidations, behind it', async () => {
      const { commit, sync, revalidate, pipeline, run, tree, reports, clock, write } = await given()
      sync()
      revalidate(SESSION, 'first')
      write(5, OpCode.create, createBody('/a'))
      commit(0, LARGE_END, { sessionId: 8n })
      expect(tree.isApplying).toBe(true)
      commit(5, createOf('/a'))
      // The answers that the leader sends behind it.
      run(() => pipeline.completeRevalidation(SESSION, true))
      expect(reports).toEqual([])
      await clock.untilIdle()
      run(() => pipeline.completeSync())
      expect(reports).toEqual(['closed 8', 'applied 5: 0', 'first: true', 'synced'])
    })

    it('answers a sync only once it is applied', async () => {
      const { commit, sync, pipeline, run, reports, clock } = await given()
      sync()
      commit(0, LARGE_END, { sessionId: 8n })
      run(() => pipeline.completeSync())
      expect(reports).toEqual([])
      await clock.untilIdle()
      expect(reports).toEqual(['closed 8', 'synced'])
    })

    it('finishes it when its role ends, the table of sessions included, and calls nothing back', async () => {
      const { commit, pipeline, run, tree, table, write, reports, clock, callback } = await given()
      write(5, OpCode.create, createBody('/a'))
      run(() => pipeline.closeSession(SESSION, 6, callback))
      commit(5, createOf('/a'))
      const last = commit(6, LARGE_END)
      commit(0, createOf('/b'))
      expect([tree.isApplying, table.has(SESSION)]).toEqual([true, true])
      run(() => runToEnd(pipeline.end()!))
      // The next role begins with this tree and these sessions.
      expect([tree.isApplying, tree.lastZxid, table.has(SESSION)]).toEqual([false, last, false])
      await clock.untilIdle()
      expect([tree.lastZxid, reports.filter((report) => report.startsWith('applied'))]).toEqual([
        last,
        ['applied 5: 0'],
      ])
    })

    it('applies nothing of one that it still decodes when its role ends', async () => {
      const { commit, pipeline, run, tree, clock } = await given()
      const before = tree.lastZxid
      commit(0, multiTxn(2000))
      expect([tree.isApplying, tree.lastZxid]).toEqual([false, before])
      run(() => pipeline.end())
      await clock.untilIdle()
      expect([tree.isApplying, tree.lastZxid]).toEqual([false, before])
    })
  })

  it.each([
    [8191, true],
    [8192, false],
  ])('decodes a transaction of %i bytes in one turn: %s', async (length, isAtOnce) => {
    const { commitBytes, tree, clock } = await given()
    const encode = (path: string): Uint8Array => {
      const writer = new Writer()
      const check = (checked: string): SubTxn => ({ type: OpCode.check, path: checked, version: -1 })
      const txns = [...Array.from({ length: 450 }, () => check('/')), check(path)]
      const header = { sessionId: SESSION, cxid: 0, zxid: EPOCH + 1, time: 1 }
      encodeLoggedTxn(writer, { header, txn: { type: OpCode.multi, txns }, digest: undefined })
      return writer.take()
    }
    commitBytes(encode(`/${'x'.repeat(length - encode('/').length)}`))
    expect(tree.isApplying).toBe(isAtOnce)
    await clock.untilIdle()
    expect(tree.lastZxid).toBe(EPOCH + 1)
  })

  it('calls nothing back after its role, and forwards nothing of an observer', async () => {
    const { pipeline, revalidate, fromObserver, run, reports, forwarded, failures, commit, tree } =
      await given()
    run(() => pipeline.end())
    revalidate(SESSION, 'late')
    run(() => pipeline.completeRevalidation(SESSION, true))
    run(() => pipeline.completeSync())
    fromObserver(OpCode.sync, 1)
    fromObserver(OpCode.setData, 2)
    commit(0, createOf('/a'))
    expect([reports, forwarded, failures, tree.has('/a')]).toEqual([[], [], [], false])
  })

  it('takes no answer to a sync for one before an older write of its session, unless it is', async () => {
    const { sync, write, pipeline, run, reports, failures } = await given()
    sync(1)
    write(2, OpCode.create, createBody('/a'))
    run(() => pipeline.completeSync())
    expect([reports, failures]).toEqual([['synced'], []])
    sync(3)
    run(() => pipeline.completeSync())
    expect([reports, failures.length]).toEqual([['synced'], 1])
  })

  it('answers the sync of an observer whatever this server has forwarded of its session', async () => {
    const { write, fromObserver, pipeline, run, reports, failures } = await given()
    write(1, OpCode.create, createBody('/a'))
    fromObserver(OpCode.sync, 2)
    run(() => pipeline.completeSync())
    expect([reports, failures]).toEqual([['observer synced'], []])
  })

  it('ignores the answer to a revalidation that it has not sent', async () => {
    const { pipeline, run, revalidate, reports } = await given()
    run(() => pipeline.completeRevalidation(SESSION, true))
    revalidate(SESSION, 'asked')
    run(() => pipeline.completeRevalidation(SESSION, true))
    run(() => pipeline.completeRevalidation(SESSION, true))
    expect(reports).toEqual(['asked: true'])
  })

  it('takes a refusal for the answer to the oldest revalidation of its session, whose route it does not record', async () => {
    const { pipeline, run, revalidate, reports, fromObserver, forwarded } = await given({
      hasObservers: true,
    })
    revalidate(20n, 'first', SECOND_ROUTE)
    revalidate(20n, 'second', 3)
    run(() => pipeline.completeRevalidation(20n, false, true))
    run(() => pipeline.completeRevalidation(20n, true))
    expect(reports).toEqual(['first: refused', 'second: true'])
    fromObserver(OpCode.setData, 1, SECOND_ROUTE, 20n)
    fromObserver(OpCode.setData, 2, 3, 20n)
    expect(forwarded.map(({ type }) => type)).toEqual([OpCode.check, OpCode.setData])
  })

  it('says that a local session may not become global where that is refused, and only then', async () => {
    const { write, commit, localSessions, run, reports } = await given({ canUpgradeSessions: true })
    run(() => localSessions.add(30n, 5000, 0))
    run(() => localSessions.add(31n, 5000, 0))
    for (const id of [30n, 31n]) write(1, OpCode.create, createBody('/a', CreateMode.EPHEMERAL), id)
    commit(0, { type: OpCode.error, err: ErrorCode.SESSIONMOVED }, { sessionId: 30n })
    commit(0, { type: OpCode.createSession, timeOut: 5000 }, { sessionId: 31n })
    expect(reports).toEqual(['not global: 30'])
  })

  it('records no route of a session whose creation is refused', async () => {
    const { pipeline, run, callback, commit, fromObserver, forwarded } = await given({ hasObservers: true })
    run(() => pipeline.createSession(30n, 5000, callback))
    commit(0, { type: OpCode.error, err: ErrorCode.SESSIONMOVED }, { sessionId: 30n })
    fromObserver(OpCode.setData, 1, SECOND_ROUTE, 30n)
    expect(forwarded.map(({ type }) => type)).toEqual([OpCode.createSession, OpCode.setData])
  })

  it('answers revalidations of an unknown session in their order, and takes the last one for its route', async () => {
    const { pipeline, run, revalidate, reports, fromObserver, forwarded, table } = await given({
      hasObservers: true,
    })
    revalidate(20n, 'first', SECOND_ROUTE)
    table.set(20n, 5000)
    revalidate(20n, 'second', 3)
    for (let i = 0; i < 2; i++) run(() => pipeline.completeRevalidation(20n, true))
    expect(reports).toEqual(['first: true', 'second: true'])
    fromObserver(OpCode.setData, 1, SECOND_ROUTE, 20n)
    fromObserver(OpCode.setData, 2, 3, 20n)
    // The first is a request of a route that the session has left.
    expect(forwarded.map(({ type, identities }) => [type, identities])).toEqual([
      [OpCode.check, []],
      [OpCode.setData, []],
    ])
  })

  it('makes a local session global for its first ephemeral node alone, and only if settings allow that', async () => {
    const types = async (canUpgradeSessions: boolean) => {
      const { write, localSessions, forwarded } = await given({ canUpgradeSessions })
      const session = localSessions.add(LOCAL, 5000, 0)
      const errors = [
        write(1, OpCode.create, createBody('/p'), LOCAL),
        write(2, OpCode.create, createBody('/e', CreateMode.EPHEMERAL), LOCAL),
        write(3, OpCode.create, createBody('/f', CreateMode.EPHEMERAL), LOCAL),
        // The leader answers a multi of a session that it does not know.
        write(4, OpCode.multi, MULTI_WITH_EPHEMERAL, LOCAL),
      ]
      return [session.isLocal, errors, forwarded.map(({ type, identities }) => [type, identities.length])]
    }
    const { create, createSession, multi } = OpCode
    expect(await types(true)).toEqual([
      false,
      [0, 0, 0, 0],
      [
        [create, 0],
        [createSession, 0],
        [create, 0],
        [create, 0],
        [multi, 0],
      ],
    ])
    const err = ErrorCode.EPHEMERALONLOCALSESSION
    expect(await types(false)).toEqual([
      true,
      [0, err, err, 0],
      [
        [create, 0],
        [multi, 0],
      ],
    ])
  })

  it('reports the user of a session when its transaction is applied, and no other', async () => {
    const { commit, reports } = await given()
    commit(3, createOf('/a'))
    commit(SESSION_USER_XID, createOf('/b'))
    expect(reports).toEqual([`user ${SESSION}`])
  })

  it('measures from when on each 32nd write of its clients is forwarded', async () => {
    const { write, commit, begun } = await given()
    for (let xid = 1; xid <= 64; xid++) {
      write(xid, OpCode.create, createBody(`/${xid}`))
      commit(xid, createOf(`/${xid}`))
    }
    expect(begun).toEqual([EPOCH + 32, EPOCH + 64])
  })

  it('reports the parts of a multi of its client, and of no other', async () => {
    const { write, commit, reports, clock } = await given()
    write(1, OpCode.multi, multiOf(1))
    const txns: SubTxn[] = [{ type: OpCode.check, path: '/', version: -1 }]
    commit(2, { type: OpCode.multi, txns })
    expect(reports).toEqual([])
    commit(1, { type: OpCode.multi, txns })
    await clock.untilIdle()
    expect(reports).toEqual([`part ${OpCode.check} true`, 'applied 1: 0'])
  })

  it('reports a part that creates a node as the client sent it, and as an error in a multi that failed', async () => {
    const { write, commit, reports } = await given()
    for (const xid of [1, 2]) write(xid, OpCode.multi, MULTI_WITH_CREATE2)
    commit(1, { type: OpCode.multi, txns: [createOf('/g')] })
    commit(2, { type: OpCode.multi, txns: [{ type: OpCode.error, err: ErrorCode.NODEEXISTS }] })
    expect(reports).toEqual([
      `part ${OpCode.create2} true`,
      'applied 1: 0',
      `part ${OpCode.error} false`,
      expect.stringContaining('applied 2: '),
    ])
  })
})
