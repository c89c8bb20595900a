/**
 * The client without a platform: the caller passes a transport, a clock and a random source. The entry points of Node
 * and of the web pass theirs.
 */
export { connectWith } from './connect.ts'
export type { ConnectOptions, ConnectDefaults } from './connect.ts'
export * from './errors.ts'
export { digestMd5With } from './sasl.ts'
export type { DigestMd5Login, DigestMd5Options } from './sasl.ts'
export { withCodecErrors } from './codec-errors.ts'
export { json, utf8 } from './codecs.ts'
export type { Schema, StandardSchema } from './codecs.ts'
export type * from './client-api.ts'
export type * from './client-options.ts'
export type * from './instrumentation.ts'
export type * from './platform.ts'
export type * from './types.ts'
export type * from './tree-types.ts'
export { mapConcurrent } from './map-concurrent.ts'
/** The types of which a custom transport and platform are made. */
export type { Cancel, Clock, Connection, ConnectionHandler, Random } from '@zabra/runtime'
export { AsyncQueue } from './async-queue.ts'
export type { OverflowPolicy } from './async-queue.ts'
export { parseServers, addressKey } from './servers/connect-string.ts'
export { digestId, Perms } from '@zabra/protocol'
