import { ExitCode } from '../../exit-codes.ts'
import { readQuota } from '../../session/quotas.ts'
import { formatLimits, limitsPath } from '../../text/quota.ts'
import type { ShellCommand } from '../command.ts'
import { ShellFailure } from '../failures.ts'

/** Prints a quota and its usage. */
export const listQuota: ShellCommand = {
  usage: 'listquota path',
  minArgs: 1,
  async run(shell, { words }) {
    const path = shell.path(words[0])
    shell.err(`absolute path is ${limitsPath(path)}`)
    const quota = await readQuota(shell.zk, path)
    if (quota === undefined) throw new ShellFailure(`quota for ${path} does not exist.`, ExitCode.noNode)
    shell.out(`Output quota for ${path} ${formatLimits(quota.limits)}`)
    shell.out(`Output stat for ${path} count=${quota.used.count},bytes=${quota.used.bytes}`)
  },
}
