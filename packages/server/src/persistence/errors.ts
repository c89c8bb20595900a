/**
 * Completes the advice in an error about the files of a member. A member whose folder is moved away starts with an empty history and votes
 * with it, as if it had never acknowledged anything; an emptied one does not vote until its leader has sent it everything.
 */
export const ADOPT_ADVICE =
  'to give up the data of a member, empty it with zabra recover adopt --yes: it gets everything from its leader'

/** The advice where the log ends before the effects that a snapshot has. */
export const MISSING_LOG_ADVICE = `Bring the missing log files back. Where there are none, because Apache ZooKeeper lost power when it had just written this snapshot, move the snapshot away so that an older one is used; or, ${ADOPT_ADVICE}.`

/**
 * A file is corrupt. The server does not start, or stops, rather than serve its contents. The message says what was expected, what
 * was found and what to do.
 */
export class DamageError extends Error {
  override readonly name = 'DamageError'
  readonly file: string
  /** Offset in bytes; in a compressed snapshot, in its uncompressed contents. */
  readonly offset: number
  readonly action: string
  constructor(what: string, file: string, offset: number, action: string, options?: ErrorOptions) {
    super(`${what} in ${file} at byte ${offset}. ${action}`, options)
    this.file = file
    this.offset = offset
    this.action = action
  }
}

/** Each file is sound, but together they represent no state, such as logs without any snapshot. */
export class RecoveryError extends Error {
  override readonly name = 'RecoveryError'
  readonly folder: string
  readonly action: string
  constructor(what: string, folder: string, action: string, options?: ErrorOptions) {
    super(`${what} in ${folder}. ${action}`, options)
    this.folder = folder
    this.action = action
  }
}

/** Nothing can be appended until space, or a file descriptor, is free again. Reads continue. */
export class LogFullError extends Error {
  override readonly name = 'LogFullError'
  /** ENOSPC or EDQUOT for space, EMFILE or ENFILE for descriptors. */
  readonly code: string
  constructor(folder: string, code: string, options?: ErrorOptions) {
    const missing = code === 'EMFILE' || code === 'ENFILE' ? 'file descriptor' : 'space'
    super(
      `No ${missing} is left for the transaction log in ${folder} (${code}). Free some; the server then accepts writes again without a restart`,
      options,
    )
    this.code = code
  }
}

/** The folder is in use by another server. */
export class FolderLockedError extends Error {
  override readonly name = 'FolderLockedError'
  readonly code = 'ELOCKED'
  constructor(folder: string, owner: string) {
    super(
      `The folder ${folder} is in use by ${owner}. Stop that server, or choose another folder with dataDir.`,
    )
  }
}

/** The files are readable, but the tree that they make does not have the digest that they record. */
export class DivergedFilesError extends RecoveryError {}

/**
 * The tree after a transaction differs from the leader's, so this server's data differ from the ensemble's. A learner then requests
 * a full sync.
 */
export class DivergenceError extends Error {
  override readonly name = 'DivergenceError'
  readonly zxid: number
  constructor(zxid: number) {
    super(
      `Expected the tree after transaction 0x${zxid.toString(16)} to have the digest that its leader found, got another: the data of this server differ from the ensemble's`,
    )
    this.zxid = zxid
  }
}
