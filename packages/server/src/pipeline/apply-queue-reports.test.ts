import { OpCode } from '@zabra/protocol'
import { ManualClock } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import { createOf } from '../core/testing/create-of.ts'
import { SESSION_USER_XID, Tree } from '../core/tree/index.ts'
import type { Digest, Txn, Zxid } from '../core/types.ts'
import { runToEnd } from '../core/steps.ts'
import { WriteStages } from '../core/write-stages.ts'
import { ApplyQueue, type ApplyQueueOptions } from './apply-queue.ts'
import type { AcceptedWrite, WriteCallback } from './types.ts'

/** A queue over a tree that notes what it reports. The preparer forgets a transaction in that many steps. */
function given({ forgetSteps = 1 } = {}) {
  let left = forgetSteps
  const tree = new Tree({ digest: true, extendedTypes: true })
  const reports: string[] = []
  const deferred: (() => void)[] = []
  const callback = {
    onPart: (part, isApplied) => void reports.push(`part ${part.type} ${isApplied}`),
    onApplied: ({ logged }, err) => void reports.push(`applied ${logged.header.zxid}: ${err}`),
  } as WriteCallback
  const queue = new ApplyQueue({
    tree,
    watchNotifier: { zxid: -1, ancestorsVisited: 0, created() {} },
    clock: new ManualClock(),
    defer: (action: () => void) => deferred.push(action),
    hasDeferredReads: () => false,
    stages: new WriteStages(),
    preparer: { forgetApplied: () => --left <= 0 },
    lastZxid: 0,
    applySession: (id: bigint, txn: Txn, its: WriteCallback | undefined) =>
      reports.push(`session ${id} ${txn.type} ${its === callback}`),
    onSessionUserStored: (id: bigint) => reports.push(`user ${id}`),
  } as unknown as ApplyQueueOptions<never>)
  /** Enqueues a write, of a client of this server unless it is foreign. */
  const push = (
    zxid: Zxid,
    {
      txn = { type: OpCode.createSession, timeOut: 1 },
      cxid = 1,
      digest,
      isForeign = false,
    }: { txn?: Txn; cxid?: number; digest?: Digest; isForeign?: boolean } = {},
  ): void =>
    queue.enqueue({
      logged: { header: { sessionId: 7n, cxid, zxid, time: 1 }, txn, digest },
      xid: cxid,
      type: txn.type,
      callback: isForeign ? undefined : callback,
    } satisfies AcceptedWrite)
  /** Runs all later turns. */
  const runDeferred = (): void => {
    for (let action = deferred.shift(); action !== undefined; action = deferred.shift()) action()
  }
  return { tree, queue, reports, deferred, push, runDeferred }
}

/** The end of a session that is applied in several turns. */
const LARGE: Txn = {
  type: OpCode.closeSession,
  paths2Delete: Array.from({ length: 1000 }, (_, i) => `/${i}`),
}

