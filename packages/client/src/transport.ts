import type { Connection, Network } from '@zabra/runtime'
import { UsageError } from './errors.ts'
import { addressText } from './servers/connect-string.ts'
import { acceptAbortController } from './session/abort.ts'
import { LightAbortController } from './session/light-abort.ts'
import type { ServerAddress, Transport } from './platform.ts'

/** Returns a transport over the networks of a platform, chosen by the scheme of the address. */
export function networkTransport(networks: Partial<Record<ServerAddress['scheme'], Network>>): Transport {
  const open = (server: ServerAddress, signal: AbortSignal): Promise<Connection> => {
    checkSchemes([server], schemes)
    return networks[server.scheme]!.connect(server, { signal })
  }
  acceptAbortController(open, () => new LightAbortController() as unknown as AbortController)
  const schemes = Object.keys(networks)
  return {
    schemes,
    open,
    async probe(server, signal) {
      // WebSocket servers accept frames only.
      if (server.scheme === 'ws' || server.scheme === 'wss') return 'unknown'
      return probeWithIsro(await open(server, signal), signal)
    },
  }
}

/** Throws a `UsageError` for a server whose scheme the transport does not support. */
export function checkSchemes(
  servers: readonly ServerAddress[],
  schemes: readonly string[] | undefined,
): void {
  const unsupported = servers.find(({ scheme }) => schemes?.includes(scheme) === false)
  if (unsupported === undefined) return
  const supported = schemes!.map((scheme) => `${scheme}://`).join(', ')
  throw new UsageError(
    `Expected addresses with ${supported}, got ${addressText(unsupported)}: no transport for this scheme`,
  )
}

/** Sends the four-letter command `isro`. */
function probeWithIsro(connection: Connection, signal: AbortSignal): Promise<'rw' | 'ro' | 'unknown'> {
  return new Promise((resolve) => {
    let reply = ''
    const done = (): void => {
      signal.removeEventListener('abort', done)
      connection.destroy()
      resolve(reply === 'rw' || reply === 'ro' ? reply : 'unknown')
    }
    signal.addEventListener('abort', done, { once: true })
    connection.setHandler({
      data(chunk) {
        reply += new TextDecoder().decode(chunk)
        if (reply.length >= 2) done()
      },
      drain() {},
      closed: done,
    })
    connection.write(new TextEncoder().encode('isro'))
  })
}
