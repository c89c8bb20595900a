/** Executes reads, in one turn or in several. */
export { ReadHandlers } from './read-handlers.ts'
export type { ReadCaller } from './types.ts'
export { CHUNK_THRESHOLD, type ChunkedReply } from './chunked-reply.ts'
