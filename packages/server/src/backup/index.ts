/** Backups: what a target holds, how it is written, checked and read. */
export { BackupError, BackupUsageError, TargetError } from './errors.ts'
export { BackupDuty } from './duty.ts'
export {
  isRemoteTarget,
  parseTarget,
  openTarget,
  parseCredentials,
  type S3Access,
  type TargetPlatform,
} from './open-target.ts'
export type { S3Credentials } from './s3-target.ts'
export { FolderTarget, type BackupTarget } from './target.ts'
export { parseKey, parseKeyBytes, type BackupKey } from './sealing.ts'
export type { LogManifest, Manifest, SnapshotManifest } from './manifest.ts'
export { manifestName, ZXID_FIELDS } from './manifest.ts'
export { Catalog, openPiece, type BackupChain, type BackupGap, type BackupStore } from './catalog.ts'
export { encodeLog } from './log-stream.ts'
export {
  writeBackup,
  type BackupOptions,
  type BackupSource,
  type SourceLog,
  type SourceSnapshot,
  type WrittenBackup,
} from './backup-writer.ts'
export { loadBackup, logFilesOf, openFile, type LoadedBackup } from './load-backup.ts'
export { digestText, verifyChain, verifyDeep, verifyPieces, type BackupDefect } from './verify.ts'
export { readVerification, writeVerification, type VerificationRecord } from './verification-record.ts'
export { parseRetention, type RetentionRule } from './retention.ts'
export { findPrunable, prune, removeBackups, type Prunable } from './prune.ts'
export { lastBefore, lastBeforeChange, parseChange } from './find-transaction.ts'
export { memoryCheck, pauseAfter } from '../persistence/index.ts'
export { closeSessions, restoreFolder, type RestoredFolder } from './restore-folder.ts'
export { writeSnapshotFile, type SnapshotFile } from './snapshot-file.ts'
export { nodesOf, type SnapshotNode } from '../persistence/tools/read-snapshot.ts'
export { httpSource, type SourceRequest, type SourceResponse } from './http-source.ts'
export { chunksOf, endable, endChunks } from './target.ts'
