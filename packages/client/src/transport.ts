import type { Connection, Network } from '@zabra/runtime'
import { UsageError } from './errors.ts'
import type { ServerAddress, Transport } from './types.ts'

/** Connections by the networks that a platform has, chosen by the scheme of the address. */
export function networkTransport(networks: Partial<Record<ServerAddress['scheme'], Network>>): Transport {
  const open = (server: ServerAddress, signal: AbortSignal): Promise<Connection> => {
    const network = networks[server.scheme]
    if (network === undefined) {
      const known = Object.keys(networks).map((scheme) => `${scheme}://`)
      throw new UsageError(
        `Expected an address with ${known.join(', ')}, got ${server.scheme}://: there is no transport for it here`,
      )
    }
    return network.connect(server, { signal })
  }
  return {
    open,
    async probe(server, signal) {
      // WebSocket servers speak frames only.
      if (server.scheme === 'ws' || server.scheme === 'wss') return 'unknown'
      return ask(await open(server, signal), signal)
    },
  }
}

/** Asks with the four-letter word `isro`. */
function ask(connection: Connection, signal: AbortSignal): Promise<'rw' | 'ro' | 'unknown'> {
  return new Promise((resolve) => {
    let answer = ''
    const done = (): void => {
      signal.removeEventListener('abort', done)
      connection.destroy()
      resolve(answer === 'rw' || answer === 'ro' ? answer : 'unknown')
    }
    signal.addEventListener('abort', done, { once: true })
    connection.listen({
      data(chunk) {
        answer += new TextDecoder().decode(chunk)
        if (answer.length >= 2) done()
      },
      drain() {},
      closed: done,
    })
    connection.write(new TextEncoder().encode('isro'))
  })
}
