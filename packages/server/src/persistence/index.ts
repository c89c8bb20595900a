/** Transaction log, snapshots and recovery in the formats of Apache ZooKeeper; see FORMAT.md. */
export { TxnLog } from './txn-log.ts'
export type { TxnLogEvents, TxnLogOptions, TxnLogState } from './txn-log.ts'
export { PartsPacker } from './packed-parts.ts'
export {
  decodeInSteps,
  decodeLoggedTxn,
  decodeTransactions,
  encodeLoggedTxn,
  isLargePayload,
  encodePayloadInSteps,
  TXN_DIGEST_VERSION,
} from './txn-codec.ts'
export { scanLog } from './log-scan.ts'
export type { RawEntry, ScanEnd } from './log-scan.ts'
export { takeSnapshot, writeSnapshot } from './snapshot-writer.ts'
export type { WrittenSnapshot } from './snapshot-writer.ts'
export { loadSnapshot } from './snapshot-reader.ts'
export { readData, recover } from './recover.ts'
export { RecoveryProgress, type RecoveryState } from './recovery-progress.ts'
export type { ExactSnapshot, Recovery, RecoveryOptions } from './recover.ts'
export { purge } from './purge.ts'
export { truncateTo } from './truncate.ts'
export {
  beginNextCluster,
  CLUSTER_FILE,
  drawClusterId,
  readClusterId,
  writeClusterId,
} from './cluster-file.ts'
export { FEATURE_FILE, readFeatureState, writeFeatureState } from './feature-file.ts'
export { EpochFiles, openEpochFiles } from './epoch-files.ts'
export { addEpochStarts, readEpochStarts } from './epoch-starts.ts'
export { isSuccessor, readLog } from './history.ts'
export type { RawTxn } from './history.ts'
export { LogRange } from './log-range.ts'
export { Mutex } from './mutex.ts'
export { finishReplacement, incomingName, replaceAllFiles } from './replacement.ts'
export { SET_ASIDE, setAside } from './set-aside.ts'
export { loadSnapshotStream } from './snapshot-reader.ts'
export { END_OF_NODES, SLICE_BYTES, SnapshotTables, STREAM_SIGNATURE, writeNode } from './snapshot-codec.ts'
export type { SessionTimeouts } from './snapshot-codec.ts'
export { lockFolder } from './folder-lock.ts'
export type { LockOwner } from './folder-lock.ts'
export {
  DamageError,
  DivergedFilesError,
  DivergenceError,
  FolderLockedError,
  LogFullError,
  RecoveryError,
} from './errors.ts'
export { DISTRUSTED_FILE, logsIn, snapshotName, snapshotsIn, VERSION_FOLDER } from './file-names.ts'
export type { SnapshotKind } from './file-names.ts'
export { HeapUse, memoryCheck } from './heap-use.ts'
export { pauseAfter, type Pause } from './pause.ts'
export { dataFoldersOf, RECEIVED_FILE, rejectMixedFolders } from './data-folders.ts'
export type { DataFolders } from './data-folders.ts'
export { hasNonAsciiPaths } from './path-encoding.ts'
export {
  ENTRY_END,
  ENTRY_HEAD_BYTES,
  LOG_HEADER_BYTES,
  LOG_MAGIC,
  MAX_ENTRY_BYTES,
  TXN_HEADER_BYTES,
  writeLogHeader,
} from './log-format.ts'
