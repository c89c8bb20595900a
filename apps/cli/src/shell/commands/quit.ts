import type { ShellCommand } from '../command.ts'

/** Ends the session and the shell. */
export const quit: ShellCommand = {
  usage: 'quit ',
  offline: true,
  async run(shell) {
    shell.hasQuit = true
    await shell.close()
  },
}

/** Alias of `quit`. */
export const exit: ShellCommand = { ...quit, usage: 'exit ' }
