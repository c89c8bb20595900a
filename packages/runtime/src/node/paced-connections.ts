import { connect, isIP } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { Duplex } from 'node:stream'
import { anyAddress } from './any-address.ts'
import { PacedSocket } from './paced-socket.ts'

/** The options with which an HTTP client opens a connection. */
interface To {
  readonly host: string
  readonly port: number
  readonly servername?: string
}

/** Returns the option that makes an HTTP client read from paced sockets; none on Bun and Deno, which accept only sockets of their own. */
export function pacedConnections(isSecure: boolean): { createConnection?: (to: To) => Duplex } {
  const { bun, deno } = process.versions
  if (bun !== undefined || deno !== undefined) return {}
  return { createConnection: (to) => new PacedSocket(isSecure ? overTls(to) : connect(tcp(to))) }
}

/** Returns options without the path of the request, which would be that of a Unix socket. */
const tcp = (to: To): To => ({ ...to, path: undefined, lookup: anyAddress }) as To

const overTls = (to: To) =>
  connectTls({ ...tcp(to), servername: to.servername || (isIP(to.host) === 0 ? to.host : '') })
