import type { Connection, Network } from '../../network.ts'

/** What a client gets when it has ended its direction. */
const LAST = new TextEncoder().encode('last')

/**
 * Opens a port that echoes, and says `last` to a client that ends. `next` resolves to the next accepted connection, or to why a client was
 * refused.
 */
export async function echoPort(network: Network) {
  const outcomes: (Connection | string)[] = []
  let wake = (): void => {}
  const note = (outcome: Connection | string): void => {
    outcomes.push(outcome)
    wake()
  }
  const listener = await network.listen(
    { host: '127.0.0.1', port: 0 },
    (connection) => {
      // The handler must be set at once.
      connection.setHandler({
        data: (chunk) => {
          if (!connection.write(chunk.slice())) connection.pause()
        },
        drain: () => connection.resume(),
        ended: () => {
          connection.write(LAST)
          connection.end()
          return true
        },
        closed() {},
      })
      note(connection)
    },
    (error) => note(error.message),
  )
  return {
    listener,
    port: listener.address.port,
    async next(): Promise<Connection | string> {
      if (outcomes.length === 0) await new Promise<void>((resolve) => (wake = resolve))
      return outcomes.shift()!
    },
  }
}
