/** Ensemble configurations and quorum verifiers. */
export { hierarchical, isQuorumOfAll, majority, votersOfAll } from './verifier.ts'
export type { QuorumVerifier, QuorumVerifiers, ServerId } from './verifier.ts'
export {
  formatMember,
  printConfiguration,
  printDynamicFile,
  sameMembership,
  verifierOf,
  votersOf,
} from './configuration.ts'
export type {
  EnsembleConfiguration,
  MemberConfiguration,
  MemberAddress,
  MemberRole,
} from './configuration.ts'
export { ConfigurationError, buildConfiguration, parseConfiguration } from './parse-configuration.ts'
export { applyReconfig, ReconfigurationError } from './reconfig.ts'
export {
  compareClusters,
  CLUSTER_ID_BYTES,
  formatClusterId,
  hasClusterId,
  isFinal,
  isSameCluster,
  MAX_GENERATION,
  NO_CLUSTER,
  parseClusterId,
} from './cluster-id.ts'
export type { ClusterId } from './cluster-id.ts'
export { afterLeader, isSameState, MAX_FEATURE_LEVEL, NOT_FINALIZED, requiredLevel } from './feature-state.ts'
export type { FeatureState } from './feature-state.ts'
export type { ReconfigRequest } from './reconfig.ts'
