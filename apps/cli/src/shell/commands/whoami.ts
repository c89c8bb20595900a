import type { ShellCommand } from '../command.ts'

/** Prints the identities of the session. */
export const whoami: ShellCommand = {
  usage: 'whoami ',
  async run(shell) {
    shell.out('Auth scheme: User')
    for (const { scheme, id } of await shell.zk.whoAmI()) shell.out(`${scheme}: ${id}`)
  },
}
