import { makeZxid } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import { establishedLeader, LeaderHarness } from './testing/leader-harness.ts'
import { makeReconfig } from './testing/txn.ts'

const z = makeZxid
const servers = (count: number): string =>
  Array.from({ length: count }, (_, i) => `server.${i + 1}=h${i + 1}:1:2`).join('\n')
const three = servers(3)
const five = servers(5)
const TICKS = 2

/** Decides whether a server may stop while others have a permit. */
const decide = ({ leader }: LeaderHarness, server: number, ...stopping: number[]) =>
  leader.decideStop(server, new Set(stopping), TICKS)
const allowed = { isAllowed: true, missing: [] }

describe('a leader has heard a quorum', () => {
  it('if enough followers have sent a packet within these ticks', () => {
    const harness = establishedLeader(three, [1])
    expect(harness.leader.hasHeardQuorumWithin(0)).toBe(true)
    harness.ticks(2)
    expect([2, 1].map((ticks) => harness.leader.hasHeardQuorumWithin(ticks))).toEqual([true, false])
    harness.pong(1)
    expect(harness.leader.hasHeardQuorumWithin(0)).toBe(true)
  })

  it('only of active followers: none that is being synchronised, and no observer', () => {
    const harness = establishedLeader(`${five}\nserver.7=h:7:8:observer`, [1, 2])
    harness.identify(4, 1).ackEpoch(4, 0, 1).join(7, 0, { observer: true })
    harness.identify(105, 1, { observer: true }).ackEpoch(105, 0, 1).ack(105, z(1, 0))
    expect(harness.leader.hasHeardQuorumWithin(1)).toBe(true)
    harness.step({ type: 'closed', from: 1 })
    expect(harness.leader.hasHeardQuorumWithin(1)).toBe(false)
    harness.ack(4, z(1, 0))
    expect(harness.leader.hasHeardQuorumWithin(1)).toBe(true)
  })
})

describe('a server may stop', () => {
  it('while the voters that are left are a quorum without it and those that have a permit', () => {
    const harness = establishedLeader(five, [1, 2, 4, 5])
    expect(decide(harness, 1)).toEqual(allowed)
    expect(decide(harness, 1, 2)).toEqual(allowed)
    expect(decide(harness, 1, 2, 4)).toEqual({ isAllowed: false, missing: [] })
    expect(decide(harness, 3, 1)).toEqual(allowed)
  })

  it('not while others of the quorum are missing, silent or behind', () => {
    const missing = establishedLeader(three, [1])
    expect(decide(missing, 1)).toEqual({ isAllowed: false, missing: [2] })
    expect(decide(missing, 2)).toEqual(allowed)
    const silent = establishedLeader(three, [1, 2])
    silent.ticks(3).pong(2)
    expect(decide(silent, 2)).toEqual({ isAllowed: false, missing: [1] })
    const behind = establishedLeader(three, [1, 2])
    behind.propose(1).markDurable(z(1, 1)).ack(2, z(1, 1))
    expect(decide(behind, 2)).toEqual(allowed)
    behind.ticks(3).pong(1).pong(2)
    expect(decide(behind, 2)).toEqual({ isAllowed: false, missing: [1] })
    expect(decide(behind.ack(1, z(1, 1)), 2)).toEqual(allowed)
  })

  it('of one or two voters, one at a time while none is missing', () => {
    const alone = new LeaderHarness('server.3=h:1:2').establish()
    expect(decide(alone, 3)).toEqual(allowed)
    const two = 'server.1=h:1:2\nserver.3=h:3:4'
    const both = establishedLeader(two, [1])
    expect([decide(both, 1), decide(both, 3)]).toEqual([allowed, allowed])
    expect(decide(both, 1, 3)).toEqual({ isAllowed: false, missing: [] })
    expect(decide(both.ticks(3), 3)).toEqual({ isAllowed: false, missing: [1] })
  })

  it('of two voters, one at a time also where an oracle would let the other one lead alone', () => {
    const harness = establishedLeader('server.1=h:1:2\nserver.3=h:3:4', [1], { oracle: true })
    harness.step({ type: 'oracle', canLeadAlone: true }, { type: 'closed', from: 1 })
    expect(decide(harness, 3)).toEqual({ isAllowed: false, missing: [1] })
  })

  it('without a vote at any time, but with a vote in a reconfig that is not committed only as a voter', () => {
    const harness = establishedLeader(`${three}\nserver.7=h:7:8:observer`, [1], { reconfigEnabled: true })
    expect(decide(harness, 7)).toEqual({ isAllowed: true, missing: [2] })
    expect(decide(harness, 7, 1, 3)).toEqual({ isAllowed: true, missing: [2] })
    harness.leader.propose(z(1, 1), makeReconfig(z(1, 1), `${five}\nversion=100000001`))
    expect(decide(harness, 7)).toEqual({ isAllowed: false, missing: [2] })
  })

  it('whose vote has no weight at any time, and its absence or its permit keeps no voter from stopping', () => {
    const members = ['server.1=h1:1:2', 'server.3=h3:1:2', 'server.4=h4:1:2']
    const harness = establishedLeader([...members, 'group.1=1:3:4', 'weight.4=0'].join('\n'), [1])
    expect([decide(harness, 1), decide(harness, 3), decide(harness, 1, 4)]).toEqual([
      allowed,
      allowed,
      allowed,
    ])
    expect(decide(harness.ticks(3), 4)).toEqual({ isAllowed: true, missing: [1] })
    expect(decide(harness, 3)).toEqual({ isAllowed: false, missing: [1] })
  })

  it('not while the leader prepares to step down', () => {
    const harness = establishedLeader(three, [1, 2])
    harness.propose(1).step({ type: 'transfer' })
    expect(decide(harness, 1)).toEqual({ isAllowed: false, missing: [] })
  })
})
