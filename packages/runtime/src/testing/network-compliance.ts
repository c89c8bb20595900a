import { afterEach, describe, expect, it } from 'vitest'
import type { Connection, Listener, Network } from '../network.ts'

/** The two ends of a network, and what it cannot do by its nature. */
export interface NetworkPair {
  readonly server: Network
  /** Another one than the server's where clients have their own. */
  readonly client?: Network
  /** Lets things happen where the test holds the clock. */
  readonly advance?: () => Promise<void>
  /** One direction cannot end before the other. */
  readonly closesBothWays?: true
  /** A client does not know its own address. */
  readonly hidesPorts?: true
  /** A connection is made as soon as it is asked for. */
  readonly connectsInstantly?: true
  /** A connection is accepted with its first byte. */
  readonly acceptsOnFirstByte?: true
}

const forever = (): Promise<void> => new Promise(() => {})

/** Collects what a connection hears, lets a test wait for it, and notes whatever a connection must never do. */
export class ConnectionProbe {
  readonly connection: Connection
  readonly #pump: () => Promise<void>
  chunks: Uint8Array[] = []
  drains = 0
  asked = 0
  closed: { cause: Error | undefined } | undefined
  /** What is done when bytes arrive. */
  onData: (chunk: Uint8Array) => void = () => {}
  /** What is answered when the peer has ended. */
  keepsOpen = false
  readonly faults: string[] = []
  #depth = 0
  #waiting: (() => void)[] = []

