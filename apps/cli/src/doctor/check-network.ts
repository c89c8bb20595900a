import type { EnsembleConfiguration } from '@zabra/server/settings'
import { isLoopback } from './check-security.ts'
import { finding, type Finding } from './finding.ts'

/** An interface of this machine, and the longest packet in bytes that it sends. */
export interface RoutedInterface {
  readonly name: string
  readonly mtu: number
}

export interface NetworkTools {
  /** Resolves to the addresses of a host. Rejects when there are none. */
  readonly resolve: (host: string) => Promise<readonly string[]>
  /** Resolves to the milliseconds that it took to open a TCP connection. Rejects with the reason otherwise. */
  readonly connect: (host: string, port: number) => Promise<number>
  /** Resolves to the interface to an address; undefined where that cannot be seen. */
  readonly interfaceTo: (address: string) => Promise<RoutedInterface | undefined>
}

/** Connections of which the fastest one counts as the round trip. */
const ATTEMPTS = 3
/** The round trip from which on it is reported, in milliseconds: every write takes one to a majority. */
const FAR_MS = 50

/** What every Ethernet carries, in bytes. */
const USUAL_MTU = 1500
/** The headers of IP and ICMP in a packet of `ping`, in bytes. */
const PING_HEADERS = 28

/** A member at an address. */
interface Place {
  readonly where: string
  readonly host: string
  readonly quorumPort: number
}

/** Checks that the names of members resolve, to addresses that other machines can use, and that their ports accept connections. */
export async function* checkNetwork(
  file: string,
  { members }: EnsembleConfiguration,
  self: number,
  { resolve, connect, interfaceTo }: NetworkTools,
): AsyncGenerator<Finding> {
  const seen = new Set<string>()
  const open: Place[] = []
  for (const { id, addresses } of members.values())
    for (const { host, electionPort, quorumPort } of addresses) {
      const where = `server.${id}`
      const found = await resolve(host).catch((cause: unknown) => messageOf(cause))
      if (typeof found === 'string') {
        yield finding(
          'name',
          where,
          `${host} has no address: ${found}`,
          `Correct ${file} or the name service.`,
        )
        continue
      }
      if (!isLoopback(host) && found.some(isLoopback))
        yield finding(
          'name-loopback',
          where,
          `${host} is ${found.join(', ')} on this machine`,
          id === self
            ? 'Remove the line of this name and 127.0.1.1 from /etc/hosts, or set quorumListenOnAllIPs=true: else other members cannot connect.'
            : 'Correct /etc/hosts or the name service: this machine takes itself for that member.',
        )
      if (id === self) continue
      if (!found.some(isLoopback)) yield* checkMtu(where, host, await interfaceTo(found[0]!), seen)
      const trip = await roundTrip(host, electionPort, connect)
      if (trip instanceof Error) yield unreachable(where, host, electionPort, trip.message)
      else {
        open.push({ where, host, quorumPort })
        if (trip > FAR_MS)
          yield finding(
            'far-member',
            where,
            `a connection to ${host} takes ${Math.round(trip)} ms to open`,
            'Each write waits for a majority of voters: let a majority be near each other, or make this one an observer.',
          )
      }
    }
  yield* checkQuorumPorts(open, connect)
}

/** Reports an interface with long packets once: whether the whole path carries them cannot be seen. */
function* checkMtu(
  where: string,
  host: string,
  route: RoutedInterface | undefined,
  seen: Set<string>,
): Generator<Finding> {
  if (route === undefined || route.mtu <= USUAL_MTU || seen.has(route.name)) return
  seen.add(route.name)
  yield finding(
    'long-packets',
    where,
    `packets to ${host} leave by ${route.name} with up to ${route.mtu} bytes`,
    `Every device on the way must carry them: else members connect, and TLS handshakes and snapshots stand still. See whether ping -M do -s ${route.mtu - PING_HEADERS} ${host} is answered, or set the MTU of ${route.name} to ${USUAL_MTU}.`,
  )
}

/** The leader alone listens on its quorum port: elsewhere a connection is refused at once, unless something drops it. */
async function* checkQuorumPorts(
  places: readonly Place[],
  connect: NetworkTools['connect'],
): AsyncGenerator<Finding> {
  for (const { where, host, quorumPort } of places) {
    const reason = await connect(host, quorumPort).then(
      () => undefined,
      (cause: unknown) => cause,
    )
    if (reason !== undefined && (reason as { code?: unknown }).code !== 'ECONNREFUSED')
      yield unreachable(where, host, quorumPort, messageOf(reason))
  }
}

async function roundTrip(
  host: string,
  port: number,
  connect: NetworkTools['connect'],
): Promise<number | Error> {
  let least = Infinity
  try {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) least = Math.min(least, await connect(host, port))
    return least
  } catch (cause) {
    return new Error(messageOf(cause))
  }
}

const unreachable = (where: string, host: string, port: number, reason: string): Finding =>
  finding(
    'unreachable',
    where,
    `${host}:${port} accepts no connection: ${reason}`,
    'Start the member, or open its ports to the other members.',
  )

const messageOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))
