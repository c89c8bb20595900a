import { CreateMode } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import type { Txn } from '../types.ts'
import { PreparerFixture } from './testing/preparer-fixture.ts'

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
})
