export { Barrier, type BarrierOptions, type BarrierWaitOptions } from './barrier.ts'
