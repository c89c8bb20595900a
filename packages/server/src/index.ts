/** The Zabra server as a library. */
export { createServer } from './host/server.ts'
export type { Server, ServerFigures } from './host/server.ts'
export type { ServedPort } from './host/listeners.ts'
export { DamageError, FolderLockedError, LogFullError, RecoveryError } from './log/index.ts'
export { defaults } from './settings/index.ts'
export type { ServerSettings } from './settings/index.ts'
export { ConfigurationError, parseConfiguration, printConfiguration } from './core/quorum/index.ts'
export type { EnsembleConfiguration, Member, MemberAddress } from './core/quorum/index.ts'
