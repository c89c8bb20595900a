import { ErrorCode, errorName } from '@zabra/protocol'
import { ExitCode, errorDetails, toExit, type Exit } from '../exit-codes.ts'

/** A failed command, with the message of ZooKeeper's shell. An empty message is not printed. */
export class ShellFailure extends Error {
  override readonly name = 'ShellFailure'
  readonly exitCode: number
  constructor(message: string, exitCode: number) {
    super(message)
    this.exitCode = exitCode
  }
}

/** Messages of ZooKeeper's shell for errors of a node; the path follows. */
const pathMessages: ReadonlyMap<number, string> = new Map([
  [ErrorCode.NONODE, 'Node does not exist: '],
  [ErrorCode.NOCHILDRENFOREPHEMERALS, 'Ephemerals cannot have children: '],
  [ErrorCode.NODEEXISTS, 'Node already exists: '],
  [ErrorCode.NOTEMPTY, 'Node not empty: '],
  [ErrorCode.NOTREADONLY, 'Not a read-only call: '],
  [ErrorCode.INVALIDACL, 'Acl is not valid : '],
  [ErrorCode.NOAUTH, 'Insufficient permission : '],
  [ErrorCode.BADARGUMENTS, 'Arguments are not valid : '],
  [ErrorCode.BADVERSION, 'version No is not valid : '],
  [ErrorCode.QUOTAEXCEEDED, 'Quota has exceeded : '],
])

/** Names in `KeeperErrorCode = …` that `errorName` does not give. */
const errorNames: ReadonlyMap<number, string> = new Map([
  [ErrorCode.CONNECTIONLOSS, 'ConnectionLoss'],
  [ErrorCode.OPERATIONTIMEOUT, 'OperationTimeout'],
  [ErrorCode.SESSIONEXPIRED, 'Session expired'],
  [ErrorCode.SESSIONMOVED, 'Session moved'],
  [ErrorCode.AUTHFAILED, 'AuthFailed'],
  [ErrorCode.MARSHALLINGERROR, 'MarshallingError'],
  [ErrorCode.UNIMPLEMENTED, 'Unimplemented'],
  [ErrorCode.INVALIDACL, 'InvalidACL'],
  [ErrorCode.NOWATCHER, 'No such watcher'],
  [ErrorCode.RECONFIGDISABLED, 'Reconfig is disabled'],
  [ErrorCode.RECONFIGINPROGRESS, 'Reconfig In Progress'],
  [ErrorCode.NEWCONFIGNOQUORUM, 'No quorum of new config'],
])

/** Returns what the shell prints for an error, and the exit code. */
export function toShellExit(error: unknown): Exit {
  if (error instanceof ShellFailure) return { line: error.message, exitCode: error.exitCode }
  const { wireCode, path } = errorDetails(error)
  const exit = toExit(error)
  if (wireCode === undefined) return exit
  const text = pathMessages.get(wireCode)
  if (text !== undefined) return { line: `${text}${path ?? 'null'}`, exitCode: exit.exitCode }
  return { line: keeperError(wireCode, path), exitCode: exit.exitCode }
}

/** Formats an error code as Java's `KeeperException` does. */
export const keeperError = (wireCode: number, path: string | undefined): string =>
  `KeeperErrorCode = ${errorNames.get(wireCode) ?? errorName(wireCode)}${path === undefined ? '' : ` for ${path}`}`

/** Throws the message of ZooKeeper's shell when `path` is not a valid path. */
export function checkPath(path: string): void {
  const problem = pathProblem(path)
  if (problem !== undefined) throw new ShellFailure(problem, ExitCode.usage)
}

function pathProblem(path: string): string | undefined {
  if (path.length === 0) return 'Path length must be > 0'
  if (!path.startsWith('/')) return 'Path must start with / character'
  if (path.length > 1 && path.endsWith('/')) return 'Path must not end with / character'
  const invalid = (reason: string): string => `Invalid path string "${path}" caused by ${reason}`
  let start = 1
  for (let i = 1; i <= path.length && path.length > 1; i++) {
    if (i < path.length && path[i] !== '/') {
      const unit = path.charCodeAt(i)
      if (unit === 0) return invalid(`null character not allowed @${i}`)
      const isBad =
        unit < 0x20 || (unit > 0x7e && unit < 0xa0) || (unit >= 0xd800 && unit <= 0xf8ff) || unit >= 0xfff0
      if (isBad) return invalid(`invalid character @${i}`)
      continue
    }
    const name = path.slice(start, i)
    if (name === '') return invalid(`empty node name specified @${i}`)
    if (name === '.' || name === '..') return invalid(`relative paths not allowed @${i}`)
    start = i + 1
  }
  return undefined
}
