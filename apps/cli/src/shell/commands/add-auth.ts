import type { ShellCommand } from '../command.ts'

/** Proves an identity. */
export const addAuth: ShellCommand = {
  usage: 'addauth scheme auth',
  minArgs: 1,
  async run({ zk }, { words: [scheme = '', auth = ''] }) {
    await zk.addAuth(scheme, new TextEncoder().encode(auth))
  },
}