describe('ApplyQueue', () => {
  it('calls back once, when everything that is committed is applied', () => {
    const { queue, push, runDeferred } = given()
    let calls = 0
    queue.afterCommitted(() => calls++)
    expect(calls).toBe(1)
    push(1, { txn: LARGE })
    queue.commit(1)
    queue.afterCommitted(() => calls++)
    expect([calls, queue.pendingSyncs]).toEqual([1, 1])
    runDeferred()
    expect([calls, queue.pendingSyncs]).toEqual([2, 0])
  })

  it('reports a large transaction once the preparer has forgotten it, which may take several steps', () => {
    const { queue, push, runDeferred, reports, tree } = given({ forgetSteps: 50 })
    push(1, { txn: { ...LARGE, paths2Delete: [] } })
    queue.commit(1)
    expect([tree.lastZxid, queue.isBusy, reports]).toEqual([1, true, []])
    runDeferred()
    expect([queue.isBusy, reports]).toEqual([
      false,
      [`session 7 ${OpCode.closeSession} true`, 'applied 1: 0'],
    ])
  })

  it('counts the writes of clients of this server, and all', () => {
    const { queue, push } = given()
    for (const isForeign of [false, true, false]) push(queue.length + 1, { isForeign })
    expect([queue.outstanding, queue.length, queue.isBusy]).toEqual([2, 3, false])
    queue.commit(1)
    expect([queue.outstanding, queue.length]).toEqual([1, 2])
    queue.commit(2)
    expect([queue.outstanding, queue.length]).toEqual([1, 1])
    queue.commit(3)
    expect([queue.outstanding, queue.length]).toEqual([0, 0])
  })

  it('applies sessions before the callback, and nothing for other transactions', () => {
    const { queue, push, reports } = given()
    push(1)
    push(2, { txn: createOf('/a') })
    push(3, { txn: { type: OpCode.closeSession, paths2Delete: [] }, isForeign: true })
    queue.commit(3)
    expect(reports).toEqual([
      `session 7 ${OpCode.createSession} true`,
      'applied 1: 0',
      'applied 2: 0',
      `session 7 ${OpCode.closeSession} false`,
    ])
  })

  it('says when the user of a session is stored', () => {
    const { queue, push, reports } = given()
    push(1, { txn: createOf('/a'), cxid: SESSION_USER_XID, isForeign: true })
    queue.commit(1)
    expect(reports).toEqual(['user 7'])
  })

  it('reports the parts of a multi', () => {
    const { queue, push, reports, runDeferred } = given()
    push(1, { txn: { type: OpCode.multi, txns: [createOf('/a'), createOf('/b')] } })
    push(2, { txn: { type: OpCode.multi, txns: [createOf('/c')] }, isForeign: true })
    queue.commit(2)
    runDeferred()
    const part = `part ${OpCode.create} true`
    expect(reports).toEqual([part, part, 'applied 1: 0'])
  })

  it('throws when the tree does not get the digest of a transaction, which it names', () => {
    const { tree, queue, push, reports } = given()
    const expected = new Tree({ digest: true, extendedTypes: true })
    expected.apply({ sessionId: 7n, cxid: 1, zxid: 1, time: 1 }, createOf('/a'))
    push(1, { txn: createOf('/a'), digest: expected.digest! })
    queue.commit(1)
    expect([tree.lastZxid, reports]).toEqual([1, ['applied 1: 0']])
    push(2, { txn: createOf('/b'), digest: { hi: 1, lo: 2 } })
    expect(() => queue.commit(2)).toThrow('The tree after a transaction has the digest that was computed')
  })

  it('calls back once everything is applied that was committed before', () => {
    const { queue, push } = given()
    const done: number[] = []
    for (const zxid of [1, 2]) push(zxid)
    queue.afterCommitted(() => done.push(0))
    expect(done).toEqual([0])
    expect(queue.notifyWhenApplied(0, () => done.push(-1))).toBe(true)
    expect(queue.notifyWhenApplied(1, () => done.push(1))).toBe(false)
    expect(queue.notifyWhenApplied(2, () => done.push(2))).toBe(false)
    expect(queue.pendingSyncs).toBe(2)
    queue.commit(1)
    expect([done, queue.pendingSyncs]).toEqual([[0, 1], 1])
    queue.releaseAll((done) => done())
    expect([done, queue.pendingSyncs]).toEqual([[0, 1, 2], 0])
  })

  it('applies what is durable and returns the rest of its writes when the rest is lost', () => {
    const { tree, queue, push } = given()
    for (const isForeign of [false, true, false, true]) push(queue.length + 1, { isForeign })
    expect(queue.discardAfter(2).map(({ logged }) => logged.header.zxid)).toEqual([3, 4])
    expect([tree.lastZxid, queue.length, queue.outstanding, queue.isBusy]).toEqual([2, 0, 0, false])
    push(3)
    queue.commit(3)
    push(4)
    expect([queue.discardAfter(1).length, tree.lastZxid]).toEqual([1, 3])
  })

  it('applies and calls nothing after its end', () => {
    const { tree, queue, push, reports } = given()
    const done: number[] = []
    for (const isForeign of [false, true]) push(queue.length + 1, { isForeign })
    queue.notifyWhenApplied(2, () => done.push(2))
    queue.end()
    expect([queue.length, queue.outstanding, queue.pendingSyncs]).toEqual([0, 0, 0])
    push(3)
    queue.commit(3)
    queue.releaseAll((done) => done())
    expect([tree.lastZxid, reports, done]).toEqual([0, [], []])
  })

  it('finishes a large transaction at its end without a callback', () => {
    const { tree, queue, push, reports } = given()
    const txns = Array.from({ length: 2000 }, (_, i) => createOf(`/n${i}`))
    push(1, { txn: { type: OpCode.multi, txns } })
    queue.commit(1)
    expect([queue.isBusy, tree.isApplying]).toEqual([true, true])
    runToEnd(queue.end()!)
    expect([tree.isApplying, tree.has('/n1999')]).toEqual([false, true])
    expect(reports.some((report) => report.startsWith('applied'))).toBe(false)
  })
})
