import type { ShellCommand } from '../command.ts'

/** Moves the cursor to the top left, and erases the screen and the lines scrolled off it. */
const ERASE = '\u001B[H\u001B[2J\u001B[3J'

/** Clears the screen of a terminal; prints nothing elsewhere. */
export const clear: ShellCommand = {
  usage: 'clear ',
  offline: true,
  run({ io }) {
    if (io.stdout.isTTY === true) io.stdout.write(ERASE)
  },
}
