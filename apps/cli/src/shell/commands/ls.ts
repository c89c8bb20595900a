import { childPath } from '@zabra/protocol'
import type { Client } from '@zabra/client'
import { statLines } from '../../text/stat.ts'
import type { ShellCommand, ShellContext } from '../command.ts'

/** Lists the children of a node, or with `-R` all descendants. */
export const ls: ShellCommand = {
  usage: 'ls [-s] [-w] [-R] path',
  flags: ['-s', '-w', '-R'],
  minArgs: 1,
  async run(shell, { flags, words }) {
    const path = shell.path(words[0])
    if (flags.has('-R')) {
      shell.out(path)
      return printDescendants(shell, shell.zk, path)
    }
    if (flags.has('-w')) await shell.watches.addOneShot(shell.zk, path, 'children')
    const { children, stat } = await shell.zk.getChildren(path)
    shell.out(`[${children.toSorted().join(', ')}]`)
    if (flags.has('-s')) for (const line of statLines(stat)) shell.out(line)
    return undefined
  },
}

/** Prints descendants in the order of ZooKeeper's shell: all children of a node, then the subtree of each. */
async function printDescendants(shell: ShellContext, zk: Client, path: string): Promise<void> {
  shell.signal.throwIfAborted()
  const paths = (await zk.getChildren(path)).children.toSorted().map((name) => childPath(path, name))
  for (const child of paths) shell.out(child)
  for (const child of paths) await printDescendants(shell, zk, child)
}
