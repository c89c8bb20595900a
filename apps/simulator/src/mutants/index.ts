import { mutants as recipeMutants } from '../../../../packages/recipes/src/testing/mutants.ts'
import { scenarios } from '../../../../packages/recipes/src/testing/scenarios/index.ts'
import { clients } from './clients.ts'
import { levels } from './levels.ts'
import type { Mutant } from './mutant.ts'
import { replication } from './replication.ts'
import { storage } from './storage.ts'
import { strangers } from './strangers.ts'

const ofServers: readonly Mutant[] = [...storage, ...clients, ...replication, ...strangers, ...levels].map(
  ({ servers, with: feature, ...mutant }) => ({
    ...mutant,
    hunt: { servers, features: feature === undefined ? [] : [feature] },
  }),
)

const ofRecipes: readonly Mutant[] = Object.entries(scenarios).flatMap(([recipe, { mutant }]) => {
  if (mutant === undefined) return []
  const { defect, changes } = recipeMutants[mutant]!
  return [{ name: `recipe:${recipe}`, defect, changes, hunt: { recipe } }]
})

/** All mutants that the simulation must detect. */
export const mutants: readonly Mutant[] = [...ofServers, ...ofRecipes]
