import { describe, expect, it } from 'vitest'
// oxlint-disable-next-line no-restricted-imports -- replaces the WebSocket of a browser
import { WebSocket } from 'ws'
import { ManualClock } from './manual-clock.ts'
import { MemoryNetwork } from './memory-network.ts'
import { nodeClock } from './node/clock.ts'
import { httpUpgrades } from './node/http.ts'
import { nodeNetwork } from './node/network.ts'
import { tlsNetwork } from './node/tls.ts'
import { ConnectionProbe, networkCompliance } from './testing/network-compliance.ts'
import { webSocketClientNetwork, type WebSocketConstructor } from './web/index.ts'
import { webSocketNetwork } from './ws/index.ts'

const clock = new ManualClock()
const store = (name: string) => ({ path: new URL(`./testdata/tls/${name}`, import.meta.url).pathname })

networkCompliance('MemoryNetwork', () => ({
  server: new MemoryNetwork(clock),
  advance: () => clock.untilIdle(),
  connectsInstantly: true,
}))

networkCompliance('TCP of the platform', () => ({ server: nodeNetwork }))

for (const version of ['TLSv1.2', 'TLSv1.3'] as const)
  networkCompliance(`${version} of the platform`, () => ({
    server: tlsNetwork({
      keyStore: store('server.pem'),
      trustStore: store('authority.pem'),
      versions: [version],
    }),
  }))

for (const [half, client] of [
  ['without TLS', nodeNetwork],
  ['with TLS', tlsNetwork({ trustStore: store('authority.pem') })],
] as const)
  networkCompliance(`a port for both, for peers ${half}`, () => ({
    server: tlsNetwork({ keyStore: store('server.pem') }).withPlaintext(),
    client,
    ...(client === nodeNetwork ? { acceptsOnFirstByte: true } : {}),
  }))

networkCompliance('WebSockets', () => ({
  server: webSocketNetwork({ clock: nodeClock, upgrades: httpUpgrades() }),
  closesBothWays: true,
}))

networkCompliance('WebSockets over TLS', () => {
  const tls = tlsNetwork({ keyStore: store('server.pem') })
  const secure = webSocketNetwork({
    clock: nodeClock,
    upgrades: httpUpgrades({ tls }),
    client: { rejectUnauthorized: false },
  })
  return {
    server: secure,
    client: {
      listen: secure.listen.bind(secure),
      connect: (to, options) => secure.connect({ ...to, url: `wss://${to.host}:${to.port}/` }, options),
    },
    closesBothWays: true,
  }
})

/** Substitutes for the WebSocket of browsers: that of `ws`, and that of the platform where it has one (Node 22). */
const classes: [string, WebSocketConstructor | undefined][] = [
  ['the WebSocket of a browser', WebSocket as unknown as WebSocketConstructor],
  ['the WebSocket of the platform', (globalThis as { WebSocket?: WebSocketConstructor }).WebSocket],
]
for (const [name, WebSocket] of classes) {
  if (WebSocket === undefined) {
    describe.skip(`${name} (skipped: this Node has none)`, () => it('is absent', () => {}))
    continue
  }
  networkCompliance(name, () => ({
    server: webSocketNetwork({ clock: nodeClock, upgrades: httpUpgrades() }),
    client: webSocketClientNetwork({ WebSocket }),
    closesBothWays: true,
    hidesPorts: true,
  }))
}

describe('MemoryNetwork', () => {
  it('delivers chunks of chunkBytes at most', async () => {
    const network = new MemoryNetwork(clock)
    network.chunkBytes = 2
    const chunks: number[] = []
    const { address } = await network.listen({ port: 0 }, (connection) =>
      connection.setHandler({ data: (chunk) => chunks.push(chunk.length), drain() {}, closed() {} }),
    )
    const client = await network.connect(address)
    client.write(new Uint8Array(5))
    await clock.untilIdle()
    expect(chunks).toEqual([2, 2, 1])
  })

  it('reports ECONNRESET to both sides of a connection that is cut', async () => {
    const network = new MemoryNetwork(clock)
    const accepted: ConnectionProbe[] = []
    const { address } = await network.listen({ port: 0 }, (connection) =>
      accepted.push(new ConnectionProbe(connection, () => clock.untilIdle())),
    )
    const connection = await network.connect(address)
    const client = new ConnectionProbe(connection, () => clock.untilIdle())
    connection.cut()
    await clock.untilIdle()
    expect(client.closed?.cause).toMatchObject({ code: 'ECONNRESET' })
    expect(accepted[0]!.closed?.cause).toMatchObject({ code: 'ECONNRESET' })
  })
})
