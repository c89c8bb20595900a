import { ExitCode } from '../../exit-codes.ts'
import { changeQuota, readQuota, removeQuota } from '../../session/quotas.ts'
import type { ShellCommand } from '../command.ts'
import { ShellFailure } from '../failures.ts'

/** Deletes a quota, or some of its limits. */
export const delQuota: ShellCommand = {
  usage: 'delquota [-n|-b|-N|-B] path',
  flags: ['-n', '-b', '-N', '-B'],
  minArgs: 1,
  async run(shell, { flags, words }) {
    const path = shell.path(words[0])
    if ((await readQuota(shell.zk, path)) === undefined)
      throw new ShellFailure(`Quota does not exist for ${path}`, ExitCode.noNode)
    if (flags.size === 0) {
      await removeQuota(shell.zk, path)
      return
    }
    await changeQuota(shell.zk, path, {
      ...(flags.has('-n') ? { count: -1 } : {}),
      ...(flags.has('-b') ? { bytes: -1 } : {}),
      ...(flags.has('-N') ? { countHardLimit: -1 } : {}),
      ...(flags.has('-B') ? { byteHardLimit: -1 } : {}),
    })
  },
}
