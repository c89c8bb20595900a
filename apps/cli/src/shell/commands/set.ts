import { statLines } from '../../text/stat.ts'
import { numberOption, type ShellCommand } from '../command.ts'

/** Sets the data of a node. */
export const set: ShellCommand = {
  usage: 'set [-s] [-v version] path data',
  flags: ['-s', '-b'],
  valueOptions: ['-v'],
  minArgs: 2,
  async run(shell, args) {
    const { words, flags } = args
    const text = words[1] ?? ''
    const data = flags.has('-b') ? new Uint8Array(Buffer.from(text, 'base64')) : text
    const version = numberOption(args, '-v')
    const stat = await shell.zk.setData(shell.path(words[0]), data, { version })
    if (flags.has('-s')) for (const line of statLines(stat)) shell.out(line)
  },
}
