import { aclLines } from '../../text/acl.ts'
import { statLines } from '../../text/stat.ts'
import type { ShellCommand } from '../command.ts'

/** Prints the access list of a node. */
export const getAcl: ShellCommand = {
  usage: 'getAcl [-s] path',
  flags: ['-s'],
  minArgs: 1,
  async run(shell, { flags, words }) {
    const { acl, stat } = await shell.zk.getACL(shell.path(words[0]))
    for (const line of aclLines(acl)) shell.out(line)
    if (flags.has('-s')) for (const line of statLines(stat)) shell.out(line)
  },
}
