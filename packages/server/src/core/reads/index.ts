/** Answers to everything that changes nothing. */
export { ReadHandlers } from './read-handlers.ts'
export type { ReadCaller, ReadContext } from './read-handlers.ts'
export type { ChunkedReply } from './chunked-reply.ts'
