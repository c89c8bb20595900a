import { mutants } from '../../../../packages/recipes/src/testing/mutants.ts'
import { scenarios } from '../../../../packages/recipes/src/testing/scenarios/index.ts'

/** The bug of each recipe that has one, for the processes that plant them. */
export const planted = Object.entries(scenarios).flatMap(([scene, { mutant }]) => {
  if (mutant === undefined) return []
  const { defect, module } = mutants[mutant]!
  return [{ scene, mutant, defect, module }]
})
