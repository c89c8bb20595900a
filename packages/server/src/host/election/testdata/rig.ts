import { ManualClock, MemoryNetwork, type Address, type Connection, type Logger } from '@zabra/runtime'
import type { ServerId } from '../../../core/quorum/index.ts'
import { ElectionLinks, linkDefaults, type ElectionLinksOptions } from '../links.ts'

export const bytes = (...hex: string[]): Uint8Array =>
  Uint8Array.from(hex.join('').replaceAll(' ', '').match(/../g) ?? [], (pair) => Number.parseInt(pair, 16))
export const hex = (data: Uint8Array): string => [...data].map((byte) => byte.toString(16).padStart(2, '0')).join('')
export const text = (value: string): Uint8Array => new TextEncoder().encode(value)
const words = (data: Uint8Array): string => new TextDecoder().decode(data)

/** The election address that server `id` has in these tests. */
export const addressOf = (id: ServerId): Address => ({ host: '127.0.0.1', port: 23_300 + id })

/** A hello of the first version, as server `id` sends it. */
export const helloOf = (id: ServerId): Uint8Array =>
  bytes('ffffffffffff0000', id.toString(16).padStart(16, '0'), '0000000f', hex(text(`127.0.0.1:${23_300 + id}`)))

/** A message with its length. */
export const frame = (content: string): Uint8Array => bytes(content.length.toString(16).padStart(8, '0'), hex(text(content)))

/** A connection in the hands of a test, which may write anything. */
export class Raw {
  readonly wire: Connection
  received = ''
  closed = false

  constructor(wire: Connection) {
    this.wire = wire
    wire.listen({
      data: (chunk) => (this.received += hex(chunk)),
      drain() {},
      closed: () => (this.closed = true),
    })
  }
}

/** A network and a clock, and on them servers of ours and connections in the hands of a test. */
export class Rig {
  readonly clock = new ManualClock()
  readonly network = new MemoryNetwork(this.clock)
  readonly logged: string[] = []
  readonly heard: string[] = []
  readonly logger: Logger = {
    error: (facts, sentence) => this.logged.push(`error ${sentence} ${JSON.stringify(facts)}`),
    warn: (facts, sentence) => this.logged.push(`warn ${sentence} ${JSON.stringify(facts)}`),
    info: (facts, sentence) => this.logged.push(`info ${sentence} ${JSON.stringify(facts)}`),
    debug() {},
  }

  /** The links of server `id`, among the members 1 to 5. */
  links(id: ServerId, options: Partial<ElectionLinksOptions> = {}): ElectionLinks {
    return new ElectionLinks({
      self: id,
      network: this.network,
      clock: this.clock,
      logger: this.logger,
      listen: () => [addressOf(id)],
      announce: () => [addressOf(id)],
      addressesOf: (other) => (other >= 1 && other <= 5 ? [addressOf(other)] : []),
      heard: (from, payload) => this.heard.push(`${id} from ${from}: ${words(payload)}`),
      ...linkDefaults,
      ...options,
    })
  }

  async started(id: ServerId, options: Partial<ElectionLinksOptions> = {}): Promise<ElectionLinks> {
    const links = this.links(id, options)
    await links.start()
    return links
  }

  /** Connections that somebody opens to the address of server `id`. */
  async listenAs(id: ServerId): Promise<{ accepted: Raw[]; close: () => Promise<void> }> {
    const accepted: Raw[] = []
    const listener = await this.network.listen(addressOf(id), (wire) => accepted.push(new Raw(wire)))
    return { accepted, close: () => listener.close() }
  }

  /** A connection to server `id` that begins with these bytes. */
  async dial(id: ServerId, ...first: Uint8Array[]): Promise<Raw> {
    const raw = new Raw(await this.network.connect(addressOf(id)))
    for (const chunk of first) raw.wire.write(chunk)
    await this.clock.settle()
    return raw
  }

  async advance(ms: number): Promise<void> {
    this.clock.advance(ms)
    await this.clock.settle()
  }

  /** Names of the timers that wait. */
  get timers(): string[] {
    return this.clock.pending().map(({ name }) => name)
  }
}
