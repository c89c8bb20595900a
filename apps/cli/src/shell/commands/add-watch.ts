import { CommandSyntaxError, type ShellCommand } from '../command.ts'

/** Sets a persistent watch. */
export const addWatch: ShellCommand = {
  usage:
    'addWatch [-m mode] path # optional mode is one of [PERSISTENT, PERSISTENT_RECURSIVE] - default is PERSISTENT_RECURSIVE',
  valueOptions: ['-m'],
  minArgs: 1,
  async run(shell, { words, values }) {
    const mode = values.get('-m')?.[0]?.toUpperCase() ?? 'PERSISTENT_RECURSIVE'
    if (mode !== 'PERSISTENT' && mode !== 'PERSISTENT_RECURSIVE') throw new CommandSyntaxError('')
    const kind = mode === 'PERSISTENT' ? 'persistent' : 'persistentRecursive'
    await shell.watches.addPersistent(shell.zk, shell.path(words[0]), kind)
  },
}
