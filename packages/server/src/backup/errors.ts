/** A backup that cannot be made, found or used. The message says what was expected, what came, and what to do. */
export class BackupError extends Error {
  override readonly name = 'BackupError'
}
