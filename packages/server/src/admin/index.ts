/** What operators ask: the four-letter words. */
export { FourLetterCommands } from './four-letter-commands.ts'
export type { FourLetterCommand } from './four-letter-commands.ts'
export type { LeaderStatus, MemberConf, MemberStatus, RoleMetrics } from '../connections/role-status.ts'
