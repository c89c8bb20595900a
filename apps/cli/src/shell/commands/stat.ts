import { ErrorCode } from '@zabra/protocol'
import { RequestError } from '../../session/request-error.ts'
import { statLines } from '../../text/stat.ts'
import type { ShellCommand } from '../command.ts'

/** Prints the stat of a node. */
export const stat: ShellCommand = {
  usage: 'stat [-w] path',
  flags: ['-w'],
  minArgs: 1,
  async run(shell, { flags, words }) {
    const path = shell.path(words[0])
    if (flags.has('-w')) await shell.watches.addOneShot(shell.zk, path, 'exists')
    const found = await shell.zk.exists(path)
    if (found === undefined) throw new RequestError(ErrorCode.NONODE, path)
    for (const line of statLines(found)) shell.out(line)
  },
}
