/** A backup that cannot be made, found or used. The message says what was expected, what came, and what to do. */
export class BackupError extends Error {
  override readonly name = 'BackupError'
}

/** A target of backups that did not do what was asked: another attempt may succeed. */
export class TargetError extends BackupError {}
