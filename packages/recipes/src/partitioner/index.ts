export { Partitioner } from './partitioner.ts'
export type { PartitionerOptions } from './partitioner.ts'
export type { PartitionState } from './decide.ts'
export { HandOverError, type Share } from './shares.ts'
