export { DoubleBarrier } from './double-barrier.ts'
export type { BarrierHandle } from './double-barrier.ts'
