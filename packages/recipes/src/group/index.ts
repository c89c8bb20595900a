export { Group, MemberIdConflictError } from './group.ts'
export type { GroupChange, GroupOptions, Membership } from './group.ts'
