import type { EnsembleConfiguration } from '../quorum/index.ts'

/**
 * The configuration that a logged transaction proposes, or undefined for any other transaction, at the price of reading its
 * type. Throws a `ProtocolError` when it cannot be read.
 */
export declare function configurationIn(payload: Uint8Array): EnsembleConfiguration | undefined
