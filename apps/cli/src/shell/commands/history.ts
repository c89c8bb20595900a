import type { ShellCommand } from '../command.ts'

/** Lines that `history` shows, itself counted. */
const SHOWN = 11

/** Prints the last lines with the numbers that `redo` takes. */
export const history: ShellCommand = {
  usage: 'history ',
  offline: true,
  run(shell) {
    const first = Math.max(0, shell.history.length - SHOWN)
    for (const [i, line] of shell.history.slice(first).entries()) shell.out(`${first + i} - ${line}`)
  },
}
