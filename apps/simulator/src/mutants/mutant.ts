import type { SourceMutant } from '@zabra/testkit/mutants'
import type { Feature } from '../simulation/plan.ts'

/** Replacements in the sources of the server: the file, the text to find and its replacement. */
export type Changes = readonly (readonly [file: string, find: string, replace: string])[]

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

/** Returns a mutant of the server. The files are relative to its sources. */
export const mutant = (
  name: string,
  defect: string,
  ensembles: Pick<ServerMutant, 'servers' | 'with'>,
  changes: Changes,
): ServerMutant => ({
  name,
  defect,
  ...ensembles,
  changes: changes.map(([file, find, replace]) => ({ file: `packages/server/src/${file}`, find, replace })),
})
