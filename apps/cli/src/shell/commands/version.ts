import type { ShellCommand } from '../command.ts'

/** Prints the version of this program. */
export const version: ShellCommand = {
  usage: 'version ',
  offline: true,
  run(shell) {
    shell.out(`ZooKeeper CLI version: zabra ${shell.io.version}`)
  },
}
