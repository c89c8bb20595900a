/** Transaction log, snapshots and recovery in the formats of Apache ZooKeeper; see FORMAT.md. */
export {
  DamageError,
  DivergedFilesError,
  DivergenceError,
  FolderLockedError,
  LogFullError,
  RecoveryError,
} from './errors.ts'
export { lockFolder, type LockOwner } from './folder-lock.ts'
export { dataFoldersOf, type DataFolders } from './data-folders.ts'
export { logsIn, snapshotName, snapshotsIn, VERSION_FOLDER, type SnapshotKind } from './file-names.ts'
export { EpochFiles, openEpochFiles } from './epoch-files.ts'
export { Mutex } from './mutex.ts'

export { encodePayloadInSteps, writeEntry } from './entries.ts'
export { decodeLoggedTxn, encodeLoggedTxn } from './txn-codec.ts'
export { decodeInSteps } from './large-txns.ts'
export { PartsPacker } from './packed-parts.ts'
export { TxnLog, type TxnLogEvents, type TxnLogOptions, type TxnLogState } from './txn-log.ts'
export { scanLog, type RawEntry, type ScanEnd } from './log-scan.ts'
export { isSuccessor, readLog, type RawTxn } from './history.ts'
export { LogRange } from './log-range.ts'

export { takeSnapshot, writeSnapshot, type WrittenSnapshot } from './snapshot-writer.ts'
export { loadSnapshot, loadSnapshotStream } from './snapshot-reader.ts'
export {
  END_OF_NODES,
  STREAM_SIGNATURE,
  writeNode,
  writeSessionsAndAcls,
  type SessionTimeouts,
} from './snapshot-codec.ts'

export { recover, type Recovery, type RecoveryOptions } from './recover.ts'
export { truncateTo } from './truncate.ts'
export { finishReplacement, incomingName, replaceAllFiles } from './replacement.ts'
export { SET_ASIDE, setAside } from './set-aside.ts'
export { purge } from './purge.ts'
export { hasNonAsciiPaths } from './path-encoding.ts'
