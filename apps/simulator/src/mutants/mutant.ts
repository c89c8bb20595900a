import type { Feature } from '../simulation/plan.ts'

/** A mistake that can be planted in the sources for one run of the simulation. */
export interface Mutation {
  readonly name: string
  /** One sentence about the mistake. */
  readonly mistake: string
  /** With how many servers it shows. */
  readonly servers: 1 | 3 | 5
  /** What the ensemble must have for it. */
  readonly with?: Feature
  readonly changes: readonly Change[]
}

/** A piece of a source file, which must be there once, and what takes its place. */
export interface Change {
  /** Below `packages`. */
  readonly file: string
  readonly find: string
  readonly replace: string
}
