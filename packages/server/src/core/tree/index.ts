/** The znodes and what each transaction does to them. */
export { Tree } from './tree.ts'
export type { ChangeSink, PartDone, TreeOptions } from './contract.ts'
export { TreeCursor } from './cursor.ts'
export { AclTable, OPEN } from './acl-table.ts'
export * from './digest.ts'
export { parseQuota, QUOTA_ROOT, quotaBreach, LIMITS, STATS } from './quotas.ts'
export type { QuotaBreach, QuotaNumbers } from './quotas.ts'
export { CONFIGURATION_NODE, configurationOf, showConfiguration } from './configuration-node.ts'
