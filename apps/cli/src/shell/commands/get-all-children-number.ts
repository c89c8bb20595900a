import type { ShellCommand } from '../command.ts'

/** Prints the number of descendants of a node. */
export const getAllChildrenNumber: ShellCommand = {
  usage: 'getAllChildrenNumber path',
  minArgs: 1,
  async run(shell, { words }) {
    shell.out(String(await shell.zk.getAllChildrenNumber(shell.path(words[0]))))
  },
}
