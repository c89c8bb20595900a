import { ProtocolError } from '@zabra/protocol'
import {
  addressBlockOf,
  NetworkError,
  type Address,
  type Cancel,
  type Clock,
  type Connection,
  type Logger,
} from '@zabra/runtime'
import { foreignProtocolOf } from '../connections/protocol-detector.ts'
import { kindOf } from '../core/kind-of.ts'
import { formatAddress } from './election-hello.ts'
import { LimitedLog } from './limited-log.ts'

/** Reads the bytes with which a connection identifies itself, which may arrive in pieces. */
export interface IdentificationReader<T> {
  /** Bytes received so far. */
  readonly received: number
  /** Takes bytes; returns the identification once it is complete. Throws a `ProtocolError` for malformed bytes. */
  push(chunk: Uint8Array): T | undefined
}

/** Options of the pending connections of one port. Times are in milliseconds. */
export interface PendingConnectionsOptions<T> {
  readonly clock: Clock
  readonly logger: Logger
  /** For log lines and timers: `election port`, for example. */
  readonly port: string
  /** The most connections that may be pending; beyond these the oldest is closed. */
  readonly maxUnidentified: number
  /** How long a connection may take to identify itself. */
  readonly timeoutMs: number
  readonly createReader: (connection: Connection) => IdentificationReader<T>
  /**
   * Returns why an identified connection is refused, with facts for the log line; undefined if it is not. As a promise, the
   * connection stays pending and is not read meanwhile.
   */
  readonly refusal?: (
    identification: T,
    connection: Connection,
  ) => Refusal | undefined | Promise<Refusal | undefined>
  /** Called when a connection has identified itself. The connection belongs to the callee from then on. */
  identified(identification: T, connection: Connection): void
}

/** Why a connection is refused, with other facts for the log line. */
export interface Refusal {
  readonly reason: string
  readonly peer?: number
  /** The bytes to send before the connection is closed. */
  readonly notice?: Uint8Array
}

/** A connection that has not identified itself. */
interface Pending {
  readonly reader: { readonly received: number }
  readonly cancel: Cancel
}

/**
 * Holds the connections of a port that have not identified themselves, bounded in number and time. When full, closes one of the
 * address, or network of IPv6, with most of them: the oldest that has sent nothing, or else the oldest. Members identify themselves at once, and a flood of
 * other connections does not keep them out, also while they log in.
 */
export class PendingConnections<T> {
  readonly #options: PendingConnectionsOptions<T>
  /** Oldest first. */
  readonly #pending = new Map<Connection, Pending>()
  /** Connections that were closed since there were too many. */
  #evicted = 0
  readonly #log: LimitedLog

  constructor(options: PendingConnectionsOptions<T>) {
    this.#options = options
    this.#log = new LimitedLog(options.clock, options.logger)
  }

  get size(): number {
    return this.#pending.size
  }

  add(connection: Connection): void {
    const { clock, port, timeoutMs, maxUnidentified, createReader } = this.#options
    if (this.#pending.size >= maxUnidentified) this.#evict()
    const reader = createReader(connection)
    const cancel = clock.after(timeoutMs, `identification on the ${port}`, () =>
      this.#reject(connection, {
        reason: `it did not identify itself within ${timeoutMs} ms (${reader.received} bytes came)`,
      }),
    )
    this.#pending.set(connection, { reader, cancel })
    connection.setHandler({
      data: (chunk) => {
        if (this.#pending.has(connection)) this.#read(reader, connection, chunk)
      },
      drain() {},
      closed: () => this.#remove(connection),
    })
  }

  /** Closes all pending connections. */
  close(): void {
    for (const [connection, { cancel }] of this.#pending) {
      cancel()
      connection.destroy()
    }
    this.#pending.clear()
  }

  /**
   * Logs why a connection was closed, or not accepted: one line in 10 s for each kind of reason and address, or network of IPv6, so
   * that a flood of connections floods no log and hides no line about another address.
   */
  logRejection(remote: Address | undefined, { reason, peer }: Refusal): void {
    const [address, block] =
      remote === undefined ? [{}, ''] : [{ address: formatAddress(remote) }, addressBlockOf(remote.host)]
    const message = `A connection to the ${this.#options.port} was closed`
    const context = {
      id: 'quorum.connection-closed',
      ...address,
      ...(peer !== undefined && { peer }),
      reason,
    }
    this.#log.log('warn', `${block} ${kindOf(reason)}`, context, message)
  }

