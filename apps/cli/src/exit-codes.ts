import { ErrorCode, errors } from '@zabra/protocol'

/** What a script can tell from the number with which the program ends. */
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
  damagedFile: 17,
  unhealthy: 20,
} as const
export type ExitCode = (typeof ExitCode)[keyof typeof ExitCode]

/** The table as `--help` and the README show it. */
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
  [ExitCode.damagedFile, 'a log or snapshot file is damaged'],
  [ExitCode.unhealthy, 'a member is down or not serving (status)'],
  [130, 'interrupted (Ctrl-C); 143 when terminated, 141 when the reader of its output went away'],
]

/** A mistake of the caller, told with what was expected. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** A command that could not do all it was asked for; its output says what. */
export class Failure extends Error {
  override readonly name = 'Failure'
  readonly exitCode: number
  constructor(message: string, exitCode: number, options?: ErrorOptions) {
    super(message, options)
    this.exitCode = exitCode
  }
}

/** The program was told to stop before it was done. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted'
  readonly exitCode: number
  constructor(signal: string) {
    super(`Stopped by ${signal}`)
    this.exitCode = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129, SIGPIPE: 141 }[signal] ?? ExitCode.unexpected
  }
}

/** One sentence for people and the code to exit with. An empty sentence is not printed. */
export interface Exit {
  readonly line: string
  readonly exitCode: number
}

/** Reads an error's number of the wire, its path and its code whichever class it has. */
export interface ErrorDetails {
  readonly wireCode: number | undefined
  readonly path: string | undefined
}

/** What an error says of a request; empty for errors that do not come from one. */
export function errorDetails(error: unknown): ErrorDetails {
  const of = (error ?? {}) as { wireCode?: unknown; path?: unknown }
  return {
    wireCode: typeof of.wireCode === 'number' ? of.wireCode : undefined,
    path: typeof of.path === 'string' ? of.path : undefined,
  }
}

/** Whether an error is the answer with this number. */
export const hasCode = (error: unknown, code: number): boolean => errorDetails(error).wireCode === code

/** Turns whatever went wrong into what to tell. */
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
  if (name === 'DamageError') return { line, exitCode: ExitCode.damagedFile }
  if (name === 'CertificateError') return { line, exitCode: ExitCode.usage }
  if (name === 'DiskError' || name === 'FolderLockedError') return { line, exitCode: ExitCode.unexpected }
  if (categoryOf(error) === 'usage') return { line, exitCode: ExitCode.usage }
  if (name === 'NetworkError' || isUnreachable(error)) return { line, exitCode: ExitCode.connection }
  return { line, exitCode: ExitCode.unexpected }
}

function replyExit(wireCode: number, path: string | undefined, error: unknown): Exit {
  const node = path === undefined ? 'The node' : path
  switch (wireCode) {
    case ErrorCode.NONODE: {
      const line =
        path === '/'
          ? 'The root that stands behind the servers in --server or ZABRA_SERVER does not exist.'
          : `${node} does not exist, or its parent does not.`
      return { line, exitCode: ExitCode.noNode }
    }
    case ErrorCode.NODEEXISTS:
      return { line: `${node} exists already.`, exitCode: ExitCode.nodeExists }
    case ErrorCode.BADVERSION:
      return {
        line: `${node} has another version than the one given: somebody changed it. Read it again (zabra get -s) and decide.`,
        exitCode: ExitCode.badVersion,
      }
    case ErrorCode.NOTEMPTY:
      return {
        line: `${node} has children. Delete them first, or use zabra deleteall.`,
        exitCode: ExitCode.notEmpty,
      }
    case ErrorCode.NOAUTH:
      return {
        line: `No permission for ${node}. Give an identity that its access list names with --auth scheme:credential.`,
        exitCode: ExitCode.noPermission,
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
    default: {
      const meaning = errors.get(wireCode)?.meaning ?? oneLine(error)
      return { line: path === undefined ? meaning : `${path}: ${meaning}`, exitCode: ExitCode.refused }
    }
  }
}

/** A login by SASL says itself what was wrong with it; for the others there is nothing to tell but where to look. */
function refusedCredentials(error: unknown): string {
  const line = oneLine(error).replace(/\.$/, '')
  if (line.includes('offers no SASL login'))
    return `${line}. Leave out --sasl-user and ZABRA_SASL_USER, or give the server users.`
  if (line.startsWith('SASL ')) return `${line}. Check --sasl-user and its password.`
  return 'The server refused the credentials. Check --auth and ZABRA_AUTH, or log in with --sasl-user.'
}

const oneLine = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).replace(/\s*\n\s*/g, ' ').trim()

/** Every error of the client says what it asks of the caller. */
const categoryOf = (error: unknown): unknown => ((error ?? {}) as { category?: unknown }).category

/** Whether an error says that no server answers, or that the session is over. */
const isUnreachable = (error: unknown): boolean =>
  categoryOf(error) === 'recoverable' || categoryOf(error) === 'fatal'