  constructor(connection: Connection, pump: () => Promise<void>) {
    this.connection = connection
    this.#pump = pump
    connection.setHandler({
      data: (chunk) =>
        this.#hear('data', () => {
          this.chunks.push(chunk.slice())
          this.onData(chunk)
        }),
      drain: () => this.#hear('drain', () => this.drains++),
      ended: () => {
        this.#hear('ended', () => this.asked++)
        return this.keepsOpen
      },
      closed: (cause) => this.#hear('closed', () => (this.closed = { cause })),
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

  #hear(what: string, action: () => void): void {
    if (this.#depth > 0) this.faults.push(`${what} within another call`)
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

/** What every network promises, run against one of them. */
export function networkCompliance(name: string, make: () => NetworkPair | Promise<NetworkPair>): void {
  describe(name, () => {
    const listeners: Listener[] = []
    const ears: ConnectionProbe[] = []
    let made: Promise<NetworkPair> | undefined
    const ends = (): Promise<NetworkPair> => (made ??= Promise.resolve(make()))

    afterEach(async () => {
      const faults = ears.flatMap((ear) => ear.faults)
      for (const { connection } of ears.splice(0)) connection.destroy()
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

    function ear(connection: Connection, pump: () => Promise<void>): ConnectionProbe {
      const made = new ConnectionProbe(connection, pump)
      ears.push(made)
      return made
    }

    async function pair(): Promise<{ client: ConnectionProbe; server: ConnectionProbe; listener: Listener }> {
      const { advance: pump = forever, acceptsOnFirstByte: waitsForByte } = await ends()
      const accepted: ConnectionProbe[] = []
      let wake = (): void => {}
      const listener = await listen((connection) => {
        accepted.push(ear(connection, pump))
        wake()
      })
      const own = ear(await (await client()).connect(listener.address), pump)
      if (waitsForByte) own.connection.write(Uint8Array.of(0))
      if (accepted.length === 0) await new Promise<void>((resolve) => (wake = resolve))
      const server = accepted[0]!
      if (waitsForByte) {
        await server.until(() => server.length === 1)
        server.chunks = []
      }
      return { client: own, server, listener }
    }

    /** Something else goes to and fro: whatever was on its way has arrived meanwhile, if it is going to. */
    async function meanwhile(): Promise<void> {
      const { client, server } = await pair()
      for (let round = 1; round <= 3; round++) {
        client.connection.write(Uint8Array.of(round))
        await server.until(() => server.length === round)
        server.connection.write(Uint8Array.of(round))
        await client.until(() => client.length === round)
      }
    }

    it('carries bytes both ways in their order', async () => {
      const { client, server } = await pair()
      for (const byte of [1, 2, 3]) client.connection.write(Uint8Array.of(byte))
      client.connection.write(new Uint8Array(0))
      client.connection.write(Uint8Array.of(4))
      server.connection.write(Uint8Array.of(9))
      await server.until(() => server.length === 4)
      await client.until(() => client.length === 1)
      expect([[...server.bytes], [...client.bytes]]).toEqual([[1, 2, 3, 4], [9]])
    })

    it('knows both addresses, and both sides agree on what carries them', async () => {
      const { client, server, listener } = await pair()
      expect(client.connection.remote.port).toBe(listener.address.port)
      expect(client.connection.transport).toBe(server.connection.transport)
      expect(client.connection.isSecure).toBe(server.connection.isSecure)
      if ((await ends()).hidesPorts) return
      expect(server.connection.remote.port).toBe(client.connection.local.port)
      expect(server.connection.local.port).toBe(listener.address.port)
    })

    it('carries a large write whole, both ways at once', async () => {
      const { client, server } = await pair()
      const bytes = counted(3_000_017)
      client.connection.write(bytes.slice())
      server.connection.write(bytes.slice())
      await server.until(() => server.length === bytes.length)
      await client.until(() => client.length === bytes.length)
      expect([server.bytes, client.bytes].map((got) => Buffer.compare(got, bytes))).toEqual([0, 0])
    })

    it('sends what is queued before it ends, and then both sides are closed', async () => {
      const { client, server } = await pair()
      server.connection.write(counted(1_000_000))
      server.connection.end()
      await client.until(() => client.closed !== undefined)
      await server.until(() => server.closed !== undefined)
      expect(client.length).toBe(1_000_000)
      expect([client.closed, server.closed]).toEqual([{ cause: undefined }, { cause: undefined }])
    })

    it('lets one side answer when the other has ended its own, where one direction can end alone', async () => {
      const { client, server } = await pair()
      server.keepsOpen = true
      client.connection.write(Uint8Array.of(1))
      client.connection.end()
      if ((await ends()).closesBothWays) {
        await server.until(() => server.closed !== undefined)
        return expect([server.asked, [...server.bytes]]).toEqual([0, [1]])
      }
      await server.until(() => server.asked === 1)
      server.connection.write(Uint8Array.of(2))
      server.connection.end()
      await client.until(() => client.closed !== undefined)
      expect([...client.bytes]).toEqual([2])
    })

    it('tells both sides once when one is destroyed', async () => {
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

    it('gives the reason with which it was destroyed', async () => {
      const { client } = await pair()
      const reason = new Error('enough')
      client.connection.destroy(reason)
      await client.until(() => client.closed !== undefined)
      expect(client.closed).toEqual({ cause: reason })
    })

    it('tells nothing more once it is destroyed amid bytes', async () => {
      const { client, server } = await pair()
      server.onData = () => server.connection.destroy()
      for (let i = 0; i < 100; i++) client.connection.write(Uint8Array.of(i))
      await server.until(() => server.closed !== undefined)
      expect(server.chunks.length).toBe(1)
      await client.until(() => client.closed !== undefined)
    })

    it('asks a writer to wait for a reader that is paused, and says when it may go on', async () => {
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

    it('hands nothing over while it is paused, and everything in order afterwards', async () => {
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

    it('takes calls of every kind while it hands over bytes', async () => {
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

    it('refuses a port that is taken, with advice, and a peer that does not listen', async () => {
      const listener = await listen()
      const again = listen(() => {}, listener.address.port)
      await expect(again).rejects.toMatchObject({ name: 'NetworkError', code: 'EADDRINUSE' })
      await expect(again).rejects.toThrow(/choose another port/)
      await listener.close()
      const nobody = (await client()).connect(listener.address)
      await expect(nobody).rejects.toMatchObject({ name: 'NetworkError', code: 'ECONNREFUSED' })
    })

    it('keeps its connections when it stops listening', async () => {
      const { client, server, listener } = await pair()
      await listener.close()
      client.connection.write(Uint8Array.of(5))
      await server.until(() => server.length === 1)
    })

    it('gives up a connection that is aborted before it is made', async () => {
      const { address } = await listen()
      const aborted = (await client()).connect(address, { signal: AbortSignal.abort() })
      await expect(aborted).rejects.toMatchObject({ name: 'NetworkError', code: 'ABORT_ERR' })
      if ((await ends()).connectsInstantly) return
      const controller = new AbortController()
      const soon = (await client()).connect(address, { signal: controller.signal })
      controller.abort()
      await expect(soon).rejects.toMatchObject({ name: 'NetworkError', code: 'ABORT_ERR' })
    })

    it('does not break a connection that is made when its signal aborts', async () => {
      const { advance: pump = forever } = await ends()
      const accepted: Connection[] = []
      const { address } = await listen((connection) => {
        accepted.push(connection)
        ear(connection, pump).onData = (chunk) => void connection.write(chunk.slice())
      })
      const controller = new AbortController()
      const connection = await (await client()).connect(address, { signal: controller.signal })
      controller.abort()
      const own = ear(connection, pump)
      connection.write(Uint8Array.of(8))
      await own.until(() => own.length === 1)
    })
  })
}
