import type { ShellCommand } from '../command.ts'

/** Adds an identity to the session. */
export const addAuth: ShellCommand = {
  usage: 'addauth scheme auth',
  minArgs: 1,
  async run({ zk }, { words: [scheme = '', auth = ''] }) {
    await zk.addAuth(scheme, auth)
  },
}
