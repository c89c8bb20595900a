import type { ShellCommand } from '../command.ts'

/** Lists the ephemeral nodes of this session. */
export const getEphemerals: ShellCommand = {
  usage: 'getEphemerals path',
  async run(shell, { words }) {
    const paths = await shell.zk.getEphemerals(words[0] === undefined ? '/' : shell.path(words[0]))
    shell.out(`[${paths.join(', ')}]`)
  },
}
