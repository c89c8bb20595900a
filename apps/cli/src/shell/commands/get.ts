import { hexDump, safeData } from '../../text/bytes.ts'
import { statLines } from '../../text/stat.ts'
import type { ShellCommand } from '../command.ts'

/** Prints the data of a node. */
export const get: ShellCommand = {
  usage: 'get [-s] [-w] [-b] [-x] path',
  flags: ['-s', '-w', '-b', '-x'],
  minArgs: 1,
  async run(shell, { flags, words }) {
    const path = shell.path(words[0])
    if (flags.has('-w')) await shell.watches.addOneShot(shell.zk, path, 'data')
    const { data, isNull, stat } = await shell.zk.getData(path)
    if (isNull) shell.out('null')
    else if (flags.has('-b')) shell.out(Buffer.from(data).toString('base64'))
    else if (flags.has('-x')) for (const line of hexDump(data)) shell.out(line)
    else shell.out(safeData(data))
    if (flags.has('-s')) for (const line of statLines(stat)) shell.out(line)
  },
}
