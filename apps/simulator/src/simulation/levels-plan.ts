import type { Prng } from '@zabra/testing'
import type { Fault } from './fault.ts'

/** The feature level of the newest release. */
export const NEWEST_LEVEL = 3

/** The releases that servers run, and what becomes of their feature levels. */
export interface LevelsPlan {
  /** The feature level of the first release of server 1, 2 and so on. */
  readonly first: readonly number[]
  /** Whether the newest level is finalized after healing. */
  readonly finalizesAtEnd: boolean
}

/**
 * Draws the releases of servers, upgrades, attempts to go back, requests to finalize levels and what interrupts them. Some of the
 * `outsiders`, which are no members at first, stay at an early release.
 */
export function drawLevels(
  prng: Prng,
  servers: readonly number[],
  outsiders: readonly number[],
  loadMs: number,
): { readonly levels: LevelsPlan; readonly faults: Fault[] } {
  const isMixed = prng.chance(0.7)
  const usual = isMixed ? prng.pick([1, 1, 2]) : NEWEST_LEVEL
  const first = servers.map(() => (isMixed && prng.chance(0.3) ? prng.integer(0, NEWEST_LEVEL) : usual))
  const faults: Fault[] = []
  const install = (server: number, level: number, at: number): void =>
    void faults.push({ kind: 'install', server, level, at, forMs: prng.pick([20, 200, 1000]) })
  for (let at = prng.between(0, loadMs / 3), left = prng.shuffled(servers); left.length > 0 && isMixed;) {
    install(left.pop()!, prng.pick([2, NEWEST_LEVEL, NEWEST_LEVEL]), at)
    at += prng.exponential(loadMs / 15)
  }
  if (prng.chance(0.5))
    for (let count = prng.integer(1, 3); count > 0; count--)
      install(prng.pick(servers), prng.integer(0, NEWEST_LEVEL), prng.between(100, loadMs))
  const mean = prng.pick([loadMs / 20, loadMs / 6])
  for (let at = 100 + prng.exponential(mean); at < loadMs; at += 50 + prng.exponential(mean)) {
    const level = prng.chance(0.5) ? {} : { level: prng.integer(1, NEWEST_LEVEL) }
    const server = prng.chance(0.9) ? 0 : prng.pick(servers)
    if (prng.chance(0.5)) faults.push({ ...drawInterruption(prng), at: at - 1 })
    faults.push({ kind: 'finalize', server, ...level, at, forMs: prng.pick([0, 500, 2000]) })
  }
  const finalizesAtEnd = prng.chance(0.5)
  const old = new Set(outsiders.filter(() => prng.chance(0.6)))
  return {
    levels: { first: first.map((level, index) => (old.has(index + 1) ? 0 : level)), finalizesAtEnd },
    faults: faults.filter((fault) => fault.kind !== 'install' || !old.has(fault.server)),
  }
}

const drawInterruption = (prng: Prng): Omit<Extract<Fault, { kind: 'interruptFinalize' }>, 'at'> => ({
  kind: 'interruptFinalize',
  how: prng.pick(['reset', 'isolate', 'kill', 'powerCut']),
  target: prng.pickWeighted({ leader: 2, other: 2, all: 1 }),
  afterMs: prng.pick([0, 0.5, 1, 2, 5, 10, 30]),
  forMs: prng.pick([20, 100, 600, 3000]),
})
