import { runScenario, serversOf } from '../recipes/run-scenario.ts'
import { drawPlan } from '../simulation/plan.ts'
import { runPlan } from '../simulation/run.ts'
import type { Hunt } from './mutant.ts'

/** Runs seeds, the known one first, until a checker reports a violation, and prints the result as a line of JSON. */
const [hunt, seeds, known] = JSON.parse(process.argv[2]!) as [Hunt, number, number | null]

/** Returns what detected a violation; undefined without one. */
async function detect(seed: number): Promise<string | undefined> {
  if ('recipe' in hunt) {
    const { violations } = await runScenario(hunt.recipe, seed, serversOf(seed))
    return violations[0]?.split('\n')[0]?.slice(0, 160)
  }
  const plan = drawPlan(seed, hunt)
  const { violations } = await runPlan(plan)
  const checkers = [...new Set(violations.map(({ checker }) => checker))]
  return checkers.length === 0 ? undefined : checkers.slice(0, 3).join(', ')
}

let result: { tried: number; by?: string } = { tried: seeds }
const others = Array.from({ length: seeds }, (_, index) => index + 1).filter((seed) => seed !== known)
for (const seed of known === null ? others : [known, ...others]) {
  const by = await detect(seed)
  if (by === undefined) continue
  result = { tried: seed, by }
  break
}
console.log(JSON.stringify(result))
