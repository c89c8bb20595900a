import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ElectionSimulation, type FaultRates } from './testing/election-simulation.ts'

// fast-check prints the seed and the world of a failure; put `seed` and `path` into the options below to play it again.
const options = { numRuns: 200, endOnFailure: true }
const SETTLE_MS = 200_000

const anyWeather = fc.record({
  loss: fc.nat(40),
  duplicates: fc.nat(30),
  delayMs: fc.integer({ min: 1, max: 400 }),
})
const anyWorld = fc.record({
  seed: fc.nat(2 ** 31 - 1),
  voters: fc.integer({ min: 1, max: 7 }),
  observers: fc.nat(2),
  groups: fc.constantFrom(0, 0, 1, 2, 3),
  weather: anyWeather,
})

interface Plan {
  readonly seed: number
  readonly voters: number
  readonly observers: number
  readonly groups: number
  readonly weather: FaultRates
}
const make = ({ seed, voters, observers, groups, weather }: Plan): ElectionSimulation =>
  new ElectionSimulation(seed, voters, { ...weather }, observers, groups)

/** Voters with histories of their own, all of it below what anybody has committed; observers have only what is. */
function diversify(world: ElectionSimulation): void {
  for (const node of world.voters) {
    node.epoch = world.random.below(3)
    // Whoever is in an epoch was taken there by a quorum, which has accepted it.
    node.acceptedEpoch = 2
    node.zxid = world.random.below(4)
  }
}

describe('servers on a network that loses, doubles and reorders messages', () => {
  it('settle on one leader once messages flow', () => {
    fc.assert(
      fc.property(anyWorld, (plan) => {
        const world = make(plan)
        diversify(world)
        for (const node of world.nodes) {
          world.start(node.id)
          world.run(world.random.below(300))
        }
        world.run(3000)
        world.heal()
        const leader = world.settle(SETTLE_MS)
        expect(world.verifier.weightOf(leader.id)).toBeGreaterThan(0)
      }),
      options,
    )
  })

  it('settle whoever has logged a change of the ensemble that the others know nothing of', () => {
    fc.assert(
      fc.property(anyWorld, (plan) => {
        const world = make({ ...plan, groups: 0 })
        diversify(world)
        const voters = world.voters.filter(() => world.random.below(3) > 0)
        for (const node of world.voters)
          if (voters.length > 0 && world.random.below(3) === 0)
            world.propose(
              node.id,
              voters.map(({ id }) => id),
            )
        for (const node of world.nodes) {
          world.start(node.id)
          world.run(world.random.below(300))
        }
        world.run(3000)
        world.heal()
        world.settle(20_000)
      }),
      options,
    )
  })

  it('choose the one with the highest epoch, zxid and id when nothing is lost and all are there', () => {
    fc.assert(
      fc.property(anyWorld, (plan) => {
        const world = make({ ...plan, weather: { loss: 0, duplicates: 20, delayMs: 90 } })
        diversify(world)
        const rank = ({ epoch, zxid, id }: { epoch: number; zxid: number; id: number }): number =>
          epoch * 100 + zxid * 10 + id
        const electable = world.voters.filter(({ id }) => world.verifier.weightOf(id) > 0)
        const best = electable.sort((a, b) => rank(b) - rank(a))[0]!.id
        world.startAll()
        expect(world.settle(SETTLE_MS).id).toBe(best)
        expect(world.leadersByEpoch.size).toBe(1)
      }),
      options,
    )
  })

  it('never give an epoch two leaders nor choose one that lacks what was committed, through crashes and partitions', () => {
    let reigns = 0
    fc.assert(
      fc.property(anyWorld, (plan) => {
        const world = make(plan)
        world.startAll()
        for (let i = 0; i < 40; i++) {
          disturb(world)
          world.run(world.random.below(1500))
          world.write()
        }
        world.heal()
        world.startAll()
        world.settle(SETTLE_MS)
        reigns += world.leadersByEpoch.size
      }),
      options,
    )
    // A run in which hardly anything happened would prove nothing.
    expect(reigns).toBeGreaterThan(options.numRuns * 2)
  })

  function disturb(world: ElectionSimulation): void {
    const node = world.nodes[world.random.below(world.nodes.length)]!
    const what = world.random.below(10)
    if (what < 3 && node.isUp) world.crash(node.id)
    else if (what < 6 && !node.isUp) world.start(node.id)
    else if (what === 6) {
      const ids = world.nodes.map(({ id }) => id)
      const cut = ids.filter(() => world.random.below(2) === 0)
      world.partition(cut)
    } else if (what === 7) world.partition()
  }
})

describe('an ensemble that has a leader', () => {
  const calm = { loss: 0, duplicates: 0, delayMs: 20 }
  function ensemble(voters: number, observers = 0): ElectionSimulation {
    const world = new ElectionSimulation(7, voters, { ...calm }, observers)
    world.startAll()
    world.settle(5000)
    return world
  }

  it('keeps it when a better candidate joins', () => {
    const world = new ElectionSimulation(7, 3, { ...calm })
    world.start(1, 2)
    expect(world.settle(5000).id).toBe(2)
    world.start(3)
    expect(world.settle(5000).id).toBe(2)
    expect(world.leadersByEpoch.size).toBe(1)
  })

  it('takes back a follower that was away for many rounds', () => {
    const world = ensemble(3)
    world.partition([1])
    world.run(200_000)
    for (let i = 0; i < 5; i++) {
      world.crash(1)
      world.start(1)
      world.run(5000)
    }
    world.heal()
    expect(world.settle(120_000).id).toBe(3)
    expect(world.leadersByEpoch.size).toBe(1)
  })

  it('chooses another one when it dies, and the old one follows when it is back', () => {
    const world = ensemble(3)
    world.write()
    world.crash(3)
    const next = world.settle(5000).id
    expect([1, 2]).toContain(next)
    world.start(3)
    expect(world.settle(5000).id).toBe(next)
    expect([...world.leadersByEpoch.values()]).toEqual([3, next])
  })

  it('goes on in the larger part of a cut network, and the smaller part comes back to it', () => {
    const world = ensemble(5)
    world.partition([4, 5], [1, 2, 3])
    world.run(5000)
    expect(world.node(3).isEstablished).toBe(true)
    expect(world.node(5).isEstablished).toBe(false)
    world.heal()
    expect(world.settle(120_000).id).toBe(3)
  })

  it('has nobody to lead it without a quorum, and settles when one is back', () => {
    const world = ensemble(3)
    world.crash(3)
    world.crash(2)
    world.run(60_000)
    expect(world.nodes.some((node) => node.isEstablished)).toBe(false)
    world.start(2)
    expect(world.settle(120_000).id).toBe(2)
  })

  it('is found by observers, which never lead it', () => {
    const world = ensemble(3, 2)
    expect(world.node(5).role).toBe('observing')
    world.crash(3)
    world.settle(120_000)
    expect(world.nodes.find((node) => node.isEstablished)!.id).toBe(2)
  })

  it('survives a server with the highest id that starts again and again while others decide', () => {
    const world = new ElectionSimulation(7, 3, { ...calm })
    world.start(1, 2)
    for (let i = 0; i < 20; i++) {
      world.start(3)
      world.run(150)
      world.crash(3)
      world.run(30)
    }
    expect([1, 2]).toContain(world.settle(30_000).id)
  })
})
