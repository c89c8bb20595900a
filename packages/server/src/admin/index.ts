/** The commands with which operators inspect a server. */
export { AdminServer } from './http/admin-server.ts'
export { AdminTokens } from './http/tokens.ts'
export { adminTls, adminTlsOptions } from './http/tls.ts'
export { RestoreRefusal, RestoreUndecided } from './admin-target.ts'
export type {
  AdminTarget,
  FeatureReport,
  FinalizePlan,
  FinalizeResult,
  HealthCheck,
  MemberLevel,
  TransferResult,
} from './admin-target.ts'
export type { DirectoryReport, ServerReport } from './server-report.ts'
export { FourLetterCommands } from './four-letter-commands.ts'
export type { LeaderMetrics, RoleMetrics } from '../connections/role-metrics.ts'
export { readCredentials, ServerBackups } from './server-backups.ts'
