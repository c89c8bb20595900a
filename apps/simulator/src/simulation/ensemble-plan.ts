import type { Prng } from '@zabra/testing'
import type { Fault } from './fault.ts'
import { range } from './fault-plan.ts'
import type { GroupsPlan } from './membership-text.ts'

interface EnsemblePlan {
  readonly observers: readonly number[]
  readonly outsiders: readonly number[]
  readonly changes: Fault[]
}

/** Draws initial roles and membership changes. */
export function drawEnsemble(prng: Prng, servers: number, loadMs: number): EnsemblePlan {
  const ids = range(servers)
  const quiet = servers < 3 ? 0 : prng.pickWeighted({ none: 5, one: 2, two: servers > 3 ? 3 : 0 })
  const silent = prng.shuffled(ids).slice(0, quiet === 'one' ? 1 : quiet === 'two' ? 2 : 0)
  const observers = silent.filter(() => prng.chance(0.75))
  const outsiders = silent.filter((id) => !observers.includes(id))
  const changes: Fault[] = []
  if (servers < 3 || !prng.chance(0.4)) return { observers, outsiders, changes }
  const mean = prng.pick([loadMs / 10, loadMs / 4])
  for (let at = 100 + prng.exponential(mean); at < loadMs; at += 50 + prng.exponential(mean)) {
    const kind = prng.pickWeighted({ leave: 2, vote: 3, observe: 2, wipe: 1.5, renew: 1 })
    changes.push({
      kind,
      server: prng.chance(0.2) ? 0 : prng.pick(ids),
      at,
      forMs: prng.pick([50, 1000]),
    })
  }
  const outdated = prng.fork('outdated')
  const refused = changes
    .filter(() => outdated.chance(0.3))
    .map(({ at }): Fault => ({ kind: 'outdated', server: outdated.pick(ids), at: at + 1, forMs: 0 }))
  const interruptions = drawInterruptions(prng.fork('half'), changes)
  return { observers, outsiders, changes: [...changes, ...interruptions, ...refused] }
}

/** Draws interruptions of leaders just before, or while, their reconfigurations are committed. */
function drawInterruptions(prng: Prng, changes: readonly Fault[]): Fault[] {
  return changes
    .filter(() => prng.chance(0.4))
    .map(({ at }) => ({
      kind: 'interruptReconfig',
      how: prng.pickWeighted({ reset: 3, isolate: 2, kill: 1, powerCut: 1 }),
      afterMs: prng.pick([0, 0, 1, 10]),
      at: at - 1,
      forMs: prng.pick([100, 600, 3000]),
    }))
}

/** Returns the ensemble with at least one initial observer. */
export function withObservers(prng: Prng, servers: number, drawn: EnsemblePlan): EnsemblePlan {
  const { observers, outsiders, changes } = drawn
  if (observers.length > 0) return drawn
  const some = prng.shuffled(range(servers)).slice(0, servers > 3 ? 2 : 1)
  return { observers: outsiders.length > 0 ? outsiders : some, outsiders: [], changes }
}

/**
 * Draws an ensemble of two voters and an observer. Only one of the voters ever leads without the other one, as the oracle says:
 * with two of them, the one that was alone last would have to be the next one too, which no oracle knows.
 */
export function drawOracle(
  prng: Prng,
  loadMs: number,
): { survivor: number; ensemble: EnsemblePlan; faults: Fault[] } {
  const [survivor, other, observer] = prng.shuffled(range(3)) as [number, number, number]
  const faults: Fault[] = []
  for (let at = prng.between(100, 1000); at < loadMs; at += prng.between(4000, 9000))
    faults.push({ kind: 'alone', server: other, at, forMs: prng.pick([500, 1500, 3000]) })
  return { survivor, ensemble: { observers: [observer], outsiders: [], changes: [] }, faults }
}

/** Layouts in which quorums differ from majorities: a majority may not be a quorum, or a minority may be one. */
export const GROUPS: Readonly<Record<number, readonly GroupsPlan[]>> = {
  3: [
    { members: [[1, 2, 3]], weights: [2, 1, 1] },
    { members: [[1, 2, 3]], weights: [1, 1, 0] },
    { members: [[1], [2], [3]], weights: [1, 1, 3] },
    { members: [[1, 2, 3]], weights: [3, 1, 1] },
  ],
  5: [
    { members: [[1, 2, 3], [4], [5]], weights: [1, 1, 1, 1, 1] },
    { members: [[1, 2], [3, 4], [5]], weights: [1, 1, 1, 1, 1] },
    { members: [[1, 2, 3, 4, 5]], weights: [3, 1, 1, 1, 1] },
    {
      members: [
        [1, 2, 3],
        [4, 5],
      ],
      weights: [1, 1, 1, 1, 0],
    },
  ],
}

export function drawGroups(prng: Prng, servers: number): GroupsPlan | undefined {
  const layouts = GROUPS[servers]
  return layouts === undefined ? undefined : prng.pick(layouts)
}
