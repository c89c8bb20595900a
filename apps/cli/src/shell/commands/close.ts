import type { ShellCommand } from '../command.ts'

/** Closes the session; the shell continues. */
export const close: ShellCommand = {
  usage: 'close ',
  run: (shell) => shell.close(),
}
