import { ManualClock, MemoryNetwork, type Address, type Connection, type Logger } from '@zabra/runtime'
import type { ServerId } from '../../core/quorum/index.ts'
import {
  ElectionConnections,
  electionConnectionDefaults,
  type ElectionConnectionsOptions,
} from '../election-connections.ts'

export const bytes = (...hex: string[]): Uint8Array =>
  Uint8Array.from(hex.join('').replaceAll(' ', '').match(/../g) ?? [], (pair) => Number.parseInt(pair, 16))
export const hex = (data: Uint8Array): string =>
  [...data].map((byte) => byte.toString(16).padStart(2, '0')).join('')
export const text = (value: string): Uint8Array => new TextEncoder().encode(value)
const words = (data: Uint8Array): string => new TextDecoder().decode(data)

/** The election address that server `id` has in these tests. */
export const addressOf = (id: ServerId): Address => ({ host: '127.0.0.1', port: 23_300 + id })

/** A hello of the first version, as server `id` sends it. */
export const helloOf = (id: ServerId): Uint8Array =>
  bytes(
    'ffffffffffff0000',
    id.toString(16).padStart(16, '0'),
    '0000000f',
    hex(text(`127.0.0.1:${23_300 + id}`)),
  )

/** A message with its length. */
export const frame = (content: string): Uint8Array =>
  bytes(content.length.toString(16).padStart(8, '0'), hex(text(content)))

/** A connection in the hands of a test, which may write anything. */
export class RawConnection {
  readonly wire: Connection
  received = ''
  closed = false

  constructor(wire: Connection) {
    this.wire = wire
    wire.setHandler({
      data: (chunk) => (this.received += hex(chunk)),
      drain() {},
      closed: () => (this.closed = true),
    })
  }
}

/** A network and a clock, and on them servers of ours and connections in the hands of a test. */
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

  /** The links of server `id`, among the members 1 to 5. */
  connections(id: ServerId, options: Partial<ElectionConnectionsOptions> = {}): ElectionConnections {
    return new ElectionConnections({
      self: id,
      network: this.network,
      clock: this.clock,
      logger: this.logger,
      listenAddresses: () => [addressOf(id)],
      announcedAddresses: () => [addressOf(id)],
      addressesOf: (other) => (other >= 1 && other <= 5 ? [addressOf(other)] : []),
      received: (from, payload) => this.received.push(`${id} from ${from}: ${words(payload)}`),
      ...electionConnectionDefaults,
      ...options,
    })
  }

  async startedConnections(
    id: ServerId,
    options: Partial<ElectionConnectionsOptions> = {},
  ): Promise<ElectionConnections> {
    const links = this.connections(id, options)
    await links.start()
    return links
  }

  /** Connections that somebody opens to the address of server `id`. */
  async listenAs(id: ServerId): Promise<{ accepted: RawConnection[]; close: () => Promise<void> }> {
    const accepted: RawConnection[] = []
    const listener = await this.network.listen(addressOf(id), (wire) =>
      accepted.push(new RawConnection(wire)),
    )
    return { accepted, close: () => listener.close() }
  }

  /** A connection to server `id` that begins with these bytes. */
  async dial(id: ServerId, ...first: Uint8Array[]): Promise<RawConnection> {
    const raw = new RawConnection(await this.network.connect(addressOf(id)))
    for (const chunk of first) raw.wire.write(chunk)
    await this.clock.untilIdle()
    return raw
  }

  async advance(ms: number): Promise<void> {
    this.clock.advance(ms)
    await this.clock.untilIdle()
  }

  /** Names of the timers that wait. */
  get timers(): string[] {
    return this.clock.pendingTimers().map(({ name }) => name)
  }
}
