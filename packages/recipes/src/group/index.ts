export { Group, MemberIdConflictError } from './group.ts'
export type { GroupChange, GroupOptions, Membership } from './group.ts'
export { Party } from './party.ts'
export type { PartyOptions } from './party.ts'