  /** Logs why a client was not accepted, as `logRejection` does. */
  logFailure(error: Error): void {
    const remote = error instanceof NetworkError ? error.remote : undefined
    this.logRejection(remote, { reason: error.message })
  }

  #read(reader: IdentificationReader<T>, connection: Connection, chunk: Uint8Array): void {
    // No member begins like that: its first byte is 0, 95 or 255.
    const foreign = reader.received === 0 ? foreignProtocolOf(chunk) : undefined
    if (foreign !== undefined) return this.#reject(connection, { reason: reasonOf(foreign) })
    try {
      const identification = reader.push(chunk)
      if (identification === undefined) return
      const refusal = this.#options.refusal?.(identification, connection)
      if (!(refusal instanceof Promise)) return this.#decide(identification, connection, refusal)
      connection.pause()
      void refusal.then((reason) => {
        if (!this.#pending.has(connection)) return
        connection.resume()
        this.#decide(identification, connection, reason)
      })
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      this.#reject(connection, { reason: error.message })
    }
  }

  #decide(identification: T, connection: Connection, refusal: Refusal | undefined): void {
    if (refusal !== undefined) return this.#reject(connection, refusal)
    this.#remove(connection)
    this.#options.identified(identification, connection)
  }

  #reject(connection: Connection, refusal: Refusal): void {
    const { notice } = refusal
    const pending = this.#pending.get(connection)
    this.#remove(connection)
    this.logRejection(connection.remote, refusal)
    if (notice === undefined || pending === undefined) return connection.destroy()
    const { clock, port, timeoutMs } = this.#options
    const cancel = clock.after(timeoutMs, `end of a connection to the ${port}`, () => connection.destroy())
    // It has its place until it is closed: the other side may leave it open.
    this.#pending.set(connection, { reader: pending.reader, cancel })
    connection.setHandler({ data() {}, drain() {}, closed: () => this.#remove(connection) })
    connection.write(notice)
    connection.end()
  }

  #remove(connection: Connection): void {
    this.#pending.get(connection)?.cancel()
    this.#pending.delete(connection)
    this.#logEndOfFlood()
  }

  /** Closes a connection, to make room for a new one. A flood gets one log line when it begins and one when it ends. */
  #evict(): void {
    const victim = this.#chooseVictim()
    if (this.#evicted++ === 0)
      this.#options.logger.warn(
        { id: 'quorum.connection-flood', address: formatAddress(victim.remote), pending: this.#pending.size },
        `Too many connections to the ${this.#options.port} have not identified themselves; the oldest are closed for now`,
      )
    this.#pending.get(victim)?.cancel()
    this.#pending.delete(victim)
    victim.destroy()
  }

  /** Returns the oldest connection of the address with most of them, one that has sent nothing where there is one. */
  #chooseVictim(): Connection {
    const counts = new Map<string, number>()
    for (const { remote } of this.#pending.keys()) {
      const block = addressBlockOf(remote.host)
      counts.set(block, (counts.get(block) ?? 0) + 1)
    }
    const rank = ([{ remote }, { reader }]: [Connection, Pending]): number =>
      2 * counts.get(addressBlockOf(remote.host))! + (reader.received === 0 ? 1 : 0)
    const [first, ...others] = this.#pending
    let worst = first!
    for (const other of others) if (rank(other) > rank(worst)) worst = other
    return worst[0]
  }

  #logEndOfFlood(): void {
    if (this.#evicted === 0 || this.#pending.size > this.#options.maxUnidentified / 2) return
    this.#options.logger.info(
      { id: 'quorum.connection-flood-over', closed: this.#evicted },
      `Connections to the ${this.#options.port} identify themselves again`,
    )
    this.#evicted = 0
  }
}

const reasonOf = (protocol: string): string =>
  `its first bytes are ${protocol}, and this port serves members ${protocol === 'TLS' ? 'without TLS: sslQuorum and portUnification are off here' : 'of an ensemble'}`
