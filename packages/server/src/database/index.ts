/** The disk of a server and the tree that stands for it, through all its roles. */
export type {
  Epochs,
  ReadonlyLogRange,
  LogWriter,
  SnapshotSink,
  SnapshotSource,
  TruncateResult,
  Database,
} from './types.ts'
export { openDatabase } from './database.ts'
