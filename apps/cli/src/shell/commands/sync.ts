import type { ShellCommand } from '../command.ts'

/** Waits until the server has applied all writes that its leader has committed. */
export const sync: ShellCommand = {
  usage: 'sync path',
  minArgs: 1,
  async run(shell, { words }) {
    await shell.zk.sync(shell.path(words[0]))
    shell.out('Sync is OK')
  },
}
