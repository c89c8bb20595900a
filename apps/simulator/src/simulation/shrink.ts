import type { Plan } from './plan.ts'
import { runPlan } from './run.ts'

/** Maximum number of runs for one search. */
const TRIES = 400

/**
 * Searches for a smaller plan that violates the same checker: fewer faults, fewer clients, less time, fewer servers.
 */
export async function shrink(plan: Plan, checker: string, tries: number = TRIES): Promise<Plan> {
  let best = plan
  let left = tries
  const fails = async (candidate: Plan): Promise<boolean> => {
    if (left-- <= 0) return false
    const { violations } = await runPlan(candidate)
    if (!violations.some((one) => one.checker === checker)) return false
    best = candidate
    return true
  }
  for (let before: Plan | undefined; before !== best && left > 0;) {
    before = best
    await dropParts('faults', () => best, fails)
    await dropParts('clients', () => best, fails)
    await dropParts('participants', () => best, fails)
    await shorten(() => best, fails)
    if (best.servers === 5) await fails({ ...best, servers: 3 })
  }
  return best
}

/** Leaves out ever smaller parts of a list. */
async function dropParts(
  list: 'faults' | 'clients' | 'participants',
  best: () => Plan,
  fails: (plan: Plan) => Promise<boolean>,
): Promise<void> {
  for (
    let size = Math.ceil(best()[list].length / 2);
    size >= 1;
    size = size === 1 ? 0 : Math.ceil(size / 2)
  ) {
    for (let at = 0; at < best()[list].length;) {
      const items = best()[list]
      const rest = [...items.slice(0, at), ...items.slice(at + size)]
      const smaller = { ...best(), [list]: rest } as Plan
      if (
        rest.length === items.length ||
        (list === 'clients' && rest.length === 0) ||
        !(await fails(smaller))
      )
        at += size
    }
  }
}

async function shorten(best: () => Plan, fails: (plan: Plan) => Promise<boolean>): Promise<void> {
  for (const part of [0.5, 0.75, 0.9]) {
    while (best().loadMs > 500) {
      const loadMs = Math.round(best().loadMs * part)
      const faults = best().faults.filter(({ at }) => at < loadMs)
      if (!(await fails({ ...best(), loadMs, faults }))) break
    }
  }
}
