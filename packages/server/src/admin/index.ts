/** The commands with which operators inspect a server. */
export { FourLetterCommands } from './four-letter-commands.ts'
export type { LeaderStatus, MemberConf, MemberStatus, RoleMetrics } from '../connections/role-metrics.ts'
