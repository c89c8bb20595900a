import { describe, expect, it } from 'vitest'
import { QuorumOfOne, type QuorumOfOneWork } from './quorum-of-one.ts'

/** Returns the work since the last call. */
function takeWork(quorum: QuorumOfOne): QuorumOfOneWork[] {
  const works: QuorumOfOneWork[] = []
  for (let work = quorum.nextWork(); work !== undefined; work = quorum.nextWork()) works.push(work)
  return works
}

const confirm = (id: number) => ({ do: 'confirmLeadership', id })
const commitUpTo = (zxid: number) => ({ do: 'commitUpTo', zxid })

describe('a quorum of one', () => {
  it('leads at once, after the last transaction of the log and in its epoch', () => {
    const zxid = 2 * 2 ** 32 + 5
    const quorum = new QuorumOfOne(zxid)
    quorum.step({ type: 'start' })
    expect(takeWork(quorum)).toEqual([{ do: 'lead', epoch: 2, zxid }])
  })

  it('commits a transaction when it is durable', () => {
    const quorum = new QuorumOfOne(5)
    quorum.propose(6)
    quorum.propose(7)
    expect(takeWork(quorum)).toEqual([])
    quorum.markDurable(7)
    expect(takeWork(quorum)).toEqual([commitUpTo(7)])
  })

  it('confirms leadership when all earlier proposals are committed', () => {
    const quorum = new QuorumOfOne(5)
    quorum.step({ type: 'checkLeadership', id: 1 })
    expect(takeWork(quorum)).toEqual([confirm(1)])
    quorum.propose(6)
    quorum.step({ type: 'checkLeadership', id: 2 })
    quorum.propose(7)
    quorum.step({ type: 'checkLeadership', id: 3 })
    expect(takeWork(quorum)).toEqual([])
    quorum.markDurable(6)
    expect(takeWork(quorum)).toEqual([commitUpTo(6), confirm(2)])
    quorum.markDurable(7)
    expect(takeWork(quorum)).toEqual([commitUpTo(7), confirm(3)])
  })

  it('confirms leadership checks that waited for transactions lost by a full disk', () => {
    const quorum = new QuorumOfOne(5)
    quorum.propose(6)
    quorum.propose(7)
    quorum.step({ type: 'checkLeadership', id: 1 })
    quorum.discardAfter(6)
    expect(takeWork(quorum)).toEqual([confirm(1)])
    quorum.propose(7)
    quorum.markDurable(7)
    expect(takeWork(quorum)).toEqual([commitUpTo(7)])
  })

  it('cannot transfer leadership', () => {
    const quorum = new QuorumOfOne(5)
    quorum.step({ type: 'transfer' })
    expect([takeWork(quorum), quorum.canPropose]).toEqual([[], true])
  })
})
