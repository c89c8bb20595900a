/** What is known of the backups in a target. Times are in milliseconds since 1970. */
export interface BackupReport {
  readonly url: string
  /** Whether this server writes the backups. */
  readonly isOnDuty: boolean
  /** Whether it is known which member writes them: not right after a start. */
  readonly isDecided: boolean
  /** The id of the member that writes them; undefined when none does, or it is not known. */
  readonly member: string | undefined
  readonly isRunning: boolean
  /** When a backup was made last, by any member; undefined before the first. */
  readonly lastBackupAt: number | undefined
  /** Longest time between two backups by the settings, in milliseconds. */
  readonly intervalMs: number
  /** Backups of this server that failed since it started. */
  readonly failures: number
  /** Backups of this server since it started that could not go on from the one before: moments in between cannot be restored. */
  readonly gaps: number
  /** Why the last one failed; undefined after one that did not. */
  readonly problem: string | undefined
  /** The last verification by replay, by any member; undefined before the first, and on a server that is not on duty. */
  readonly verified: { readonly time: number; readonly problem: string | null } | undefined
  /** Bytes and snapshots in the target; undefined on a server that is not on duty. */
  readonly contents: { readonly bytes: number; readonly snapshots: number } | undefined
}

/** A server that writes backups. */
export interface WritesBackups {
  /** Returns a report for each target. */
  reports(): readonly BackupReport[]
  /**
   * Begins a backup with a snapshot in each target of which this server has the duty. Waits a few seconds where no member has it yet.
   * Resolves to how many there are.
   */
  runNow(): Promise<number>
}
