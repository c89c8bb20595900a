import type { Change } from './mutations/mutation.ts'

export const variants: readonly { readonly name: string; readonly changes: readonly Change[] }[]
