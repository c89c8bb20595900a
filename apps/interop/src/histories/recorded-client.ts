import { connect, nodeTransport, type Client } from '@zabra/client'
import { RecordingConnection, type History } from 'zabra-simulator'

let connections = 0

/** Opens a session whose requests and replies are recorded as they cross the socket. Times are of `performance.now()`. */
export function connectRecorded(
  name: string,
  servers: readonly string[],
  history: History,
  sessionTimeout: number,
): Promise<Client> {
  const transport = nodeTransport()
  const world = {
    get now() {
      return performance.now()
    },
  }
  return connect({
    servers,
    sessionTimeoutMs: sessionTimeout,
    transport: {
      ...transport,
      open: async (server, signal) =>
        new RecordingConnection(await transport.open(server, signal), {
          world,
          history,
          client: name,
          server: `${server.host}:${server.port}`,
          connection: ++connections,
          isChecked: () => false,
        }),
    },
  })
}
