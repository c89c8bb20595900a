import { ErrorCode, errors, validatePath } from '@zabra/protocol'

/** Exit codes of the program, for scripts. */
export const ExitCode = {
  ok: 0,
  unexpected: 1,
  usage: 2,
  noNode: 3,
  nodeExists: 4,
  badVersion: 5,
  notEmpty: 6,
  noPermission: 7,
  connection: 8,
  refused: 9,
  quotaExceeded: 10,
  differ: 11,
  notAcquired: 12,
  lost: 13,
  unwritable: 14,
  damagedFile: 17,
  unhealthy: 20,
} as const
export type ExitCode = (typeof ExitCode)[keyof typeof ExitCode]

/** The table of exit codes in `--help` and the README. */
export const exitCodeTable: readonly (readonly [code: number, meaning: string])[] = [
  [ExitCode.ok, 'done'],
  [ExitCode.unexpected, 'anything unexpected'],
  [ExitCode.usage, 'a mistake on the command line or in the input'],
  [ExitCode.noNode, 'a node does not exist'],
  [ExitCode.nodeExists, 'a node exists already'],
  [ExitCode.badVersion, 'a node has another version than the one given'],
  [ExitCode.notEmpty, 'a node has children'],
  [ExitCode.noPermission, 'no permission, or the credentials were refused'],
  [ExitCode.connection, 'no connection, no answer in time, or the session has ended'],
  [ExitCode.refused, 'the server refused the request for another reason'],
  [ExitCode.quotaExceeded, 'the change would exceed a quota'],
  [ExitCode.differ, 'the subtrees differ (diff)'],
  [ExitCode.notAcquired, 'another client holds the lock (lock --wait)'],
  [ExitCode.lost, 'the lock was lost while the command ran (lock)'],
  [ExitCode.unwritable, 'the output could not be written'],
  [ExitCode.damagedFile, 'a log, snapshot, backup or audit file is damaged'],
  [ExitCode.unhealthy, 'a member is down or not ready, or a certificate has ended'],
  [130, 'interrupted (Ctrl-C); 143 when terminated, 141 when the reader of its output went away'],
]

/** A usage mistake. Its message says what was expected. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** A command that failed in whole or in part, with its exit code. An empty message is not printed. */
export class Failure extends Error {
  override readonly name = 'Failure'
  readonly exitCode: number
  constructor(message: string, exitCode: number, options?: ErrorOptions) {
    super(message, options)
    this.exitCode = exitCode
  }
}

export type StopSignal = 'SIGINT' | 'SIGTERM' | 'SIGHUP' | 'SIGPIPE'

/** The program was stopped by a signal before it was done. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted'
  readonly exitCode: number
  readonly signal: StopSignal
  constructor(signal: StopSignal) {
    super(`Stopped by ${signal}`)
    this.signal = signal
    this.exitCode = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129, SIGPIPE: 141 }[signal]
  }
}

/** One line for the user, and the exit code. An empty line is not printed. */
export interface Exit {
  readonly line: string
  readonly exitCode: number
}

/** Error code of the protocol and path of a failed request. */
export interface ErrorDetails {
  readonly wireCode: number | undefined
  readonly path: string | undefined
}

/** Returns the details of a request error of any class; both undefined for other errors. */
export function errorDetails(error: unknown): ErrorDetails {
  const fields = (error ?? {}) as { wireCode?: unknown; path?: unknown }
  return {
    wireCode: typeof fields.wireCode === 'number' ? fields.wireCode : undefined,
    path: typeof fields.path === 'string' ? fields.path : undefined,
  }
}

/** Whether an error has this error code of the protocol. */
export const hasCode = (error: unknown, code: number): boolean => errorDetails(error).wireCode === code

/** Maps an error to the line to print and the exit code. */
export function toExit(error: unknown): Exit {
  if (error instanceof Interrupted) return { line: '', exitCode: error.exitCode }
  if (error instanceof UsageError) return { line: error.message, exitCode: ExitCode.usage }
  if (error instanceof Failure) return { line: error.message, exitCode: error.exitCode }
  const { wireCode, path } = errorDetails(error)
  if (wireCode !== undefined) return replyExit(wireCode, path, error)
  const text = error instanceof Error ? error.message : String(error)
  const line = text.replace(/\s*\n\s*/g, ' ').trim()
  const name = error instanceof Error ? error.name : ''
  if (name === 'AuthFailedError') return { line: refusedCredentials(error), exitCode: ExitCode.noPermission }
  if (name === 'DamageError' || name === 'RecoveryError') return { line, exitCode: ExitCode.damagedFile }
  if (name === 'BackupError') return { line, exitCode: ExitCode.unexpected }
  if (name === 'BackupUsageError') return { line, exitCode: ExitCode.usage }
  if (name === 'CertificateError') return { line, exitCode: ExitCode.usage }
  if (name === 'DiskError') return fileExit(error as NodeJS.ErrnoException, line)
  if (name === 'FolderLockedError') return { line, exitCode: ExitCode.unexpected }
  if (isWrongCall(error)) return { line, exitCode: ExitCode.usage }
  if (name === 'NetworkError' || isUnreachable(error)) return { line, exitCode: ExitCode.connection }
  const { syscall, code, path: file } = (error ?? {}) as NodeJS.ErrnoException
  if (typeof syscall === 'string' && typeof file === 'string')
    return fileExit(error as NodeJS.ErrnoException, `Cannot ${syscall} ${file}: ${code}`)
  return { line, exitCode: ExitCode.unexpected }
}

