import { mutants } from '../../../../packages/recipes/src/testing/mutants.ts'
import { scenarios } from '../../../../packages/recipes/src/testing/scenarios/index.ts'

/** The bug of each recipe that has one, for the processes that plant them. */
export const planted = Object.entries(scenarios).flatMap(([scene, { mutant: plant }]) => {
  if (plant === undefined) return []
  const { defect: bug, module } = mutants[plant]!
  return [{ scene, plant, bug, module }]
})
