import { numberOption, type ShellCommand } from '../command.ts'

/** Deletes a node without children. */
export const remove: ShellCommand = {
  usage: 'delete [-v version] path',
  valueOptions: ['-v'],
  minArgs: 1,
  async run(shell, args) {
    const version = numberOption(args, '-v')
    await shell.zk.delete(shell.path(args.words[0]), { version })
  },
}
