import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ElectionSimulation } from './testing/election-simulation.ts'

// fast-check prints seed and path of a failure; put them into the options below to replay it.
const options = { numRuns: 200, endOnFailure: true }
const SETTLE_MS = 200_000

const anyFaultRates = fc.record({
  loss: fc.nat(40),
  duplicates: fc.nat(30),
  delayMs: fc.integer({ min: 1, max: 400 }),
})
const anyPlan = fc.record({
  seed: fc.nat(2 ** 31 - 1),
  voters: fc.integer({ min: 1, max: 7 }),
  observers: fc.nat(2),
  groups: fc.constantFrom(0, 0, 1, 2, 3),
  faultRates: anyFaultRates,
})

type Plan = typeof anyPlan extends fc.Arbitrary<infer T> ? T : never
const simulationOf = ({ seed, voters, observers, groups, faultRates }: Plan): ElectionSimulation =>
  new ElectionSimulation(seed, voters, { ...faultRates }, observers, groups)

/** Gives the voters different uncommitted histories, all below the first committed transaction; observers have none. */
function diversifyHistories(sim: ElectionSimulation): void {
  for (const node of sim.voters) {
    node.epoch = sim.random.below(3)
    // A server is in an epoch only if a quorum has accepted it.
    node.acceptedEpoch = 2
    node.zxid = sim.random.below(4)
  }
}

describe('servers on a network that loses, duplicates and reorders messages', () => {
  it('settle on one leader once the network is healed', () => {
    fc.assert(
      fc.property(anyPlan, (plan) => {
        const sim = simulationOf(plan)
        diversifyHistories(sim)
        for (const node of sim.nodes) {
          sim.start(node.id)
          sim.run(sim.random.below(300))
        }
        sim.run(3000)
        sim.heal()
        const leader = sim.settle(SETTLE_MS)
        expect(sim.verifier.weightOf(leader.id)).toBeGreaterThan(0)
      }),
      options,
    )
  })

  it('settle when some servers have logged a configuration that the others do not know', () => {
    fc.assert(
      fc.property(anyPlan, (plan) => {
        const sim = simulationOf({ ...plan, groups: 0 })
        diversifyHistories(sim)
        const voters = sim.voters.filter(() => sim.random.below(3) > 0)
        for (const node of sim.voters)
          if (voters.length > 0 && sim.random.below(3) === 0)
            sim.propose(
              node.id,
              voters.map(({ id }) => id),
            )
        for (const node of sim.nodes) {
          sim.start(node.id)
          sim.run(sim.random.below(300))
        }
        sim.run(3000)
        sim.heal()
        sim.settle(20_000)
      }),
      options,
    )
  })

  it('elect the server with the highest epoch, zxid and id when no message is lost and all servers are up', () => {
    fc.assert(
      fc.property(anyPlan, (plan) => {
        const sim = simulationOf({ ...plan, faultRates: { loss: 0, duplicates: 20, delayMs: 90 } })
        diversifyHistories(sim)
        const rank = ({ epoch, zxid, id }: { epoch: number; zxid: number; id: number }): number =>
          epoch * 100 + zxid * 10 + id
        const electable = sim.voters.filter(({ id }) => sim.verifier.weightOf(id) > 0)
        const best = electable.sort((a, b) => rank(b) - rank(a))[0]!.id
        sim.startAll()
        expect(sim.settle(SETTLE_MS).id).toBe(best)
        expect(sim.leadersByEpoch.size).toBe(1)
      }),
      options,
    )
  })

  it('never give an epoch two leaders nor elect one that lacks a committed transaction, through crashes and partitions', () => {
    let reigns = 0
    fc.assert(
      fc.property(anyPlan, (plan) => {
        const sim = simulationOf(plan)
        sim.startAll()
        for (let i = 0; i < 40; i++) {
          injectFault(sim)
          sim.run(sim.random.below(1500))
          sim.write()
        }
        sim.heal()
        sim.startAll()
        sim.settle(SETTLE_MS)
        reigns += sim.leadersByEpoch.size
      }),
      options,
    )
    // Guards against runs without enough elections to prove anything.
    expect(reigns).toBeGreaterThan(options.numRuns * 2)
  })

  function injectFault(sim: ElectionSimulation): void {
    const node = sim.nodes[sim.random.below(sim.nodes.length)]!
    const what = sim.random.below(10)
    if (what < 3 && node.isUp) sim.crash(node.id)
    else if (what < 6 && !node.isUp) sim.start(node.id)
    else if (what === 6) {
      const ids = sim.nodes.map(({ id }) => id)
      const cut = ids.filter(() => sim.random.below(2) === 0)
      sim.partition(cut)
    } else if (what === 7) sim.partition()
  }
})

