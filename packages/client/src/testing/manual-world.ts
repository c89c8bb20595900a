import { SeededRandom, type Connection, type ConnectionHandler } from '@zabra/runtime'
import { ForwardingConnection, ManualPlatform } from '@zabra/testkit'
import { digestId } from '@zabra/protocol'
import { createServer, defaults, type Server, type ServerSettings } from '@zabra/server/core'
import { findBySrv } from '../servers/srv.ts'
import { openClient, type ConnectOptions } from '../connect.ts'
import { trackEnsemble } from '../track-ensemble.ts'
import { ReadBatcher } from '../session/read-batcher.ts'
import { FrameLog } from './frame-log.ts'
import { replyBytes } from './scripted-server.ts'
import { networkTransport } from '../transport.ts'
import type { Client } from '../client-api.ts'
import type { ServerAddress, Transport } from '../platform.ts'
import type { StateChange } from '../types.ts'

export const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
export const text = (data: Uint8Array | undefined): string => new TextDecoder().decode(data)

/** Hooks by which a test manipulates the connections of clients. */
export interface ConnectionFaults {
  /** Called before a connection is opened; throws to refuse it. */
  open?(server: ServerAddress): void
  /** Returns the bytes to pass on for bytes that the client sends; undefined drops them. */
  toServer?(chunk: Uint8Array, connection: TappedConnection): Uint8Array | undefined
  /** The same for bytes that the client receives. */
  toClient?(chunk: Uint8Array, connection: TappedConnection): Uint8Array | undefined
}

/** A connection that a test can observe and break. */
export class TappedConnection extends ForwardingConnection {
  readonly #faults: ConnectionFaults
  #events: ConnectionHandler | undefined
  readonly server: ServerAddress
  isCut = false

  constructor(inner: Connection, faults: ConnectionFaults, server: ServerAddress) {
    super(inner)
    this.#faults = faults
    this.server = server
  }

  override setHandler(events: ConnectionHandler): void {
    this.#events = events
    this.inner.setHandler({
      ...events,
      drain: () => events.drain(),
      closed: (cause) => events.closed(cause),
      data: (chunk) => {
        const faults = this.#faults
        // The test may keep the chunk, which is valid during this call only.
        const result = faults.toClient === undefined ? chunk : faults.toClient(chunk.slice(), this)
        if (result !== undefined) events.data(result)
      },
    })
  }

  override write(chunk: Uint8Array): boolean {
    const result = this.#faults.toServer === undefined ? chunk : this.#faults.toServer(chunk, this)
    return result === undefined ? true : this.inner.write(result)
  }

  /** Delivers held-back bytes to the client. */
  deliver(chunk: Uint8Array): void {
    this.#events?.data(chunk)
  }

  /** Sends held-back bytes to the server. */
  send(chunk: Uint8Array): void {
    this.inner.write(chunk)
  }

  /** Breaks the connection for both sides. */
  cut(): void {
    this.isCut = true
    this.inner.destroy(new Error('cut by the test'))
  }
}

/** A Zabra server and clients on a manual clock, an in-memory network and an in-memory disk. */
export class ManualWorld extends ManualPlatform {
  readonly faults: ConnectionFaults = {}
  readonly connections: TappedConnection[] = []
  readonly #settings: Partial<ServerSettings>
  readonly #clients: Client[] = []
  server!: Server
  #seed = 1

  private constructor(settings: Partial<ServerSettings>) {
    super()
    this.#settings = settings
  }

  static async start(settings: Partial<ServerSettings> = {}): Promise<ManualWorld> {
    const world = new ManualWorld(settings)
    await world.restart()
    return world
  }

  /** Starts the server from its disk. */
  async restart(): Promise<void> {
    this.server = await createServer(
      defaults({
        dataDir: '/data',
        clientPort: 2181,
        tickTimeMs: 1000,
        preAllocSizeBytes: 0,
        minSessionTimeoutMs: 1000,
        maxSessionTimeoutMs: 100_000,
        extendedTypesEnabled: true,
        fourLetterWords: ['*'],
        superDigest: digestId('super:secret'),
        ...this.#settings,
      }),
      this.platform(),
    )
  }

  async stop(): Promise<void> {
    const closed = this.server.close()
    await this.settle()
    await closed
    await this.settle()
  }

  get transport(): Transport {
    const inner = networkTransport({ tcp: this.network })
    return {
      ...inner,
      open: async (server, signal) => {
        this.faults.open?.(server)
        const connection = new TappedConnection(await inner.open(server, signal), this.faults, server)
        this.connections.push(connection)
        return connection
      },
    }
  }

