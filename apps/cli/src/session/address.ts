import { addressKey, parseServers as parse, type ServerAddress } from '@zabra/client'
import { UsageError } from '../exit-codes.ts'

const example = 'Give host:port, or host:port,host:port/path for several servers and a root below /.'

/** Reads a connect string: servers with commas between them, and after them the path that is to be the root. */
export function parseServers(text: string): { servers: readonly ServerAddress[]; chroot: string } {
  try {
    return parse(text)
  } catch (error) {
    throw new UsageError(`${(error as Error).message}. ${example}`, { cause: error })
  }
}

/** The address as it is typed. */
export const formatServer = (server: ServerAddress): string => addressKey(server).replace(/^tcp:../, '')
