import fc from 'fast-check'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { AckTracker } from './commit-tracker.ts'
import { mutants, type FaultRates, type Mutant } from './testing/simulation-context.ts'
import { ZabSimulation } from './testing/zab-simulation.ts'

// fast-check prints the seed and the plan of a failure; the plan alone replays it.
const RUNS = 300

const anyFaultRates = fc.record({
  loss: fc.nat(30),
  delayMs: fc.integer({ min: 1, max: 120 }),
  diskMs: fc.integer({ min: 1, max: 90 }),
  crash: fc.constantFrom(0, 60, 150, 400),
  cut: fc.constantFrom(0, 100, 300),
})
const anyPlan = fc.record({
  seed: fc.nat(2 ** 31 - 1),
  voters: fc.constantFrom(1, 2, 3, 3, 3, 4, 5),
  observers: fc.constantFrom(0, 0, 1, 2),
  faultRates: anyFaultRates,
})
interface Plan {
  readonly seed: number
  readonly voters: number
  readonly observers: number
  readonly faultRates: FaultRates
}

function play({ seed, voters, observers, faultRates }: Plan, mutant?: Mutant): ZabSimulation {
  const planted = mutant === undefined ? [] : [mutant]
  const simulation = new ZabSimulation(seed, voters, observers, { ...faultRates }, planted)
  const { random, members } = simulation
  simulation.startAll()
  for (let i = 0; i < 60; i++) {
    const step = random.below(14)
    if (step < 6) simulation.write()
    else if (step === 6)
      simulation.partition(...members.map(({ id }) => id).filter(() => random.below(2) === 0))
    else if (step === 7) simulation.partition()
    else if (step === 8) simulation.checkLeadership()
    else if (step === 9 && random.below(4) === 0) simulation.transfer()
    else if (step === 10) simulation.transfer(random.below(voters) + 1)
    simulation.run(random.below(400))
  }
  simulation.heal()
  simulation.startAll()
  simulation.run(2000)
  simulation.write()
  simulation.settle(60_000)
  return simulation
}

describe('members with failing disks, connections and processes', () => {
  it('keep all invariants, and are all synced once the faults end', () => {
    const counts = new Map<string, number>()
    fc.assert(
      fc.property(anyPlan, (plan) => {
        const simulation = play(plan)
        for (const [name, count] of simulation.counts) counts.set(name, (counts.get(name) ?? 0) + count)
      }),
      { numRuns: RUNS, endOnFailure: true },
    )
    // Guards against runs with too few events to prove anything.
    const minimumPerRun = {
      leaderships: 2,
      crashes: 2,
      commits: 10,
      diff: 2,
      disk: 0.15,
      snap: 0.4,
      trunc: 0.02,
      confirmed: 0.7,
      ahead: 0.1,
    }
    for (const [name, minimum] of Object.entries(minimumPerRun))
      expect(counts.get(name) ?? 0, name).toBeGreaterThan(RUNS * minimum)
  })
})

describe('a transfer to a chosen voter', () => {
  it('makes it the leader whatever its id is, and loses no write', () => {
    const simulation = new ZabSimulation(1, 5, 1, { loss: 0, delayMs: 5, diskMs: 5, crash: 0, cut: 0 })
    simulation.startAll()
    simulation.settle(60_000)
    for (const id of [1, 4, 2, 5, 3]) {
      simulation.write()
      simulation.transfer(id)
      simulation.run(2000)
      simulation.write()
      simulation.settle(60_000)
      expect(simulation.members.filter(({ leader }) => leader !== undefined).map((each) => each.id)).toEqual([
        id,
      ])
    }
  })
})

describe('a voter that has accepted later epochs than its ensemble', () => {
  function lead(): ZabSimulation {
    const simulation = new ZabSimulation(1, 3, 0, { loss: 0, delayMs: 5, diskMs: 5, crash: 0, cut: 0 })
    simulation.startAll()
    simulation.settle(60_000)
    simulation.write()
    simulation.settle(60_000)
    return simulation
  }
  const leaderOf = ({ members }: ZabSimulation): (typeof members)[number] =>
    members.find(({ leader }) => leader !== undefined)!

  it('follows without a vote, leaves the leader alone, and votes again after the next election', () => {
    const simulation = lead()
    const leader = leaderOf(simulation)
    const { epoch } = leader.leader!
    const behind = simulation.members.find(({ id }) => id !== leader.id)!
    behind.crash()
    behind.disk.setEpoch('acceptedEpoch', epoch + 3)
    simulation.write()
    behind.start()
    simulation.settle(60_000)
    expect(leader.leader?.epoch).toBe(epoch)
    expect(simulation.counts.get('without a vote')).toBe(1)
    expect(behind.disk.acceptedEpoch).toBe(epoch + 3)

    const third = simulation.members.find((member) => member !== leader && member !== behind)!
    simulation.write()
    simulation.settle(60_000)
    third.crash()
    simulation.run(2000)
    expect(leaderOf(simulation).leader!.epoch).toBe(epoch + 4)
    simulation.write()
    third.start()
    simulation.settle(60_000)
    expect(simulation.counts.get('without a vote')).toBe(1)
  })

  it('stays out with a history of a later epoch, so that no acknowledged write is undone', () => {
    const simulation = lead()
    const leader = leaderOf(simulation)
    const { epoch } = leader.leader!
    const stranger = simulation.members.find(({ id }) => id !== leader.id)!
    stranger.crash()
    stranger.disk.setEpoch('acceptedEpoch', epoch + 3)
    stranger.disk.setEpoch('currentEpoch', epoch + 3)
    simulation.write()
    stranger.start()
    simulation.run(20_000)
    expect(leader.leader?.epoch).toBe(epoch)
    expect(stranger.isServing).toBe(false)
    const { committed } = simulation.checker
    expect(leader.tree).toEqual(committed)
  })
})

describe('a mutant', () => {
  const keptAcks = 'a leader keeps the ACKs of a server that reconnects'
  const slowDisks = { loss: 0, delayMs: 5, diskMs: 400, crash: 0, cut: 60 }
  afterEach(() => vi.restoreAllMocks())

  it('is not found in correct members', () => {
    for (let seed = 1; seed <= 30; seed++) play({ seed, voters: 3, observers: 1, faultRates: slowDisks })
  })

  it.each(mutants)('in which %s is found', (mutant) => {
    // This mutant is in the leader itself, all others are in its host.
    if (mutant === keptAcks) vi.spyOn(AckTracker.prototype, 'forget').mockImplementation(() => {})
    const faultRates =
      mutant === keptAcks ? slowDisks : { loss: 5, delayMs: 40, diskMs: 60, crash: 150, cut: 200 }
    let found: unknown
    for (let seed = 1; seed <= 600 && found === undefined; seed++) {
      try {
        play({ seed, voters: 3, observers: seed % 2, faultRates }, mutant)
      } catch (error) {
        found = error
      }
    }
    expect(found).toBeDefined()
  })
})
