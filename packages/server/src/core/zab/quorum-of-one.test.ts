import { describe, expect, it } from 'vitest'
import { QuorumOfOne } from './quorum-of-one.ts'

const confirm = (id: number) => ({ do: 'confirmLeadership', id })
const commitUpTo = (zxid: number) => ({ do: 'commitUpTo', zxid })

describe('a quorum of one', () => {
  it('leads at once, after the last transaction of the log and in its epoch', () => {
    const zxid = 2 * 2 ** 32 + 5
    expect(new QuorumOfOne(zxid).step({ type: 'start' })).toEqual([{ do: 'lead', epoch: 2, zxid }])
  })

  it('commits a transaction when it is durable', () => {
    const quorum = new QuorumOfOne(5)
    expect(quorum.propose(6)).toEqual([])
    expect(quorum.propose(7)).toEqual([])
    expect(quorum.markDurable(7)).toEqual([commitUpTo(7)])
  })

  it('confirms leadership when all earlier proposals are committed', () => {
    const quorum = new QuorumOfOne(5)
    expect(quorum.step({ type: 'checkLeadership', id: 1 })).toEqual([confirm(1)])
    quorum.propose(6)
    expect(quorum.step({ type: 'checkLeadership', id: 2 })).toEqual([])
    quorum.propose(7)
    expect(quorum.step({ type: 'checkLeadership', id: 3 })).toEqual([])
    expect(quorum.markDurable(6)).toEqual([commitUpTo(6), confirm(2)])
    expect(quorum.markDurable(7)).toEqual([commitUpTo(7), confirm(3)])
  })

  it('confirms leadership checks that waited for transactions lost by a full disk', () => {
    const quorum = new QuorumOfOne(5)
    quorum.propose(6)
    quorum.propose(7)
    quorum.step({ type: 'checkLeadership', id: 1 })
    expect(quorum.discardAfter(6)).toEqual([confirm(1)])
    quorum.propose(7)
    expect(quorum.markDurable(7)).toEqual([commitUpTo(7)])
  })

  it('cannot transfer leadership', () => {
    const quorum = new QuorumOfOne(5)
    expect(quorum.step({ type: 'transfer' })).toEqual([])
    expect(quorum.canPropose).toBe(true)
  })
})
