/** A backup that cannot be made, found or used. The message says what was expected, what came, and what to do. */
export class BackupError extends Error {
  override readonly name: string = 'BackupError'
}

/** A target of backups that did not do what was asked: another attempt may succeed. */
export class TargetError extends BackupError {}

/** What was asked for does not fit the target or the folder: name something else. */
export class BackupUsageError extends BackupError {
  override readonly name = 'BackupUsageError'
}
