import type { SourceMutant } from '@zabra/testkit/mutants'

export const variants: readonly SourceMutant[]
