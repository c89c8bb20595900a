import fc from 'fast-check'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { AckTracker } from './ack-tracker.ts'
import { mutants, ZabSimulation, type Mutant, type FaultRates } from './testing/zab-simulation.ts'

// fast-check prints the seed and the plan of a failure; the plan alone plays it again.
const RUNS = 300

const anyWeather = fc.record({
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
  weather: anyWeather,
})
interface Plan {
  readonly seed: number
  readonly voters: number
  readonly observers: number
  readonly weather: FaultRates
}

function play({ seed, voters, observers, weather }: Plan, planted: readonly Mutant[] = []): ZabSimulation {
  const world = new ZabSimulation(seed, voters, observers, { ...weather }, planted)
  world.startAll()
  for (let i = 0; i < 60; i++) {
    const what = world.random.below(14)
    if (what < 6) world.write()
    else if (what === 6)
      world.partition(...world.servers.map(({ id }) => id).filter(() => world.random.below(2) === 0))
    else if (what === 7) world.partition()
    else if (what === 8) world.confirm()
    else if (what === 9 && world.random.below(4) === 0)
      for (const server of world.servers) server.stepLeader({ type: 'transfer' })
    world.run(world.random.below(400))
  }
  world.heal()
  world.startAll()
  world.run(2000)
  world.write()
  world.settle(60_000)
  return world
}

describe('members whose disks, connections and processes fail', () => {
  it('keep every promise and come into step once all is well', () => {
    const counts = new Map<string, number>()
    fc.assert(
      fc.property(anyPlan, (plan) => {
        const world = play(plan)
        for (const [what, count] of world.counts) counts.set(what, (counts.get(what) ?? 0) + count)
      }),
      { numRuns: RUNS, endOnFailure: true },
    )
    // Runs in which hardly anything happened would prove nothing.
    const floors = {
      reigns: 2,
      crashes: 2,
      commits: 10,
      diff: 2,
      disk: 0.15,
      snap: 0.4,
      trunc: 0.02,
      confirmed: 0.7,
    }
    for (const [what, floor] of Object.entries(floors))
      expect(counts.get(what) ?? 0, what).toBeGreaterThan(RUNS * floor)
  })
})

describe('a mistake', () => {
  const cuts = 'keeps what was acknowledged and cut again'
  const slowDisks = { loss: 0, delayMs: 5, diskMs: 400, crash: 0, cut: 60 }
  afterEach(() => vi.restoreAllMocks())

  it('is not seen where there is none', () => {
    for (let seed = 1; seed <= 30; seed++) play({ seed, voters: 3, observers: 1, weather: slowDisks })
  })

  it.each(mutants)('that %s is found', (fault) => {
    // This one is in the machine itself, all others in its host.
    if (fault === cuts) vi.spyOn(AckTracker.prototype, 'forget').mockImplementation(() => {})
    const weather = fault === cuts ? slowDisks : { loss: 5, delayMs: 40, diskMs: 60, crash: 150, cut: 200 }
    let found: unknown
    for (let seed = 1; seed <= 600 && found === undefined; seed++) {
      try {
        play({ seed, voters: 3, observers: seed % 2, weather }, [fault])
      } catch (error) {
        found = error
      }
    }
    expect(found).toBeDefined()
  })
})
