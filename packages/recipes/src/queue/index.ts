export { Queue } from './queue.ts'
export type { QueueOptions, ReceiveOptions } from './queue.ts'
export type { Message } from './message.ts'
export type { PutOptions } from './producer.ts'
