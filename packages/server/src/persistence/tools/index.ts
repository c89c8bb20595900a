/** Tools that read, check and repair the files of a data folder without a server. */
export { NO_LINE } from '../../core/audit-chain.ts'
export type { AuditPlace, ChainFault, ChainState } from '../../core/audit-chain.ts'
export { verifyAudit, type AuditVerification } from './verify-audit.ts'
export { readLog } from './read-log.ts'
export type { LogRecord, LogReport, LogState } from './read-log.ts'
export { repairLog } from './repair-log.ts'
export type { LogRepair, RepairOptions } from './repair-log.ts'
export { renumber } from './renumber.ts'
export type { Renumbering, RenumberOptions } from './renumber.ts'
export { abandonData } from './abandon-data.ts'
export { compareStates, forceMembers, readMemberState } from './force-members.ts'
export type { ForcedMembers, MemberState } from './force-members.ts'
export {
  ConfigurationError,
  parseConfiguration,
  verifierOf,
  type EnsembleConfiguration,
} from '../../core/quorum/index.ts'
export { chopLog, type ChoppedLog } from './chop-log.ts'
export { initializeData } from './initialize-data.ts'
export { readEpochs } from '../epoch-files.ts'
export { readDatabase, type DatabaseContents, type DatabaseLocation } from './read-database.ts'
export { readSnapshot } from './read-snapshot.ts'
export type { SnapshotContents, SnapshotNode } from './read-snapshot.ts'
export {
  DamageError,
  FolderLockedError,
  RecoveryError,
  dataFoldersOf,
  purge,
  readFeatureState,
  lockFolder,
  logsIn,
  SET_ASIDE,
  snapshotsIn,
  VERSION_FOLDER,
} from '../index.ts'
export type { FeatureState } from '../../core/quorum/index.ts'
export type { LoggedTxn, StoredStat, SubTxn, Txn } from '../../core/types.ts'
