import { CreateMode, ErrorCode, OpCode } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import { runToEnd } from '../core/steps.ts'
import { createBody, leaderFixture, SESSION } from './testing/leader-fixture.ts'

const { create, createSession, closeSession, multi } = OpCode
const CREATE = createBody('/a')

describe('LeaderPipeline', () => {
  it('accepts no write while the disk is full', async () => {
    const { write, writeLarge, pipeline, log, callback, run, proposed, settle } = await leaderFixture()
    expect(pipeline.isWritable).toBe(true)
    log.state = 'full'
    expect(pipeline.isWritable).toBe(false)
    expect([write(1, create, CREATE), writeLarge(2)]).toEqual([ErrorCode.SYSTEMERROR, ErrorCode.SYSTEMERROR])
    expect([
      run(() => pipeline.createSession(9n, 5000, callback)),
      run(() => pipeline.closeSession(SESSION, 3, callback)),
      run(() => pipeline.deleteContainer('/a', () => true)),
    ]).toEqual([false, false, false])
    log.state = 'open'
    await settle()
    expect([proposed, pipeline.outstanding]).toEqual([[], 0])
    expect(run(() => pipeline.deleteContainer('/a', () => true))).toBe(true)
  })

  it('counts requests of its clients until they are answered, wherever they wait', async () => {
    const { write, writeLarge, sync, pipeline, clock, commit, confirms, run, outcomes } =
      await leaderFixture()
    expect([pipeline.outstanding, pipeline.queues]).toEqual([0, { prepare: 0, commit: 0, apply: 0, sync: 0 }])
    writeLarge(1)
    write(2, create, CREATE)
    // No client waits for these.
    run(() => pipeline.deleteContainer('/a', () => true))
    run(() => pipeline.closeSession(9n, 0, undefined))
    expect([pipeline.outstanding, pipeline.queues]).toEqual([1, { prepare: 4, commit: 0, apply: 0, sync: 0 }])
    sync(3)
    await clock.untilIdle()
    expect([pipeline.outstanding, pipeline.queues]).toEqual([2, { prepare: 0, commit: 3, apply: 0, sync: 1 }])
    commit(2)
    await clock.untilIdle()
    expect([pipeline.outstanding, pipeline.queues]).toEqual([0, { prepare: 0, commit: 1, apply: 0, sync: 1 }])
    commit(3)
    await clock.untilIdle()
    run(confirms[0]!.done)
    expect(pipeline.queues).toEqual({ prepare: 0, commit: 0, apply: 0, sync: 0 })
    expect(outcomes).toEqual(['applied 1: 0', 'applied 2: 0', 'synced'])
  })

  it('copies the body of a write that waits, which its connection overwrites', async () => {
    const { writeLarge, write, settle, tree } = await leaderFixture()
    const body = createBody('/waits')
    writeLarge(1)
    write(2, create, body)
    body.fill(0)
    await settle()
    expect(tree.has('/waits')).toBe(true)
  })

  it('keeps digests of what it has applied', async () => {
    const { write, pipeline, tree, settle } = await leaderFixture()
    for (let i = 1; i <= 128; i++) write(i, create, createBody(`/${i}`))
    await settle()
    expect(pipeline.digests).toEqual([{ zxid: 128, digest: tree.digest }])
  })

  it('answers pings as long as it leads', async () => {
    const { pipeline } = await leaderFixture()
    expect(pipeline.canAnswerPing()).toBe(true)
  })

  it('begins a sync behind the requests that wait', async () => {
    const { writeLarge, sync, confirms, clock, run, settle, outcomes } = await leaderFixture()
    writeLarge(1)
    expect([sync(2), confirms.length]).toEqual([undefined, 0])
    await clock.untilIdle()
    expect(confirms.map(({ proposals }) => proposals)).toEqual([1])
    await settle()
    run(confirms[0]!.done)
    expect(outcomes).toEqual(['applied 1: 0', 'synced'])
  })

  it('says during the call that a sync is done where its leadership is confirmed at once', async () => {
    const { sync, write, commit, outcomes } = await leaderFixture({ confirmsAtOnce: true })
    expect([sync(1), outcomes]).toEqual([ErrorCode.OK, []])
    write(2, create, CREATE)
    commit()
    expect([sync(3), outcomes]).toEqual([ErrorCode.OK, ['applied 2: 0']])
  })

  it('closes the sessions that own nodes and are unknown, and no other', async () => {
    const { write, tree, sessions, pipeline, run, settle } = await leaderFixture()
    sessions.add(8n, 5000, 0)
    write(1, create, createBody('/known', CreateMode.EPHEMERAL))
    write(2, create, createBody('/unknown', CreateMode.EPHEMERAL), { sessionId: 8n })
    await settle()
    sessions.remove(8n)
    run(() => pipeline.closeOrphanedSessions())
    await settle()
    expect([tree.has('/known'), tree.has('/unknown'), sessions.isOpen(SESSION)]).toEqual([true, false, true])
  })

  describe('reports as lost, when the disk becomes full,', () => {
    it('writes that were proposed and not durable, and goes on from the last durable one', async () => {
      const { write, pipeline, commit, run, outcomes, tree, sessions, callback, settle } =
        await leaderFixture()
      write(1, create, CREATE)
      write(2, create, createBody('/b'))
      run(() => pipeline.closeSession(SESSION, 3, callback))
      run(() => pipeline.closeSession(8n, 0, undefined))
      expect(sessions.isOpen(SESSION)).toBe(false)
      run(() => pipeline.discardAfter(1))
      expect(outcomes).toEqual(['applied 1: 0', `lost 2, type ${create}`, `lost 3, type ${closeSession}`])
      expect([pipeline.proposer.lastZxid, pipeline.outstanding, tree.has('/b')]).toEqual([1, 0, false])
      // Its end was lost, so it may write again.
      expect([sessions.isOpen(SESSION), write(4, create, createBody('/b'))]).toEqual([true, 0])
      await settle()
      commit()
      expect([outcomes.at(-1), tree.has('/b')]).toEqual(['applied 4: 0', true])
    })

    it('no end of a session whose other write is lost', async () => {
      const { write, pipeline, run, sessions } = await leaderFixture()
      write(1, create, CREATE)
      sessions.get(SESSION)!.isClosing = true
      run(() => pipeline.discardAfter(0))
      expect(sessions.isOpen(SESSION)).toBe(false)
    })

    it('requests that wait, and reopens the sessions that they would have closed', async () => {
      const { writeLarge, write, pipeline, run, outcomes, sessions, callback, proposed, clock, failures } =
        await leaderFixture()
      writeLarge(1)
      write(2, create, CREATE)
      run(() => pipeline.createSession(9n, 5000, callback))
      run(() => pipeline.closeSession(SESSION, 3, callback))
      run(() => pipeline.closeSession(8n, 0, undefined))
      run(() => pipeline.deleteContainer('/a', () => true))
      for (const id of [10n, 11n]) sessions.add(id, 5000, 0).isClosing = true
      sessions.get(SESSION)!.isClosing = true
      run(() => pipeline.discardAfter(0))
      expect(outcomes).toEqual([
        `lost 1, type ${multi}`,
        `lost 2, type ${create}`,
        `lost 0, type ${createSession}`,
        `lost 3, type ${closeSession}`,
      ])
      expect([10n, 11n, SESSION].map((id) => sessions.isOpen(id))).toEqual([false, false, true])
      expect([pipeline.outstanding, pipeline.queues['prepare']]).toEqual([0, 0])
      await clock.untilIdle()
      expect([proposed, failures]).toEqual([[], []])
    })

    it('requests whose turn comes while it is full, behind one that was begun before', async () => {
      const { writeLarge, write, run, pipeline, log, outcomes, clock, proposed } = await leaderFixture()
      writeLarge(1)
      write(2, create, CREATE)
      log.state = 'full'
      await clock.untilIdle()
      expect([outcomes, proposed]).toEqual([[], []])
      run(() => pipeline.discardAfter(0))
      expect(outcomes).toEqual([`lost 1, type ${multi}`, `lost 2, type ${create}`])
      expect([proposed, pipeline.outstanding]).toEqual([[], 0])
    })
  })

  it('calls nothing back when its role has ended: no request that waits, sync or revalidation', async () => {
    const { writeLarge, write, sync, pipeline, confirms, clock, run, outcomes, proposed, sessions } =
      await leaderFixture()
    sync(1)
    writeLarge(2)
    write(3, create, CREATE)
    sync(4)
    const answers: boolean[] = []
    const learner = {}
    run(() => pipeline.closeSession(SESSION, 5, undefined))
    sessions.get(SESSION)!.isClosing = true
    run(() => pipeline.revalidateForLearner(learner, SESSION, 5000, (valid) => answers.push(valid)))
    run(() => pipeline.end())
    for (const { done } of confirms) run(done)
    run(() => pipeline.revalidateForLearner(learner, 12n, 5000, (valid) => answers.push(valid)))
    const request = { sessionId: SESSION, xid: 6, type: create, body: CREATE, identities: [] }
    run(() => pipeline.submitForwarded(learner, request))
    await clock.untilIdle()
    expect([outcomes, answers, proposed]).toEqual([[], [], []])
    expect([confirms.length, pipeline.outstanding, sessions.isOpen(SESSION)]).toEqual([1, 0, false])
  })

  it.each(['finished', 'dropped with the learner'])(
    'says that the requests of several learners are finished once those behind the sync of one of them are %s',
    async (how) => {
      const { pipeline, confirms, run, settle, proposed } = await leaderFixture()
      const [one, other] = [{}, {}]
      const forward = (type: number): void =>
        run(() =>
          pipeline.submitForwarded(one, { sessionId: SESSION, xid: 1, type, body: CREATE, identities: [] }),
        )
      forward(OpCode.sync)
      forward(create)
      let isFinished = false
      run(() => pipeline.afterForwarded([one, other], () => (isFinished = true)))
      expect(confirms).toHaveLength(1)
      if (how === 'finished') run(confirms[0]!.done)
      else run(() => pipeline.removeLearner(one))
      expect([confirms.length, proposed.length]).toEqual([2, how === 'finished' ? 1 : 0])
      run(confirms[1]!.done)
      await settle()
      expect(isFinished).toBe(true)
    },
  )

  it('closes the session in its table whose end is being applied when its role ends', async () => {
    const { write, pipeline, run, sessions, tree, settle, clock, commit } = await leaderFixture()
    for (let i = 0; i < 600; i++) write(i, create, createBody(`/${i}`, CreateMode.EPHEMERAL))
    await settle()
    run(() => pipeline.closeSession(SESSION, 0, undefined))
    await clock.untilIdle()
    commit()
    expect(tree.isApplying).toBe(true)
    run(() => runToEnd(pipeline.end()!))
    // The next role begins with this tree and these sessions.
    expect([tree.isApplying, tree.lastZxid, tree.has('/599')]).toEqual([false, 601, false])
    expect(sessions.get(SESSION)).toBe(undefined)
  })

  it('completes no sync after a transaction that it had to drop', async () => {
    const { write, sync, quorum, confirms, run, outcomes } = await leaderFixture()
    sync(1)
    quorum.isAccepting = false
    write(2, create, CREATE)
    run(confirms[0]!.done)
    expect(outcomes).toEqual([])
  })
})
