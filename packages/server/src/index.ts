/** The Zabra server as a library. */
export { createServer } from './server.ts'
export type { Server, ServerMetrics } from './server-types.ts'
export type { ServedPort } from './connections/listeners.ts'
export { DamageError, FolderLockedError, LogFullError, RecoveryError } from './persistence/index.ts'
export { defaults } from './settings/index.ts'
export type { ServerSettings } from './settings/index.ts'
export { ConfigurationError, parseConfiguration, printConfiguration } from './core/quorum/index.ts'
export type { EnsembleConfiguration, MemberConfiguration, MemberAddress } from './core/quorum/index.ts'
