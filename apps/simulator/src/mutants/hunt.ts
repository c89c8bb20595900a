import { drawPlan, type Feature } from '../simulation/plan.ts'
import { runPlan } from '../simulation/run.ts'
import { guarded } from '../campaign/unhandled-rejections.ts'

/** Runs seeds until a checker reports a violation, and prints the result as a line of JSON. */
const [servers = 1, seeds = 100] = process.argv.slice(2, 4).map(Number)
const features = (process.argv[4] ?? '').split(',') as Feature[]
let outcome = { found: false, tried: seeds, seed: 0, checkers: '' }
for (let seed = 1; seed <= seeds; seed++) {
  const plan = drawPlan(seed, { servers, features })
  const { violations } = await guarded(plan, () => runPlan(plan))
  if (violations.length === 0) continue
  const names = [...new Set(violations.map(({ checker }) => checker))]
  outcome = { found: true, tried: seed, seed, checkers: names.slice(0, 3).join(', ') }
  break
}
console.log(JSON.stringify(outcome))
