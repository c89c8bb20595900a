import type { ShellCommand } from '../command.ts'

/** Ends the session; the shell goes on. */
export const close: ShellCommand = {
  usage: 'close ',
  run: (shell) => shell.close(),
}
