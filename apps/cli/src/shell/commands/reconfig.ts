import { ErrorCode } from '@zabra/protocol'
import {
  applyReconfig,
  parseConfiguration,
  ReconfigurationError,
  type ReconfigRequest,
} from '@zabra/server/settings'
import { readFileArg } from '../../arguments.ts'
import { errorDetails, ExitCode } from '../../exit-codes.ts'
import type { Client, ReconfigChange } from '@zabra/client'
import { safeData } from '../../text/bytes.ts'
import { statLines } from '../../text/stat.ts'
import { CommandSyntaxError, numberOption, type ShellCommand } from '../command.ts'
import { ShellFailure, toShellExit } from '../failures.ts'

/** Changes the membership of the ensemble. */
export const reconfig: ShellCommand = {
  usage:
    'reconfig [-s] [-v version] [[-file path] | [-members serverID=host:port1:port2;port3[,...]*]] | [-add serverId=host:port1:port2;port3[,...]]* [-remove serverId[,...]*]',
  flags: ['-s'],
  valueOptions: ['-v', '-file', '-members', '-add', '-remove'],
  async run(shell, args) {
    const { flags, values } = args
    const list = (option: string): string | undefined => values.get(option)?.join(',')
    const file = values.get('-file')?.[0]
    if (file !== undefined && values.has('-members'))
      throw new CommandSyntaxError('Expected -file or -members, got both')
    const members = file === undefined ? list('-members') : membersOf(await readFileArg(file))
    const [joining, leaving] = [list('-add'), list('-remove')]
    const [isFullChange, isIncremental] = [
      members !== undefined,
      joining !== undefined || leaving !== undefined,
    ]
    if (isFullChange && isIncremental)
      throw new ShellFailure(
        "Can't use -file or -members together with -add or -remove (mixing incremental and non-incremental modes is not allowed)",
        ExitCode.usage,
      )
    if (!isFullChange && !isIncremental) throw new CommandSyntaxError('')
    const version = numberOption(args, '-v', 16)
    const change = {
      ...(members === undefined ? {} : { members }),
      ...(joining === undefined ? {} : { joining }),
      ...(leaving === undefined ? {} : { leaving }),
      ...(version === undefined ? {} : { version: BigInt(version) }),
    }
    // Retried, a refusal for want of a quorum would end as a timeout.
    const { data, stat } = await shell.zk.reconfig(change, { retry: false }).catch(async (error: unknown) => {
      const reason = await reasonOf(error, shell.zk, change)
      throw reason === undefined ? error : new ShellFailure(reason, toShellExit(error).exitCode)
    })
    shell.out(`Committed new configuration:\n${safeData(data)}`)
    if (flags.has('-s')) for (const line of statLines(stat)) shell.out(line)
  },
}

/**
 * Returns why a server has refused a change as invalid: the reply holds no more than an error number. Undefined for other errors, and
 * where the reason is unknown.
 */
async function reasonOf(error: unknown, zk: Client, change: ReconfigChange): Promise<string | undefined> {
  const { wireCode } = errorDetails(error)
  if (wireCode === ErrorCode.NEWCONFIGNOQUORUM)
    return `${toShellExit(error).line}: expected a majority of the new members to run and to follow the leader. Start them, then try again.`
  if (wireCode !== ErrorCode.BADARGUMENTS) return undefined
  const { members = null, joining = null, leaving = null } = change
  const request: ReconfigRequest = { joiningServers: joining, leavingServers: leaving, newMembers: members }
  try {
    const current = parseConfiguration(new TextDecoder().decode((await zk.getConfig()).data))
    applyReconfig(current, request, { version: current.version, minVoters: 2 })
  } catch (refusal) {
    if (refusal instanceof ReconfigurationError) return `Arguments are not valid : ${refusal.message}`
    // The configuration cannot be read now: the error of the server says more than the one of this attempt.
  }
  return undefined
}

/** Returns the members in a dynamic configuration file, separated by commas. */
const membersOf = (bytes: Uint8Array): string =>
  new TextDecoder()
    .decode(bytes)
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#') && !line.startsWith('version'))
    .join(',')
