import type { EnsembleConfiguration } from '@zabra/server/settings'
import { finding, type Finding } from './finding.ts'

export interface NetworkTools {
  /** Resolves to the addresses of a host. Rejects when there are none. */
  readonly resolve: (host: string) => Promise<readonly string[]>
  /** Resolves when a TCP connection opens. Rejects with the reason otherwise. */
  readonly connect: (host: string, port: number) => Promise<void>
}

/** Checks that the names of members resolve, and that their ports accept connections. */
export async function* checkNetwork(
  file: string,
  { members }: EnsembleConfiguration,
  self: number,
  { resolve, connect }: NetworkTools,
): AsyncGenerator<Finding> {
  for (const { id, addresses } of members.values())
    for (const { host, electionPort } of addresses) {
      const found = await resolve(host).catch((cause: unknown) => messageOf(cause))
      if (typeof found === 'string') {
        yield finding(
          'name',
          `server.${id}`,
          `${host} has no address: ${found}`,
          `Correct ${file} or the name service.`,
        )
        continue
      }
      if (id === self) continue
      const reason = await connect(host, electionPort).then(
        () => undefined,
        (cause: unknown) => messageOf(cause),
      )
      if (reason !== undefined)
        yield finding(
          'unreachable',
          `server.${id}`,
          `${host}:${electionPort} accepts no connection: ${reason}`,
          'Start the member, or open its ports to the other members.',
        )
    }
}

const messageOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))
