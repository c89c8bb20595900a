import { expect, it } from 'vitest'
import { QuorumOfOne } from './quorum-of-one.ts'

/** A quorum of one behind this zxid, and the events that it has reported. */
function quorumAt(lastZxid: number): { quorum: QuorumOfOne; events: string[] } {
  const events: string[] = []
  const quorum = new QuorumOfOne(lastZxid, {
    commit: (zxid) => events.push(`commit ${zxid}`),
    confirmed: (ticket) => events.push(`confirmed ${ticket}`),
  })
  return { quorum, events }
}

it('leads at once, behind the last transaction and in its epoch', () => {
  const zxid = 2 * 2 ** 32 + 5
  expect(quorumAt(zxid).quorum.step({ type: 'start' })).toEqual([{ do: 'lead', epoch: 2, zxid }])
})

it('commits a transaction when it is durable', () => {
  const { quorum, events } = quorumAt(5)
  quorum.propose(6)
  quorum.propose(7)
  expect(events).toEqual([])
  quorum.markDurable(7)
  expect(events).toEqual(['commit 7'])
})

it('confirms leadership once all that was proposed before is committed', () => {
  const { quorum, events } = quorumAt(5)
  quorum.step({ type: 'confirm', ticket: 1 })
  expect(events).toEqual(['confirmed 1'])
  quorum.propose(6)
  quorum.step({ type: 'confirm', ticket: 2 })
  quorum.propose(7)
  quorum.step({ type: 'confirm', ticket: 3 })
  expect(events).toEqual(['confirmed 1'])
  quorum.markDurable(6)
  expect(events.slice(1)).toEqual(['commit 6', 'confirmed 2'])
  quorum.markDurable(7)
  expect(events.slice(3)).toEqual(['commit 7', 'confirmed 3'])
})

it('answers confirmations that waited for transactions that a full disk has lost', () => {
  const { quorum, events } = quorumAt(5)
  quorum.propose(6)
  quorum.propose(7)
  quorum.step({ type: 'confirm', ticket: 1 })
  quorum.discardAfter(6)
  expect(events).toEqual(['confirmed 1'])
  quorum.propose(7)
  quorum.markDurable(7)
  expect(events).toEqual(['confirmed 1', 'commit 7'])
})

it('has no leadership to hand over', () => {
  const { quorum, events } = quorumAt(5)
  expect(quorum.step({ type: 'transfer' })).toEqual([])
  expect([quorum.canPropose, events]).toEqual([true, []])
})
