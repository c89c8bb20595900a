import type { Fault } from '../simulation/fault.ts'
import type { Prng } from '@zabra/testing'

/** What a library client may do. */
export type ParticipantOperation = keyof ReturnType<typeof drawWeights>

/** The behaviour of a library client. */
export interface ParticipantPlan {
  readonly timeoutMs: number
  /** Mean think time between two bursts, in milliseconds. */
  readonly thinkMs: number
  /** Maximum number of calls in a burst. */
  readonly burst: number
  /** Whether it follows znodes with persistent watches. */
  readonly follows: boolean
  /** Whether reads of one turn are batched, and the maximum batch. Drawn from a fork of its own. */
  readonly batchReads: false | { readonly maxReads: number }
  readonly weights: Readonly<Record<ParticipantOperation, number>>
}

/**
 * Draws the library clients of a run from a fork of their own, so that the rest of the plan does not change with them.
 */
export function drawParticipants(prng: Prng): ParticipantPlan[] {
  return Array.from({ length: prng.integer(1, 3) }, (_, i) => {
    return {
      timeoutMs: prng.pick([1500, 3000, 6000]),
      thinkMs: prng.pick([15, 40, 120]),
      burst: prng.pick([1, 3, 8]),
      follows: prng.chance(0.6),
      batchReads: batchesOf(prng.fork(`batches ${i}`)),
      weights: drawWeights(prng),
    }
  })
}

function drawWeights(prng: Prng) {
  const weight = (usual: number): number => (prng.chance(0.15) ? 0 : usual * prng.pick([0.5, 1, 1, 3]))
  return {
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
  }
}

const batchesOf = (prng: Prng): ParticipantPlan['batchReads'] =>
  prng.chance(0.5) && { maxReads: prng.pick([2, 3, 64]) }

/** Draws faults of library clients, whose indexes follow those of the raw clients. */
export function drawParticipantFaults(
  prng: Prng,
  { from, count, servers, loadMs }: { from: number; count: number; servers: number; loadMs: number },
): Fault[] {
  const faults: Fault[] = []
  const mean = prng.pick([600, 1500, 4000])
  for (let at = 200 + prng.exponential(mean); at < loadMs; at += 50 + prng.exponential(mean)) {
    faults.push({
      at,
      forMs: prng.pick([20, 300, 1500, 4000, 9000]) * prng.between(0.5, 1.5),
      kind: prng.pickWeighted({ clientCut: 2, clientReset: 4, clientCrash: 1, clientPause: 2 }),
      client: from + prng.below(count),
      server: prng.integer(1, servers),
    })
  }
  return faults
}
