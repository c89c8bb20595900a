/** Who belongs to an ensemble, and how many of them may decide. */
export { hierarchical, isQuorumOfAll, majority, votersOfAll } from './verifier.ts'
export type { Hierarchy, QuorumVerifier, Quorums, ServerId } from './verifier.ts'
export {
  printConfiguration,
  printDynamicFile,
  sameMembership,
  verifierOf,
  votersOf,
} from './configuration.ts'
export type { EnsembleConfiguration, Member, MemberAddress, Role } from './configuration.ts'
export { ConfigurationError, configurationOf, parseConfiguration } from './parse.ts'
export type { ConfigurationLine } from './parse.ts'
export { reconfigured, ReconfigurationError } from './reconfig.ts'
export type { Reconfiguration } from './reconfig.ts'
