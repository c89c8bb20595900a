/** The tree of znodes, and how transactions change it. */
export { Tree } from './tree.ts'
export type { ChangeSink, ApplyHint, PartCallback, NodeRef, Traversal, TreeOptions } from './types.ts'
export { applyInSteps, appliesInSteps, failureOf } from './apply-in-steps.ts'
export {
  ChildPathsCursor,
  DescendantCounter,
  EphemeralPathsCursor,
  NAME_BYTES_AT_ONCE,
  countDescendants,
  writeChildren,
} from './listing.ts'
export { TreeCursor } from './cursor.ts'
export { NODE_TAIL_BYTES, type BulkLoader } from './bulk-load.ts'
export { NamespaceTraffic } from './namespace-traffic.ts'
export { AclTable, OPEN_ACL_ID, type AclView } from './acl-table.ts'
export {
  copyStatFields,
  crcPrefix,
  DigestHistory,
  DigestSum,
  isExcludedFromDigest,
  pathCrc,
  sameDigest,
  statDigest,
} from './digest.ts'
export { parseQuota, QUOTA_ROOT, quotaBreach, LIMITS_NAME, STATS_NAME } from './quotas.ts'
export type { QuotaBreach, QuotaNumbers } from './quotas.ts'
export {
  belongsToSessionUsers,
  SESSION_USER_IDENTITIES,
  SESSION_USER_XID,
  SESSION_USERS_NODE,
  sessionUserOf,
  sessionUserPath,
  sessionUserRequests,
} from './session-users.ts'
export {
  CONFIGURATION_NODE,
  copyConfigurationNode,
  readConfigurationNode,
  replacementOf,
  writeConfigurationNode,
} from './configuration-node.ts'