  /** The connection opened last. */
  get lastConnection(): TappedConnection {
    return this.connections.at(-1)!
  }

  /** Blocks new connections, and all bytes of the existing ones in both directions, until `endIsolation` is called. */
  isolate(): void {
    this.refuseConnections()
    this.faults.toServer = () => undefined
    this.faults.toClient = () => undefined
  }

  /** Refuses new connections until the returned function is called. */
  refuseConnections(): () => void {
    this.faults.open = () => {
      throw new Error('refused by the test')
    }
    return () => void delete this.faults.open
  }

  /** Breaks the next connection over which a client sends something, before the server reads it. */
  loseRequest(): void {
    this.faults.toServer = (_chunk, connection) => {
      delete this.faults.toServer
      connection.cut()
      return undefined
    }
  }

  /**
   * Replies with an error to the next `times` requests that match, in place of the server. `deliver` decides when the reply
   * arrives. Returns a function that counts these replies.
   */
  answerWith(
    code: number,
    {
      times = 1,
      matches = ({ xid }) => xid > 0,
      deliver = (connection, reply) => this.clock.immediate(() => connection.deliver(reply)),
    }: {
      readonly times?: number
      readonly matches?: (request: { readonly xid: number; readonly frame: Uint8Array }) => boolean
      readonly deliver?: (connection: TappedConnection, reply: Uint8Array) => void
    } = {},
  ): () => number {
    let answered = 0
    this.faults.toServer = (frame, connection) => {
      const xid = frame.length < 12 ? 0 : new DataView(frame.buffer, frame.byteOffset).getInt32(4)
      if (answered >= times || !matches({ xid, frame })) return frame
      answered++
      deliver(connection, replyBytes(xid, { err: code, zxid: 0n }))
      return undefined
    }
    return () => answered
  }

  /** Loses the next chunk for a client together with its connection, after `delivered` others have arrived. */
  loseReply(delivered = 0): void {
    let left = delivered
    this.faults.toClient = (chunk, connection) => {
      if (left-- > 0) return chunk
      delete this.faults.toClient
      connection.cut()
      return undefined
    }
  }

  endIsolation(): void {
    delete this.faults.open
    delete this.faults.toServer
    delete this.faults.toClient
  }

  /** Logs the frames that clients send from now on. */
  logFrames(): FrameLog {
    const log = new FrameLog(this.connections)
    this.faults.toServer = (chunk, connection) => {
      log.take(connection, chunk)
      return chunk
    }
    return log
  }

  /** Starts connecting a client. */
  connect(options: Partial<ConnectOptions> = {}): Promise<Client> {
    return openClient(
      { servers: 'a:2181', sessionTimeoutMs: 12_000, transport: this.transport, ...options },
      {
        platform: { clock: this.clock, random: new SeededRandom(this.#seed++) },
        findBySrv,
        Batcher: ReadBatcher,
        trackEnsemble,
      },
    )
  }

  /** Connects a client. */
  async client(options: Partial<ConnectOptions> = {}): Promise<Client> {
    const client = await this.outcome(this.connect(options))
    this.#clients.push(client)
    return client
  }

  /** Runs everything that needs no time to pass. */
  settle(): Promise<void> {
    return this.untilIdle()
  }

  /** Awaits a promise that must settle without time passing. */
  async outcome<T>(promise: Promise<T>): Promise<T> {
    let settled = false
    const settle = (): void => void (settled = true)
    promise.then(settle, settle)
    for (let turns = 0; turns < 50 && !settled; turns++) await this.settle()
    if (!settled) throw new Error('Expected the promise to settle without time passing; it is pending')
    return promise
  }

  /** Awaits a promise that must settle within `ms` milliseconds. */
  async within<T>(ms: number, promise: Promise<T>): Promise<T> {
    let settled = false
    const settle = (): void => void (settled = true)
    promise.then(settle, settle)
    for (let left = ms; left > 0 && !settled; left -= 50) await this.advance(50)
    if (!settled) throw new Error(`Expected the promise to settle within ${ms} ms; it is pending`)
    return promise
  }

  /** Collects the items of a stream from now on. */
  collect<T>(stream: AsyncIterable<T>): T[] {
    const items: T[] = []
    void (async () => {
      for await (const item of stream) items.push(item)
    })().catch((error: unknown) => items.push(error as T))
    return items
  }

  /** Collects the states of a client from now on. */
  states(client: Client): string[] {
    const states: string[] = []
    void (async () => {
      for await (const { state } of client.states() as AsyncIterable<StateChange>) states.push(state)
    })()
    return states
  }

  async end(): Promise<void> {
    for (const client of this.#clients) void client.close()
    await this.advance(3000)
    await this.stop()
  }
}
