import type { ShellCommand } from '../command.ts'

/** Prints the usage of every command. */
export const help: ShellCommand = {
  usage: 'help ',
  offline: true,
  run(shell) {
    for (const line of shell.usage()) shell.out(line)
  },
}
