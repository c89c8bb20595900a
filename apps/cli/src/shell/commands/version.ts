import type { ShellCommand } from '../command.ts'

/** Says what this is. */
export const version: ShellCommand = {
  usage: 'version ',
  offline: true,
  run(shell) {
    shell.out(`ZooKeeper CLI version: zabra ${shell.io.version}`)
  },
}
