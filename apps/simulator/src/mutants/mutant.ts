import type { SourceChange, SourceMutant } from '@zabra/testkit/mutants'
import type { Feature } from '../simulation/plan.ts'

export type Change = SourceChange

/** A defect on purpose in the sources of the server, which the simulation must detect. */
export interface ServerMutant extends SourceMutant {
  /** The defect, in one sentence. */
  readonly defect: string
  /** The size of the ensembles that show it. */
  readonly servers: 1 | 3 | 5
  /** A feature that the ensembles need for it. */
  readonly with?: Feature
}

/** What a hunt runs until a checker detects the mutant: ensembles, or the scenario of a recipe. */
export type Hunt =
  | { readonly servers: number; readonly features: readonly Feature[] }
  | { readonly recipe: string }

/** A mutant with the runs that must detect it. */
export interface Mutant extends SourceMutant {
  readonly defect: string
  readonly hunt: Hunt
}
