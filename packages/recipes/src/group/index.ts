export { Group, MemberIdConflictError } from './group.ts'
export type { GroupChange, GroupOptions, JoinOptions, Membership } from './group.ts'
export { Party } from './party.ts'
export type { PartyMembership, PartyOptions } from './party.ts'