describe('an ensemble with a leader', () => {
  const NO_FAULTS = { loss: 0, duplicates: 0, delayMs: 20 }
  function ensemble(voters: number, observers = 0): ElectionSimulation {
    const sim = new ElectionSimulation(7, voters, { ...NO_FAULTS }, observers)
    sim.startAll()
    sim.settle(5000)
    return sim
  }

  it('keeps its leader when a better candidate joins', () => {
    const sim = new ElectionSimulation(7, 3, { ...NO_FAULTS })
    sim.start(1, 2)
    expect(sim.settle(5000).id).toBe(2)
    sim.start(3)
    expect(sim.settle(5000).id).toBe(2)
    expect(sim.leadersByEpoch.size).toBe(1)
  })

  it('accepts a follower that was away for many rounds', () => {
    const sim = ensemble(3)
    sim.partition([1])
    sim.run(200_000)
    for (let i = 0; i < 5; i++) {
      sim.crash(1)
      sim.start(1)
      sim.run(5000)
    }
    sim.heal()
    expect(sim.settle(120_000).id).toBe(3)
    expect(sim.leadersByEpoch.size).toBe(1)
  })

  it('elects another leader when the leader crashes, and the old one follows when it restarts', () => {
    const sim = ensemble(3)
    sim.write()
    sim.crash(3)
    const next = sim.settle(5000).id
    expect([1, 2]).toContain(next)
    sim.start(3)
    expect(sim.settle(5000).id).toBe(next)
    expect([...sim.leadersByEpoch.values()]).toEqual([3, next])
  })

  it('has a leader in the larger partition only, which the smaller one joins when the network is healed', () => {
    const sim = ensemble(5)
    sim.partition([4, 5], [1, 2, 3])
    sim.run(5000)
    expect(sim.node(3).isEstablished).toBe(true)
    expect(sim.node(5).isEstablished).toBe(false)
    sim.heal()
    expect(sim.settle(120_000).id).toBe(3)
  })

  it('has no leader without a quorum, and elects one when a quorum is back', () => {
    const sim = ensemble(3)
    sim.crash(3)
    sim.crash(2)
    sim.run(60_000)
    expect(sim.nodes.some((node) => node.isEstablished)).toBe(false)
    sim.start(2)
    expect(sim.settle(120_000).id).toBe(2)
  })

  it('has observers that follow the leader and never lead', () => {
    const sim = ensemble(3, 2)
    expect(sim.node(5).role).toBe('observing')
    sim.crash(3)
    sim.settle(120_000)
    expect(sim.nodes.find((node) => node.isEstablished)!.id).toBe(2)
  })

  it('gives an observer that joins committed transactions only', () => {
    const sim = ensemble(3, 1)
    while (sim.node(3).zxid === sim.committed.zxid) sim.write()
    sim.crash(4)
    sim.start(4)
    sim.settle(5000)
    expect(sim.node(4).zxid).toBe(sim.committed.zxid)
  })

  it('elects a leader while the server with the highest id restarts again and again', () => {
    const sim = new ElectionSimulation(7, 3, { ...NO_FAULTS })
    sim.start(1, 2)
    for (let i = 0; i < 20; i++) {
      sim.start(3)
      sim.run(150)
      sim.crash(3)
      sim.run(30)
    }
    expect([1, 2]).toContain(sim.settle(30_000).id)
  })
})
