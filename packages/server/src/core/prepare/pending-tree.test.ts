import { CreateMode, ErrorCode, OpCode, Reader } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import type { Txn } from '../types.ts'
import { encodeRequest, failure, PreparerFixture, type RequestSpec } from './testing/preparer-fixture.ts'

describe('PendingTree', () => {
  it('forgets applied changes although their parent always has a pending change', () => {
    const fixture = new PreparerFixture()
    const waiting: { zxid: number; txn: Txn }[] = []
    let most = 0
    for (let round = 0; round < 2000; round++) {
      const txn = fixture.prepare({ op: 'create', path: '/n', flags: CreateMode.PERSISTENT_SEQUENTIAL })
      if (typeof txn === 'number') throw new Error(`The request could not be decoded: ${txn}`)
      waiting.push({ zxid: fixture.zxid, txn })
      if (waiting.length < 3) continue
      const first = waiting.shift()!
      fixture.tree.apply({ sessionId: 5n, cxid: 0, zxid: first.zxid, time: 1 }, first.txn)
      fixture.preparer.forgetApplied(first.zxid)
      most = Math.max(most, fixture.preparer.pendingNodes)
    }
    // Two creations are pending, and the change of their parent.
    expect(most).toBe(3)
  })

  it('forgets at most as many changes as it is asked to, and returns whether all are forgotten', () => {
    const fixture = new PreparerFixture()
    for (const path of ['/a', '/b', '/c']) fixture.prepare({ op: 'create', path })
    // Each creation changes the node and its parent, which stays pending until its last change is applied.
    const { preparer } = fixture
    const left: [boolean, number][] = [
      [preparer.forgetApplied(2, 0), preparer.pendingNodes],
      [preparer.forgetApplied(2, 3), preparer.pendingNodes],
      [preparer.forgetApplied(2, 1), preparer.pendingNodes],
      [preparer.forgetApplied(2), preparer.pendingNodes],
      [preparer.forgetApplied(3), preparer.pendingNodes],
    ]
    expect(left).toEqual([
      [false, 4],
      [false, 3],
      [true, 2],
      [true, 2],
      [true, 0],
    ])
  })

  it('keeps a node that was removed and created again when only the removal is applied', () => {
    const fixture = new PreparerFixture()
    fixture.create('/a')
    const removal = fixture.prepare({ op: 'delete', path: '/a' })
    fixture.prepare({ op: 'create', path: '/a' })
    const zxid = fixture.zxid - 1
    if (typeof removal === 'number') return expect.unreachable()
    fixture.tree.apply({ sessionId: 5n, cxid: 0, zxid, time: 1 }, removal)
    fixture.preparer.forgetApplied(zxid)
    expect(fixture.prepare({ op: 'create', path: '/a' })).toEqual(failure(ErrorCode.NODEEXISTS))
  })

  it('keeps the end of a session when only an earlier change of its node is applied', () => {
    const fixture = new PreparerFixture()
    fixture.apply({ op: 'create', path: '/e', flags: CreateMode.EPHEMERAL })
    fixture.prepare({ op: 'setData', path: '/e', data: 'x' })
    for (const _ of fixture.preparer.closeSession(5n, ++fixture.zxid));
    fixture.preparer.forgetApplied(fixture.zxid - 1)
    expect(fixture.prepare({ op: 'setData', path: '/e' })).toEqual(failure(ErrorCode.NONODE))
  })

  it.each([true, false])(
    'has no parent that only a failed multi has created, removed before (%s) or not',
    (isRemoved) => {
      const fixture = new PreparerFixture()
      fixture.create('/n')
      fixture.prepare({ op: 'delete', path: '/n' })
      if (!isRemoved) fixture.preparer.reset()
      const path = isRemoved ? '/n' : '/m'
      fixture.prepare([
        { op: 'create', path },
        { op: 'create', path: `${path}/c` },
        { op: 'check', path: '/none' },
      ])
      expect(fixture.prepare({ op: 'create', path: `${path}/d` })).toEqual(failure(ErrorCode.NONODE))
    },
  )

  it('keeps the node of a session that has ended until that is applied, and no longer', () => {
    const fixture = new PreparerFixture()
    for (const path of ['/e', '/f']) fixture.apply({ op: 'create', path, flags: CreateMode.EPHEMERAL })
    const zxid = ++fixture.zxid
    for (const _ of fixture.preparer.closeSession(5n, zxid));
    fixture.prepare({ op: 'create', path: '/f' })
    expect(fixture.preparer.pendingNodes).toBe(3)
    fixture.preparer.forgetApplied(zxid - 1)
    expect(fixture.preparer.hasPendingChange('/e')).toBe(true)
    fixture.preparer.forgetApplied(zxid)
    expect(['/e', '/f', '/'].map((path) => fixture.preparer.hasPendingChange(path))).toEqual([
      false,
      true,
      true,
    ])
  })

  it.each(['/b/x', '/ab/x', '/a/b/x', '/a/b/c/x'])(
    'does not take the parent of the write before for that of %s',
    (path) => {
      const fixture = new PreparerFixture()
      fixture.create('/a')
      fixture.prepare({ op: 'create', path: '/a/first' })
      expect(fixture.prepare({ op: 'create', path })).toEqual(failure(ErrorCode.NONODE))
      expect(fixture.prepare({ op: 'create', path: '/a/second' })).toMatchObject({ parentCVersion: 2 })
    },
  )

  it.each([true, false])(
    'forgets what is applied while a multi is prepared after it, whether that succeeds (%s) or not',
    (succeeds) => {
      const fixture = new PreparerFixture()
      const { preparer, tree } = fixture
      const before = fixture.prepare({ op: 'create', path: '/before' })
      const parts = Array.from({ length: 101 }, (_, n): RequestSpec => ({
        op: 'create',
        path: n === 100 && !succeeds ? '/none/x' : `/n${n}`,
      }))
      const { type, body } = encodeRequest(parts)
      const steps = preparer.prepareInSteps({ sessionId: 5n, type, identities: [] }, new Reader(body), 2, 1)
      // Once while the parts are decoded, and once after 100 of them are prepared.
      for (let pause = 0; pause < 2; pause++) steps.next()
      if (typeof before === 'number') expect.unreachable()
      else tree.apply({ sessionId: 5n, cxid: 0, zxid: 1, time: 1 }, before)
      expect(preparer.forgetApplied(1)).toBe(true)
      expect(preparer.hasPendingChange('/before')).toBe(true)
      let step = steps.next()
      while (step.done !== true) step = steps.next()
      expect(preparer.hasPendingChange('/before')).toBe(false)
      expect(preparer.pendingNodes).toBe(succeeds ? 102 : 0)
      if (typeof step.value === 'number') return expect.unreachable()
      tree.apply({ sessionId: 5n, cxid: 0, zxid: 2, time: 1 }, step.value.txn)
      expect(preparer.forgetApplied(2)).toBe(true)
      expect(tree.matches(step.value.digest!)).toBe(true)
      expect([preparer.pendingNodes, step.value.txn.type]).toEqual([0, OpCode.multi])
    },
  )
})
