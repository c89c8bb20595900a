import { numberOf, type ShellCommand } from '../command.ts'

/** Deletes a node without children. */
export const remove: ShellCommand = {
  usage: 'delete [-v version] path',
  values: ['-v'],
  least: 1,
  async run(shell, args) {
    const version = numberOf(args, '-v')
    await shell.zk.delete(shell.path(args.words[0]), version)
  },
}
