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
    const data = flags.has('-b') ? Buffer.from(text, 'base64') : new TextEncoder().encode(text)
    const stat = await shell.zk.setData(shell.path(words[0]), new Uint8Array(data), numberOption(args, '-v'))
    if (flags.has('-s')) for (const line of statLines(stat)) shell.out(line)
  },
}
