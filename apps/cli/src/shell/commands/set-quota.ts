import { ExitCode } from '../../exit-codes.ts'
import { changeQuota, conflictingQuota, readQuota } from '../../session/quotas.ts'
import type { Limits } from '../../text/quota.ts'
import { CommandSyntaxError, numberOption, type ShellCommand } from '../command.ts'
import { ShellFailure } from '../failures.ts'

const limits: Readonly<Record<string, keyof Limits>> = {
  '-n': 'count',
  '-b': 'bytes',
  '-N': 'countHardLimit',
  '-B': 'byteHardLimit',
}

/** Sets limits of a subtree. */
export const setQuota: ShellCommand = {
  usage: 'setquota -n|-b|-N|-B val path',
  valueOptions: Object.keys(limits),
  minArgs: 1,
  async run(shell, args) {
    const options = Object.keys(limits).filter((option) => args.values.has(option))
    if (options.length === 0)
      throw new CommandSyntaxError('Missing required option: one of -n, -b, -N and -B')
    const path = shell.path(args.words[0])
    if ((await shell.zk.exists(path)) === undefined)
      throw new ShellFailure(`${path} does not exist.`, ExitCode.noNode)
    const other = await conflictingQuota(shell.zk, path)
    if (other !== undefined) {
      const relation = other.where === 'above' ? 'parent' : 'child'
      throw new ShellFailure(`${path} has a ${relation} ${other.path} which has a quota`, ExitCode.refused)
    }
    const change = Object.fromEntries(options.map((option) => [limits[option]!, numberOption(args, option)!]))
    const { count, bytes } = await changeQuota(shell.zk, path, change)
    const used = (await readQuota(shell.zk, path))?.used
    if (used !== undefined && count > -1 && used.count > count)
      shell.out(`[Warning]: the count quota you create is less than the existing count:${used.count}`)
    if (used !== undefined && bytes > -1 && used.bytes > bytes)
      shell.out(`[Warning]: the bytes quota you create is less than the existing bytes:${used.bytes}`)
  },
}
