import { join } from '../../session/paths.ts'
import type { ZooKeeper } from '../../session/zookeeper.ts'
import { statLines } from '../../text/stat.ts'
import type { ShellCommand } from '../command.ts'
import type { Shell } from '../shell.ts'

/** Lists the children of a node, or all that is below it. */
export const ls: ShellCommand = {
  usage: 'ls [-s] [-w] [-R] path',
  flags: ['-s', '-w', '-R'],
  minArgs: 1,
  async run(shell, { flags, words }) {
    const path = shell.path(words[0])
    if (flags.has('-R')) {
      shell.out(path)
      return below(shell, shell.zk, path)
    }
    if (flags.has('-w')) await shell.watches.addOneShot(shell.zk, path, 'children')
    const { children, stat } = await shell.zk.getChildren(path)
    shell.out(`[${children.toSorted().join(', ')}]`)
    if (flags.has('-s')) for (const line of statLines(stat)) shell.out(line)
    return undefined
  },
}

/** All children of a node come before what is below the first of them. */
async function below(shell: Shell, zk: ZooKeeper, path: string): Promise<void> {
  shell.signal.throwIfAborted()
  const paths = (await zk.getChildren(path)).children.toSorted().map((name) => join(path, name))
  for (const child of paths) shell.out(child)
  for (const child of paths) await below(shell, zk, child)
}
