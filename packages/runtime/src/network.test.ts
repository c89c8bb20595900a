import { afterEach, describe, expect, it } from 'vitest'
import { ManualClock } from './manual-clock.ts'
import { MemoryNetwork } from './memory-network.ts'
import type { Connection, Listener, Network } from './network.ts'
import { nodeNetwork } from './node/network.ts'

/** Collects what a connection hears, and lets a test wait for it. */
class Ear {
  readonly connection: Connection
  bytes: number[] = []
  drains = 0
  closed: { cause: Error | undefined } | undefined
  #waiting: (() => void)[] = []

  constructor(connection: Connection) {
    this.connection = connection
    connection.listen({
      data: (chunk) => {
        this.bytes.push(...chunk)
        this.#wake()
      },
      drain: () => {
        this.drains++
        this.#wake()
      },
      closed: (cause) => {
        this.closed = { cause }
        this.#wake()
      },
    })
  }

  async until(condition: () => boolean, pump: () => Promise<void>): Promise<void> {
    while (!condition()) {
      const changed = new Promise<void>((resolve) => this.#waiting.push(resolve))
      await Promise.race([changed, pump()])
    }
  }

  #wake(): void {
    for (const wake of this.#waiting) wake()
    this.#waiting = []
  }
}

const clock = new ManualClock()
const networks: [string, Network, () => Promise<void>][] = [
  ['TCP of the platform', nodeNetwork, () => new Promise(() => {})],
  ['the network in memory', new MemoryNetwork(clock), () => clock.settle()],
]

describe.each(networks)('%s', (_, network, pump) => {
  const listeners: Listener[] = []
  afterEach(async () => {
    for (const listener of listeners.splice(0)) await listener.close()
  })

  async function pair(): Promise<{ client: Ear; server: Ear }> {
    const accepted: Connection[] = []
    const heard: (() => void)[] = []
    const listener = await network.listen({ host: '127.0.0.1', port: 0 }, (connection) => {
      accepted.push(connection)
      for (const wake of heard) wake()
    })
    listeners.push(listener)
    const client = new Ear(await network.connect(listener.address))
    if (accepted.length === 0) await new Promise<void>((resolve) => heard.push(resolve))
    return { client, server: new Ear(accepted[0]!) }
  }

  it('carries bytes both ways in their order', async () => {
    const { client, server } = await pair()
    for (const byte of [1, 2, 3]) client.connection.write(Uint8Array.of(byte))
    server.connection.write(Uint8Array.of(9))
    await server.until(() => server.bytes.length === 3, pump)
    await client.until(() => client.bytes.length === 1, pump)
    expect([server.bytes, client.bytes]).toEqual([[1, 2, 3], [9]])
    expect(server.connection.remote.port).toBe(client.connection.local.port)
    client.connection.destroy()
  })

  it('sends what is queued before it ends, and then both sides are closed', async () => {
    const { client, server } = await pair()
    server.connection.write(new Uint8Array(100_000).fill(7))
    server.connection.end()
    await client.until(() => client.closed !== undefined, pump)
    await server.until(() => server.closed !== undefined, pump)
    expect(client.bytes.length).toBe(100_000)
    expect(client.closed).toEqual({ cause: undefined })
  })

  it('lets one side answer when the other has ended its own', async () => {
    const { client, server } = await pair()
    let whenAsked = (): void => {}
    server.connection.listen({
      data() {},
      drain() {},
      ended: () => {
        whenAsked()
        return true
      },
      closed() {},
    })
    client.connection.write(Uint8Array.of(1))
    client.connection.end()
    const answered = new Promise<void>((resolve) => (whenAsked = resolve))
    await Promise.race([answered, pump()])
    server.connection.write(Uint8Array.of(2))
    server.connection.end()
    await client.until(() => client.closed !== undefined, pump)
    expect(client.bytes).toEqual([2])
  })

  it('tells both sides once when one is destroyed', async () => {
    const { client, server } = await pair()
    client.connection.destroy()
    client.connection.destroy()
    await server.until(() => server.closed !== undefined, pump)
    await client.until(() => client.closed !== undefined, pump)
    expect(client.connection.write(Uint8Array.of(1))).toBe(true)
  })

  it('asks a writer to wait for a reader that is paused, and says when it may go on', async () => {
    const { client, server } = await pair()
    server.connection.pause()
    const chunk = new Uint8Array(1 << 20)
    let sent = 0
    while (client.connection.write(chunk) && sent < 200) sent++
    expect(sent).toBeLessThan(200)
    expect(client.connection.buffered).toBeGreaterThan(0)
    server.connection.resume()
    await client.until(() => client.drains > 0, pump)
    expect(client.connection.buffered).toBe(0)
    client.connection.destroy()
  })

  it('refuses a port that is taken, with advice, and a peer that does not listen', async () => {
    const listener = await network.listen({ host: '127.0.0.1', port: 0 }, () => {})
    listeners.push(listener)
    const again = network.listen({ host: '127.0.0.1', port: listener.address.port }, () => {})
    await expect(again).rejects.toMatchObject({ name: 'NetworkError', code: 'EADDRINUSE' })
    await expect(again).rejects.toThrow(/choose another port/)
    await listener.close()
    const nobody = network.connect(listener.address)
    await expect(nobody).rejects.toMatchObject({ name: 'NetworkError', code: 'ECONNREFUSED' })
  })
})

describe('the network in memory', () => {
  it('cuts frames into chunks of a size', async () => {
    const network = new MemoryNetwork(clock)
    network.chunkBytes = 2
    const chunks: number[] = []
    const { address } = await network.listen({ port: 0 }, (connection) =>
      connection.listen({ data: (chunk) => chunks.push(chunk.length), drain() {}, closed() {} }),
    )
    const client = await network.connect(address)
    client.write(new Uint8Array(5))
    await clock.settle()
    expect(chunks).toEqual([2, 2, 1])
  })

  it('cuts a connection without notice: both sides hear of a reset', async () => {
    const network = new MemoryNetwork(clock)
    const accepted: Ear[] = []
    const { address } = await network.listen({ port: 0 }, (connection) => accepted.push(new Ear(connection)))
    const connection = await network.connect(address)
    const client = new Ear(connection)
    connection.cut()
    await clock.settle()
    expect(client.closed?.cause).toMatchObject({ code: 'ECONNRESET' })
    expect(accepted[0]!.closed?.cause).toMatchObject({ code: 'ECONNRESET' })
  })
})
