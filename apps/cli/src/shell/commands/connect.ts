import type { ShellCommand } from '../command.ts'

/** Opens a session, on the same server or another. */
export const connect: ShellCommand = {
  usage: 'connect host:port',
  offline: true,
  run: (shell, { words }) => shell.connect(words[0]),
}
