/** The Zabra server as a library. */
export { checkFiles, createServer, type ServerOptions } from './node-server.ts'
export type { FileProblem } from './check-files.ts'
export type { Server, ServerMetrics } from './server-types.ts'
export type { ServedPort } from './connections/listeners.ts'
export { DamageError, FolderLockedError, LogFullError, RecoveryError } from './persistence/index.ts'
export { SettingFileError, type GivenServerSettings, type ServerSettings } from './settings/index.ts'
export { ConfigurationError, parseConfiguration, printConfiguration } from './core/quorum/index.ts'
export type { EnsembleConfiguration, MemberConfiguration, MemberAddress } from './core/quorum/index.ts'
