import { readFileArg } from '../../arguments.ts'
import { ExitCode } from '../../exit-codes.ts'
import { safeData } from '../../text/bytes.ts'
import { statLines } from '../../text/stat.ts'
import { CommandSyntaxError, numberOption, type ShellCommand } from '../command.ts'
import { ShellFailure } from '../failures.ts'

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
    const { data, stat } = await shell.zk.reconfig({
      ...(members === undefined ? {} : { members }),
      ...(joining === undefined ? {} : { joining }),
      ...(leaving === undefined ? {} : { leaving }),
      ...(version === undefined ? {} : { version: BigInt(version) }),
    })
    shell.out(`Committed new configuration:\n${safeData(data ?? new Uint8Array(0))}`)
    if (flags.has('-s')) for (const line of statLines(stat)) shell.out(line)
  },
}

/** Returns the members in a dynamic configuration file, separated by commas. */
const membersOf = (bytes: Uint8Array): string =>
  new TextDecoder()
    .decode(bytes)
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#') && !line.startsWith('version'))
    .join(',')
