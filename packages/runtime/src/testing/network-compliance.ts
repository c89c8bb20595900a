import { afterEach, describe, expect, it } from 'vitest'
import type { Connection, Listener, Network } from '../network.ts'

/** The server side and the client side of a network, and its limitations. */
export interface NetworkPair {
  readonly server: Network
  /** The client side, when it is another network. */
  readonly client?: Network
  /** Advances the network, when the test controls the clock. */
  readonly advance?: () => Promise<void>
  /** Both directions end at once. */
  readonly closesBothWays?: true
  /** A client does not know its own address. */
  readonly hidesPorts?: true
  /** Connections open without delay. */
  readonly connectsInstantly?: true
  /** A connection is accepted when its first byte arrives. */
  readonly acceptsOnFirstByte?: true
}

const forever = (): Promise<void> => new Promise(() => {})

/** Records the events of a connection, lets a test wait for them, and records violations of the contract. */
export class ConnectionProbe {
  readonly connection: Connection
  readonly #pump: () => Promise<void>
  chunks: Uint8Array[] = []
  drains = 0
  endedCount = 0
  closed: { cause: Error | undefined } | undefined
  /** Called when bytes arrive. */
  onData: (chunk: Uint8Array) => void = () => {}
  /** What `ended` returns. */
  keepsOpen = false
  readonly faults: string[] = []
  #depth = 0
  #waiting: (() => void)[] = []

