import { parseServers as parse } from '@zabra/client'
import { UsageError } from '../exit-codes.ts'

/** One server of a connect string. */
export interface ServerAddress {
  readonly host: string
  readonly port: number
}

const example = 'Give host:port, or host:port,host:port/path for several servers and a root below /.'

/** Reads a connect string: servers with commas between them, and after them the path that is to be the root. */
export function parseServers(text: string): { servers: readonly ServerAddress[]; chroot: string } {
  try {
    return parse(text)
  } catch (error) {
    throw new UsageError(`${(error as Error).message}. ${example}`, { cause: error })
  }
}

/** Reads `host`, `host:port` or `[v6 address]:port`; the port is 2181 unless it is given. */
export function parseServer(text: string): ServerAddress {
  const match = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d+))?$/.exec(text)
  const port = Number(match?.[3] ?? 2181)
  if (match === null || port < 1 || port > 65535)
    throw new UsageError(
      `Expected a server as host:port with a port from 1 to 65535, got "${text}". ${example}`,
    )
  return { host: match[1] ?? match[2] ?? '', port }
}

/** The address as it is typed. */
export const formatServer = ({ host, port }: ServerAddress): string =>
  host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
