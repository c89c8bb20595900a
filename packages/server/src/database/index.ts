/** The data of a server: files, tree, log, and snapshots that are sent, received and taken. */
export { loadSessionPasswords, readSessionSecret, SharedSessionSecret } from './session-secret.ts'
export type { Database } from './database.ts'
export { openDatabase } from './open-database.ts'
export { SnapshotScheduler } from './snapshot-scheduler.ts'
export type { PreparedReplacement, SnapshotSource } from './types.ts'
