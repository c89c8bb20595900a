import type { Connection, PeerIdentity, TlsNetwork } from '@zabra/runtime'
import type { Incarnation, ServerEndpoint, SimulatedServer } from '@zabra/testing'

/** Where servers accept clients by TLS. */
export const SECURE_PORT = 2281

/** The identity that the certificate of a user gives a client. */
const certificateOf = (user: string): PeerIdentity => ({ subject: `CN=${user}`, alternativeNames: [] })

/** Connects a process to a server, by TLS where it has the certificate of a user. */
export function connectAs(
  process: Incarnation,
  server: ServerEndpoint,
  user: string | undefined,
  signal?: AbortSignal,
): Promise<Connection> {
  const { network } = process.host.world
  return user === undefined
    ? network.connect(process, server, signal)
    : network.connect(process, { ...server, port: SECURE_PORT }, signal, certificateOf(user))
}

/**
 * Lets servers listen by TLS. Nothing is encrypted: a connection holds the identity of the certificate that its client has shown. The
 * servers have not started yet.
 */
export function acceptCertificates(servers: readonly SimulatedServer[]): void {
  for (const server of servers)
    server.networkFactories = { ...server.networkFactories, tls: () => networkOf(server) }
}

/** Returns the network of the process that runs on the machine of a server. */
function networkOf({ host }: SimulatedServer): TlsNetwork {
  const { network } = host.current!.platform
  return {
    connect: (...args) => network.connect(...args),
    listen: (...args) => network.listen(...args),
    reload: () => Promise.resolve(false),
    withPlaintext: () => network,
    handshakes: { active: 0, rejected: 0, failed: 0 },
    certificate: undefined,
  }
}
