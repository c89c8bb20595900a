import type { ShellCommand } from '../command.ts'

/** Number of lines that `history` prints, including its own. */
const SHOWN = 11

/** Prints the last lines, with their numbers for `redo`. */
export const history: ShellCommand = {
  usage: 'history ',
  offline: true,
  run(shell) {
    const first = Math.max(0, shell.history.length - SHOWN)
    for (const [i, line] of shell.history.slice(first).entries()) shell.out(`${first + i} - ${line}`)
  },
}
