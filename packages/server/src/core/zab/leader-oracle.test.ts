import { makeZxid } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import { establishedLeader, LeaderHarness } from './testing/leader-harness.ts'

const z = makeZxid
const two = 'server.1=h:1:2\nserver.3=h:3:4'
const allowed = { type: 'oracle', canLeadAlone: true } as const

describe('one of two voters', () => {
  it.each([
    ['before its oracle has allowed it', true, []],
    ['without an oracle, whatever is said for one', undefined, [allowed]],
    ['after its oracle has forbidden it again', true, [allowed, { ...allowed, canLeadAlone: false }]],
  ])('does not lead alone %s', (_when, oracle, answers) => {
    const harness = new LeaderHarness(two, oracle === undefined ? {} : { oracle })
    harness.step({ type: 'start' }, ...answers).ticks(3)
    expect(harness.takeLog()).toEqual([])
  })

  it('leads alone while observers and connections without a name are there, but not while the other voter is', () => {
    const harness = new LeaderHarness(`${two}\nserver.7=h:5:6:observer`, { oracle: true })
    harness.step({ type: 'start' }, allowed, { type: 'accepted', from: 50 })
    harness.identify(7, 0, { observer: true })
    expect(harness.ticks(1).takeLog('store')).toEqual(['store acceptedEpoch 1'])
    harness.identify(1, 1).stored('acceptedEpoch', 1).takeLog()
    expect(harness.ticks(2).takeLog('store')).toEqual([])
    harness.step({ type: 'closed', from: 1 })
    expect(harness.ticks(1).takeLog('store')).toEqual(['store currentEpoch 1'])
  })

  it('leads alone also when the oracle allows it in the last tick', () => {
    const harness = new LeaderHarness(two, { oracle: true }).step({ type: 'start' })
    harness.identify(1).stored('acceptedEpoch', 1).ackEpoch(1).stored('currentEpoch', 1)
    harness.step({ type: 'closed', from: 1 }).ticks(10).takeLog()
    expect(harness.step(allowed).ticks(1).takeLog()).toEqual(['lead 1 from 100000000'])
  })

  it('does not accept its epoch alone before it is stored', () => {
    const harness = new LeaderHarness(two, { oracle: true }).step({ type: 'start' }, allowed)
    expect(harness.ticks(3).takeLog()).toEqual(['store acceptedEpoch 1'])
  })

  it('commits nothing alone without an oracle, whatever is said for one', () => {
    const harness = establishedLeader(two, [1])
    harness.propose(1).markDurable(z(1, 1)).step(allowed, { type: 'closed', from: 1 })
    expect(harness.takeLog('commit')).toEqual([])
  })

  it('commits alone only what its own log has made durable', () => {
    const harness = establishedLeader(two, [1], { oracle: true })
    harness.propose(1).propose(2).markDurable(z(1, 1))
    expect(harness.takeLog('commit')).toEqual([])
    harness.step(allowed)
    expect(harness.takeLog('commit')).toEqual([])
    expect(harness.step({ type: 'closed', from: 1 }).takeLog()).toEqual(['left 1', 'commit 100000001 to '])
    expect(harness.step(allowed).takeLog()).toEqual([])
    expect(harness.markDurable(z(1, 2)).takeLog()).toEqual(['commit 100000002 to '])
  })

  it('commits alone once the oracle allows it, when the other one has left before', () => {
    const harness = establishedLeader(two, [1], { oracle: true })
    harness.propose(1).markDurable(z(1, 1)).step({ type: 'closed', from: 1 })
    expect(harness.takeLog('commit')).toEqual([])
    expect(harness.step(allowed).takeLog()).toEqual(['commit 100000001 to '])
  })
})
