export { DoubleBarrier } from './double-barrier.ts'
export type { Inside } from './double-barrier.ts'
