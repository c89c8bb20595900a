/** Text that must occur exactly once in a source file, and its replacement. */
export interface SourceChange {
  /** Relative to the repository. */
  readonly file: string
  readonly find: string
  readonly replace: string
}

/** A defect on purpose, to prove that tests detect it. */
export interface SourceMutant {
  readonly name: string
  readonly changes: readonly SourceChange[]
}

/** The root folder of the repository. */
export const repository: string
/** Returns the changes whose text does not occur exactly once in its file. */
export function missingChanges(mutant: SourceMutant): SourceChange[]
/** Throws an error that names the mutant and the places that no longer exist. */
export function assertApplies(mutant: SourceMutant): void
/** Returns the source of a file with the changes of a mutant in it; undefined when it changes nothing there. */
export function mutate(path: string, mutant: SourceMutant): string | undefined
/** Returns a plugin for Vite and Vitest that loads sources with a mutant. */
export function vitePlugin(mutant: SourceMutant): {
  name: string
  enforce: 'pre'
  load: (id: string) => string | undefined
}