/** Codes of the system that say no more than that a path cannot be used: most often it is mistyped, or another user's. */
const PATH_CODES = new Set([
  'ENOENT',
  'ENOTDIR',
  'EISDIR',
  'EACCES',
  'EPERM',
  'EROFS',
  'ELOOP',
  'ENAMETOOLONG',
])
const FULL_CODES = new Set(['ENOSPC', 'EDQUOT', 'EFBIG'])

/** Returns the line for a file or folder that cannot be used. */
function fileExit({ code = '' }: NodeJS.ErrnoException, line: string): Exit {
  if (PATH_CODES.has(code))
    return { line: `${line}. Check the path and its permissions.`, exitCode: ExitCode.usage }
  const advice = FULL_CODES.has(code) ? '. Make room, or name another folder.' : ''
  return { line: line + advice, exitCode: ExitCode.unexpected }
}

function replyExit(wireCode: number, path: string | undefined, error: unknown): Exit {
  const node = path === undefined ? 'The node' : path
  switch (wireCode) {
    case ErrorCode.NONODE: {
      const line =
        path === '/'
          ? 'The root path (chroot) after the servers in --server or ZABRA_SERVER does not exist.'
          : missing(node, error)
      return { line, exitCode: ExitCode.noNode }
    }
    case ErrorCode.NODEEXISTS:
      return { line: `${node} exists already.`, exitCode: ExitCode.nodeExists }
    case ErrorCode.BADVERSION:
      return {
        line: `${node} has another version than the one given: another client has changed it. Read it again with zabra get -s.`,
        exitCode: ExitCode.badVersion,
      }
    case ErrorCode.NOTEMPTY:
      return {
        line: `${node} has children. Delete them first, or use zabra delete-all.`,
        exitCode: ExitCode.notEmpty,
      }
    case ErrorCode.NOAUTH:
      return {
        line: `No permission for ${path ?? 'the request'}. Give an identity from its access list with --auth scheme:credential.`,
        exitCode: ExitCode.noPermission,
      }
    case ErrorCode.INVALIDACL:
      return {
        line: `The server refused the access list of ${node}. Schemes are world:anyone, ip:ADDRESS, digest:USER:HASH (zabra digest prints it), x509, sasl, and auth, which needs an identity with --auth.`,
        exitCode: ExitCode.refused,
      }
    case ErrorCode.AUTHFAILED:
    case ErrorCode.SESSIONCLOSEDREQUIRESASLAUTH:
      return { line: refusedCredentials(error), exitCode: ExitCode.noPermission }
    case ErrorCode.QUOTAEXCEEDED:
      return {
        line: `${node} would exceed a hard quota. zabra quota list shows it.`,
        exitCode: ExitCode.quotaExceeded,
      }
    case ErrorCode.CONNECTIONLOSS:
    case ErrorCode.OPERATIONTIMEOUT:
    case ErrorCode.REQUESTTIMEOUT:
    case ErrorCode.SESSIONEXPIRED:
    case ErrorCode.SESSIONMOVED:
      return { line: oneLine(error), exitCode: ExitCode.connection }
    case ErrorCode.MARSHALLINGERROR:
      // The client may have rejected a reply: its message says so, with the reason.
      return { line: oneLine(error), exitCode: ExitCode.refused }
    default: {
      const meaning = errors.get(wireCode)?.meaning ?? oneLine(error)
      return { line: path === undefined ? meaning : `${path}: ${meaning}`, exitCode: ExitCode.refused }
    }
  }
}

/** Returns the line for a node that does not exist. A create fails so when the parent does not exist. */
function missing(node: string, error: unknown): string {
  const { operation, cause } = (error ?? {}) as { operation?: unknown; cause?: { operation?: unknown } }
  const isCreate = [operation, cause?.operation].some((one) => String(one).startsWith('create'))
  if (!isCreate) return `${node} does not exist.`
  const parent = node.slice(0, node.lastIndexOf('/')) || '/'
  return `${parent} does not exist, so ${node} cannot be created. Create it first, or use zabra create --parents.`
}

/** Returns the line for refused credentials. Only errors of a SASL login give a reason. */
function refusedCredentials(error: unknown): string {
  const line = oneLine(error).replace(/\.$/, '')
  if (line.includes('offers no SASL login'))
    return `${line}. Leave out --sasl-user and ZABRA_SASL_USER, or give the server users.`
  if (line.startsWith('SASL ')) return `${line}. Check --sasl-user and its password.`
  return 'The server refused the credentials. Check --auth and ZABRA_AUTH, or log in with --sasl-user.'
}

const oneLine = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).replace(/\s*\n\s*/g, ' ').trim()

/** The properties that every error of the client has. */
const kindOf = (error: unknown): { code?: unknown; scope?: unknown; retryable?: unknown } =>
  (error ?? {}) as object

/** Returns a `UsageError` with an example for a path that the client refused; other errors unchanged. */
export function withPathAdvice(error: unknown): unknown {
  const { path } = errorDetails(error)
  if (kindOf(error).code !== 'USAGE' || path === undefined) return error
  const line = oneLine(error)
  const isPathProblem = [true, false].some((sequential) => line === validatePath(path, sequential))
  return isPathProblem ? new UsageError(`${line}. Paths look like /app/config.`, { cause: error }) : error
}

/** Whether the client refused the call before it sent a request. */
const isWrongCall = (error: unknown): boolean =>
  kindOf(error).code === 'USAGE' || kindOf(error).code === 'ABORTED'

/** Whether an error means that no server responds or that the session has ended. */
const isUnreachable = (error: unknown): boolean => {
  const { retryable, scope } = kindOf(error)
  return retryable === true || scope === 'session' || scope === 'client'
}
