/** The client in Node, Deno and Bun: `connect({ servers })` needs nothing else. */
import { lightRandom, resolveSrv, keepAliveNodeClock } from '@zabra/runtime/node/dial'
import { connectWith, type ConnectOptions, type ConnectDefaults } from '../connect.ts'
import { digestMd5With } from '../sasl.ts'
import type { ServerList } from '../servers/connect-string.ts'
import { resolveServers, type FindServersOptions } from '../servers/srv.ts'
import type { Client } from '../types.ts'
import { withDiagnostics } from './diagnostics.ts'
import { nodeTransport } from './transport.ts'

export * from '../core.ts'
export type { FindServersOptions } from '../servers/srv.ts'
export type { ServerList } from '../servers/connect-string.ts'
export type { RequestContext } from './diagnostics.ts'
export { compressed, type CompressedOptions } from './compressed.ts'
export { nodeTransport, type NodeTransport, type NodeTransportOptions } from './transport.ts'
export { CertificateError } from '@zabra/runtime/node/dial'
export type { TlsOptions } from '@zabra/runtime'

/** A login by SASL for the option `sasl`: `digestMd5({ username, password })`. */
export const digestMd5 = digestMd5With(lightRandom)

const ports = { clock: keepAliveNodeClock, random: lightRandom, services: resolveSrv }
/** Shared by all clients: the transport has no certificates of its own. Made late, since importing must do nothing. */
let surroundings: ConnectDefaults | undefined

/**
 * The servers that a connect string names, for tools that talk to each of them: those of `dns-srv://name` are looked up.
 * Rejects with a `UsageError` for what names none, and when `signal` aborts; without one it looks until there are some.
 */
export async function findServers(
  servers: string | readonly string[],
  options?: FindServersOptions,
): Promise<ServerList> {
  const { servers: list, chroot } = await resolveServers(ports, servers, options)
  return { servers: list, chroot }
}

/** Opens a session and resolves when it exists; see `connectWith`. */
export function connect(options: ConnectOptions): Promise<Client> {
  return connectWith(
    options,
    (surroundings ??= { transport: nodeTransport(), platform: ports, wrapInstrumentation: withDiagnostics }),
  )
}
