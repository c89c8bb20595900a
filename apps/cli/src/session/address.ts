import { validatePath } from '@zabra/protocol'
import { UsageError } from '../exit-codes.ts'

/** One server of a connect string. */
export interface ServerAddress {
  readonly host: string
  readonly port: number
}

const example = 'Give host:port, or host:port,host:port/path for several servers and a root below /.'

/** Reads a connect string: servers with commas between them, and after them the path that is to be the root. */
export function parseServers(text: string): { servers: ServerAddress[]; chroot: string } {
  const slash = text.indexOf('/')
  const list = slash < 0 ? text : text.slice(0, slash)
  const root = slash < 0 ? '' : text.slice(slash)
  const wrong = root === '' ? undefined : validatePath(root)
  if (wrong !== undefined) throw new UsageError(`The root in "${text}" is no path: ${wrong}. ${example}`)
  const servers = list
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .map((part) => parseServer(part))
  if (servers.length === 0) throw new UsageError(`Expected a server, got "${text}". ${example}`)
  return { servers, chroot: root === '/' ? '' : root }
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
