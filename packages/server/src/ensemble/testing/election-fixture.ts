import { ManualClock, MemoryNetwork, type Address, type Connection, type Logger } from '@zabra/runtime'
import type { ServerId } from '../../core/quorum/index.ts'
import {
  ElectionConnections,
  electionConnectionDefaults,
  type ElectionConnectionsOptions,
} from '../election-connections.ts'
import { test } from 'vitest'

export const bytes = (...hex: string[]): Uint8Array =>
  Uint8Array.from(hex.join('').replaceAll(' ', '').match(/../g) ?? [], (pair) => Number.parseInt(pair, 16))
export const hex = (data: Uint8Array): string =>
  [...data].map((byte) => byte.toString(16).padStart(2, '0')).join('')
export const text = (value: string): Uint8Array => new TextEncoder().encode(value)
const textOf = (data: Uint8Array): string => new TextDecoder().decode(data)

/** Returns the election address of server `id` in these tests. */
export const addressOf = (id: ServerId): Address => ({ host: '127.0.0.1', port: 23_300 + id })

/** Returns the hello of the first version that server `id` sends. */
export const helloOf = (id: ServerId): Uint8Array =>
  bytes(
    'ffffffffffff0000',
    id.toString(16).padStart(16, '0'),
    '0000000f',
    hex(text(`127.0.0.1:${23_300 + id}`)),
  )

/** Returns a message with its length prefix. */
export const frame = (content: string): Uint8Array =>
  bytes(content.length.toString(16).padStart(8, '0'), hex(text(content)))

/** A connection on which a test can write anything. */
export class RawConnection {
  readonly connection: Connection
  received = ''
  closed = false

  constructor(connection: Connection) {
    this.connection = connection
    connection.setHandler({
      data: (chunk) => (this.received += hex(chunk)),
      drain() {},
      closed: () => (this.closed = true),
    })
  }
}

/** A network and a clock, with servers and raw connections on them. */
export class ElectionFixture {
  readonly clock = new ManualClock()
  readonly network = new MemoryNetwork(this.clock)
  readonly logged: string[] = []
  readonly received: string[] = []
  readonly logger: Logger = {
    error: (facts, sentence) => this.logged.push(`error ${sentence} ${JSON.stringify(facts)}`),
    warn: (facts, sentence) => this.logged.push(`warn ${sentence} ${JSON.stringify(facts)}`),
    info: (facts, sentence) => this.logged.push(`info ${sentence} ${JSON.stringify(facts)}`),
    debug() {},
  }

  /** Returns the connections of server `id`, one of the members 1 to 5. They are not started. */
  connections(id: ServerId, options: Partial<ElectionConnectionsOptions> = {}): ElectionConnections {
    return new ElectionConnections({
      self: id,
      network: this.network,
      clock: this.clock,
      logger: this.logger,
      listenAddresses: () => [addressOf(id)],
      announcedAddresses: () => [addressOf(id)],
      addressesOf: (other) => (other >= 1 && other <= 5 ? [addressOf(other)] : []),
      received: (from, payload) => this.received.push(`${id} from ${from}: ${textOf(payload)}`),
      ...electionConnectionDefaults,
      ...options,
    })
  }

  async startedConnections(
    id: ServerId,
    options: Partial<ElectionConnectionsOptions> = {},
  ): Promise<ElectionConnections> {
    const connections = this.connections(id, options)
    await connections.start()
    return connections
  }

  /** Listens at the address of server `id` and collects the connections that it accepts. */
  async listenAs(id: ServerId): Promise<{ accepted: RawConnection[]; close: () => Promise<void> }> {
    const accepted: RawConnection[] = []
    const listener = await this.network.listen(addressOf(id), (connection) =>
      accepted.push(new RawConnection(connection)),
    )
    return { accepted, close: () => listener.close() }
  }

  /** Opens a connection to server `id` and sends these bytes. */
  async dial(id: ServerId, ...first: Uint8Array[]): Promise<RawConnection> {
    const raw = new RawConnection(await this.network.connect(addressOf(id)))
    for (const chunk of first) raw.connection.write(chunk)
    await this.clock.untilIdle()
    return raw
  }

  /** Sends a message between servers, and runs what needs no time. */
  async send(from: ElectionConnections, to: ServerId, message: string): Promise<void> {
    from.send(to, text(message))
    await this.clock.untilIdle()
  }

  async advance(ms: number): Promise<void> {
    this.clock.advance(ms)
    await this.clock.untilIdle()
  }

  /** The names of pending timers. */
  get timers(): string[] {
    return this.clock.pendingTimers().map(({ name }) => name)
  }
}

/** A test with a network of its own and, where it names them, the started servers 1 and 3. */
export const it = test
  .extend('fixture', () => new ElectionFixture())
  .extend('one', ({ fixture }) => fixture.startedConnections(1))
  .extend('three', ({ fixture }) => fixture.startedConnections(3))
