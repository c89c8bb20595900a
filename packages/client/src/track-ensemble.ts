import { noop } from './noop.ts'
import { backoff } from './retry.ts'
import type { InternalClient } from './internal-client.ts'

/** Updates the server list from the configuration of the ensemble until the client closes. */
export async function trackEnsemble(client: InternalClient): Promise<void> {
  const decoder = new TextDecoder()
  const background = client.withoutChroot().clone()
  for (let failures = 0; background.sharedSession.terminalError === undefined;) {
    try {
      const watch = await background.watchOnce('/zookeeper/config', 'data')
      failures = 0
      const servers = parseClientAddresses(decoder.decode(watch.data))
      // A list that names no valid addresses is left until the next change.
      if (servers.length > 0) await client.updateServerList(servers).catch(noop)
      await watch.fired
    } catch {
      // The session expired or the configuration is not readable now: retry with backoff.
      await backoff(background, failures++)
    }
  }
}

/** Returns the client addresses in `server.1=host:2888:3888:participant;0.0.0.0:2181` lines. */
export function parseClientAddresses(config: string): string[] {
  const addresses: string[] = []
  for (const [, spec = ''] of config.matchAll(/^server\.\d+=(.*)$/gm)) {
    // Alternative addresses of one server are separated by |; use the first.
    const [server = '', client] = spec.split('|')[0]!.split(';')
    const match = /^(?:(.*):)?(\d+)$/.exec(client?.trim() ?? '')
    if (match === null) continue
    const isWildcard =
      match[1] === undefined || match[1] === '0.0.0.0' || match[1] === '[::]' || match[1] === '::'
    const host = isWildcard ? /^(\[[^\]]*\]|[^:]*)/.exec(server.trim())![1]! : match[1]!
    addresses.push(`${host.includes(':') && !host.startsWith('[') ? `[${host}]` : host}:${match[2]}`)
  }
  return addresses
}
