import type { ShellCommand } from '../command.ts'

/** Counts all that is below a node. */
export const getAllChildrenNumber: ShellCommand = {
  usage: 'getAllChildrenNumber path',
  minArgs: 1,
  async run(shell, { words }) {
    shell.out(String(await shell.zk.getAllChildrenNumber(shell.path(words[0]))))
  },
}