  constructor(connection: Connection, pump: () => Promise<void>) {
    this.connection = connection
    this.#pump = pump
    connection.setHandler({
      data: (chunk) =>
        this.#record('data', () => {
          this.chunks.push(chunk.slice())
          this.onData(chunk)
        }),
      held: () => this.#record('held', () => {}),
      drain: () => this.#record('drain', () => this.drains++),
      ended: () => {
        this.#record('ended', () => this.endedCount++)
        return this.keepsOpen
      },
      closed: (cause) => this.#record('closed', () => (this.closed = { cause })),
    })
  }

  get bytes(): Uint8Array {
    const all = new Uint8Array(this.length)
    let at = 0
    for (const chunk of this.chunks) {
      all.set(chunk, at)
      at += chunk.length
    }
    return all
  }

  get length(): number {
    return this.chunks.reduce((sum, { length }) => sum + length, 0)
  }

  async until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      const changed = new Promise<void>((resolve) => this.#waiting.push(resolve))
      await Promise.race([changed, this.#pump()])
    }
  }

  #record(what: string, action: () => void): void {
    if (this.#depth > 0) this.faults.push(`${what} inside another call`)
    if (this.closed !== undefined) this.faults.push(`${what} after closed`)
    this.#depth++
    try {
      action()
    } finally {
      this.#depth--
    }
    for (const wake of this.#waiting.splice(0)) wake()
  }
}

const counted = (length: number): Uint8Array => new Uint8Array(length).map((_, i) => (i * 7 + (i >> 8)) % 251)

/** Runs the tests that every network must pass. */
export function networkCompliance(name: string, make: () => NetworkPair | Promise<NetworkPair>): void {
  describe(name, () => {
    const listeners: Listener[] = []
    const probes: ConnectionProbe[] = []
    let made: Promise<NetworkPair> | undefined
    const ends = (): Promise<NetworkPair> => (made ??= Promise.resolve(make()))

    afterEach(async () => {
      const faults = probes.flatMap((probe) => probe.faults)
      for (const { connection } of probes.splice(0)) connection.destroy()
      for (const listener of listeners.splice(0)) await listener.close()
      expect(faults).toEqual([])
    })

    async function listen(
      accepted: (connection: Connection) => void = () => {},
      port = 0,
    ): Promise<Listener> {
      const listener = await (await ends()).server.listen({ host: '127.0.0.1', port }, accepted)
      listeners.push(listener)
      return listener
    }

    async function client(): Promise<Network> {
      const { server, client: own = server } = await ends()
      return own
    }

    function probe(connection: Connection, pump: () => Promise<void>): ConnectionProbe {
      const made = new ConnectionProbe(connection, pump)
      probes.push(made)
      return made
    }

    async function pair(): Promise<{ client: ConnectionProbe; server: ConnectionProbe; listener: Listener }> {
      const { advance: pump = forever, acceptsOnFirstByte: waitsForByte } = await ends()
      const accepted: ConnectionProbe[] = []
      let wake = (): void => {}
      const listener = await listen((connection) => {
        accepted.push(probe(connection, pump))
        wake()
      })
      const own = probe(await (await client()).connect(listener.address), pump)
      if (waitsForByte) own.connection.write(Uint8Array.of(0))
      if (accepted.length === 0) await new Promise<void>((resolve) => (wake = resolve))
      const server = accepted[0]!
      if (waitsForByte) {
        await server.until(() => server.length === 1)
        server.chunks = []
      }
      return { client: own, server, listener }
    }

    /** Exchanges bytes on another connection, so that bytes in flight on the first one have time to arrive. */
    async function meanwhile(): Promise<void> {
      const { client, server } = await pair()
      for (let round = 1; round <= 3; round++) {
        client.connection.write(Uint8Array.of(round))
        await server.until(() => server.length === round)
        server.connection.write(Uint8Array.of(round))
        await client.until(() => client.length === round)
      }
    }

    it('carries bytes in both directions in order', async () => {
      const { client, server } = await pair()
      for (const byte of [1, 2, 3]) client.connection.write(Uint8Array.of(byte))
      client.connection.write(new Uint8Array(0))
      client.connection.write(Uint8Array.of(4))
      server.connection.write(Uint8Array.of(9))
      await server.until(() => server.length === 4)
      await client.until(() => client.length === 1)
      expect([[...server.bytes], [...client.bytes]]).toEqual([[1, 2, 3, 4], [9]])
    })

    it('has both addresses, and the same transport on both sides', async () => {
      const { client, server, listener } = await pair()
      expect(client.connection.remote.port).toBe(listener.address.port)
      expect(client.connection.transport).toBe(server.connection.transport)
      expect(client.connection.isSecure).toBe(server.connection.isSecure)
      if ((await ends()).hidesPorts) return
      expect(server.connection.remote.port).toBe(client.connection.local.port)
      expect(server.connection.local.port).toBe(listener.address.port)
    })

    it('carries large writes in both directions at once', async () => {
      const { client, server } = await pair()
      const bytes = counted(3_000_017)
      client.connection.write(bytes.slice())
      server.connection.write(bytes.slice())
      await server.until(() => server.length === bytes.length)
      await client.until(() => client.length === bytes.length)
      expect([server.bytes, client.bytes].map((got) => Buffer.compare(got, bytes))).toEqual([0, 0])
    })

    it('sends queued bytes before it ends, and then closes both sides', async () => {
      const { client, server } = await pair()
      server.connection.write(counted(1_000_000))
      server.connection.end()
      await client.until(() => client.closed !== undefined)
      await server.until(() => server.closed !== undefined)
      expect(client.length).toBe(1_000_000)
      expect([client.closed, server.closed]).toEqual([{ cause: undefined }, { cause: undefined }])
    })

    it('lets one side answer after the other has ended its direction, where directions can end alone', async () => {
      const { client, server } = await pair()
      server.keepsOpen = true
      client.connection.write(Uint8Array.of(1))
      client.connection.end()
      if ((await ends()).closesBothWays) {
        await server.until(() => server.closed !== undefined)
        return expect([server.endedCount, [...server.bytes]]).toEqual([0, [1]])
      }
      await server.until(() => server.endedCount === 1)
      server.connection.write(Uint8Array.of(2))
      server.connection.end()
      await client.until(() => client.closed !== undefined)
      expect([...client.bytes]).toEqual([2])
    })

    it('reports closed once to both sides when one is destroyed', async () => {
      const { client, server } = await pair()
      client.connection.destroy()
      client.connection.destroy()
      client.connection.end()
      await server.until(() => server.closed !== undefined)
      await client.until(() => client.closed !== undefined)
      expect(client.closed).toEqual({ cause: undefined })
      expect(client.connection.write(Uint8Array.of(1))).toBe(true)
      await meanwhile()
    })

    it('reports the cause passed to destroy', async () => {
      const { client } = await pair()
      const reason = new Error('enough')
      client.connection.destroy(reason)
      await client.until(() => client.closed !== undefined)
      expect(client.closed).toEqual({ cause: reason })
    })

    it('reports no event but closed after destroy during data', async () => {
      const { client, server } = await pair()
      server.onData = () => server.connection.destroy()
      for (let i = 0; i < 100; i++) client.connection.write(Uint8Array.of(i))
      await server.until(() => server.closed !== undefined)
      expect(server.chunks.length).toBe(1)
      await client.until(() => client.closed !== undefined)
    })

    it('applies backpressure while the reader is paused, and reports drain', async () => {
      const { client, server } = await pair()
      server.connection.pause()
      let sent = 0
      while (client.connection.write(new Uint8Array(1 << 20)) && sent < 200) sent++
      expect(sent).toBeLessThan(200)
      expect(client.connection.bufferedBytes).toBeGreaterThan(0)
      expect(client.drains).toBe(0)
      server.connection.resume()
      await client.until(() => client.drains > 0)
      expect(client.connection.bufferedBytes).toBe(0)
    })

    it('delivers nothing while paused, and everything in order after resume', async () => {
      const { client, server } = await pair()
      server.onData = () => server.connection.pause()
      for (let i = 0; i < 200; i++) client.connection.write(Uint8Array.of(i))
      await server.until(() => server.length > 0)
      const before = server.chunks.length
      await meanwhile()
      expect([before, server.chunks.length]).toEqual([1, 1])
      server.onData = () => {}
      server.connection.resume()
      await server.until(() => server.length === 200)
      expect([...server.bytes]).toEqual(Array.from({ length: 200 }, (_, i) => i))
    })

    it('accepts every call during data', async () => {
      const { client, server } = await pair()
      server.onData = (chunk) => {
        server.connection.pause()
        server.connection.write(chunk.slice())
        server.connection.resume()
      }
      for (let i = 0; i < 50; i++) client.connection.write(Uint8Array.of(i))
      await client.until(() => client.length === 50)
      expect([...client.bytes]).toEqual(Array.from({ length: 50 }, (_, i) => i))
      client.onData = () => client.connection.end()
      server.connection.write(Uint8Array.of(1))
      await client.until(() => client.closed !== undefined)
    })

    it('rejects a port in use, with a remedy, and a peer that does not listen', async () => {
      const listener = await listen()
      const again = listen(() => {}, listener.address.port)
      await expect(again).rejects.toMatchObject({ name: 'NetworkError', code: 'EADDRINUSE' })
      await expect(again).rejects.toThrow(/choose another port/)
      await listener.close()
      const refused = (await client()).connect(listener.address)
      await expect(refused).rejects.toMatchObject({ name: 'NetworkError', code: 'ECONNREFUSED' })
    })

    it('keeps connections when it stops listening', async () => {
      const { client, server, listener } = await pair()
      await listener.close()
      client.connection.write(Uint8Array.of(5))
      await server.until(() => server.length === 1)
    })

    it('rejects a connection that is aborted before it is open', async () => {
      const { address } = await listen()
      const aborted = (await client()).connect(address, { signal: AbortSignal.abort() })
      await expect(aborted).rejects.toMatchObject({ name: 'NetworkError', code: 'ABORT_ERR' })
      if ((await ends()).connectsInstantly) return
      const controller = new AbortController()
      const soon = (await client()).connect(address, { signal: controller.signal })
      controller.abort()
      await expect(soon).rejects.toMatchObject({ name: 'NetworkError', code: 'ABORT_ERR' })
    })

    it('keeps an open connection when its signal aborts', async () => {
      const { advance: pump = forever } = await ends()
      const accepted: Connection[] = []
      const { address } = await listen((connection) => {
        accepted.push(connection)
        probe(connection, pump).onData = (chunk) => void connection.write(chunk.slice())
      })
      const controller = new AbortController()
      const connection = await (await client()).connect(address, { signal: controller.signal })
      controller.abort()
      const own = probe(connection, pump)
      connection.write(Uint8Array.of(8))
      await own.until(() => own.length === 1)
    })
  })
}
