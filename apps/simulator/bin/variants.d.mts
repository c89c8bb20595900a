import type { Change } from '../src/mutants/mutant.ts'

export const variants: readonly { readonly name: string; readonly changes: readonly Change[] }[]
