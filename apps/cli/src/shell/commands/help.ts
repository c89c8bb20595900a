import type { ShellCommand } from '../command.ts'

/** Says what there is. */
export const help: ShellCommand = {
  usage: 'help ',
  offline: true,
  run(shell) {
    for (const line of shell.usage()) shell.out(line)
  },
}
