/** The commands with which operators inspect a server. */
export { FourLetterCommands } from './four-letter-commands.ts'
export type { LeaderMetrics, RoleMetrics } from '../connections/role-metrics.ts'
