import type { Fault } from '../simulation/plan.ts'
import type { Prng } from '../world/prng.ts'

export type ParticipantOperation =
  | 'get'
  | 'exists'
  | 'children'
  | 'sync'
  | 'watch'
  | 'move'
  | 'reconnect'
  | 'set'
  | 'setIf'
  | 'create'
  | 'ephemeral'
  | 'sequential'
  | 'delete'
  | 'multi'
  | 'failingMulti'

/** What a real client likes to do. */
export interface ParticipantPlan {
  readonly timeoutMs: number
  /** Mean time between two bursts. */
  readonly thinkMs: number
  /** Most calls of a burst. */
  readonly burst: number
  /** Whether it follows znodes through streams of events. */
  readonly follows: boolean
  /** Whether reads of one turn leave together, and how many at most. Drawn from a branch of its own. */
  readonly batchReads: false | { readonly maxReads: number }
  readonly weights: Readonly<Record<ParticipantOperation, number>>
}

/** The real clients of a run. Drawn from a branch of its own, so that the rest of a plan does not change with them. */
export function drawParticipants(chance: Prng): ParticipantPlan[] {
  return Array.from({ length: chance.integer(1, 3) }, (_, i) => {
    const weight = (usual: number): number => (chance.chance(0.15) ? 0 : usual * chance.pick([0.5, 1, 1, 3]))
    return {
      timeoutMs: chance.pick([1500, 3000, 6000]),
      thinkMs: chance.pick([15, 40, 120]),
      burst: chance.pick([1, 3, 8]),
      follows: chance.chance(0.6),
      batchReads: batchesOf(chance.fork(`batches ${i}`)),
      weights: {
        get: 3,
        exists: weight(2),
        children: weight(1),
        sync: weight(1),
        watch: weight(3),
        move: weight(0.3),
        reconnect: weight(0.1),
        set: 3,
        setIf: weight(3),
        create: weight(3),
        ephemeral: weight(2),
        sequential: weight(1.5),
        delete: weight(2),
        multi: weight(1.5),
        failingMulti: weight(1),
      },
    }
  })
}

const batchesOf = (chance: Prng): ParticipantPlan['batchReads'] =>
  chance.chance(0.5) && { maxReads: chance.pick([2, 3, 64]) }

/** What happens to real clients, whose numbers follow those of the others. */
export function drawParticipantFaults(
  chance: Prng,
  { from, count, servers, loadMs }: { from: number; count: number; servers: number; loadMs: number },
): Fault[] {
  const faults: Fault[] = []
  const mean = chance.pick([600, 1500, 4000])
  for (let at = 200 + chance.exponential(mean); at < loadMs; at += 50 + chance.exponential(mean)) {
    faults.push({
      at,
      forMs: chance.pick([20, 300, 1500, 4000, 9000]) * chance.between(0.5, 1.5),
      kind: chance.pickWeighted({ clientCut: 2, clientReset: 4, clientCrash: 1, clientPause: 2 }),
      client: from + chance.below(count),
      server: chance.integer(1, servers),
    })
  }
  return faults
}
