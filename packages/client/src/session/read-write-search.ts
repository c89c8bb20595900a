import type { ConnectRequest, ConnectResponse } from '@zabra/protocol'
import type { Cancel } from '@zabra/runtime'
import type { HostList } from '../servers/host-list.ts'
import type { ServerAddress } from '../types.ts'
import { Attempt, type AttemptOptions, type AttemptOwner } from './attempt.ts'
import type { Wire } from './wire.ts'

const FIRST_MS = 100
const LONGEST_MS = 60_000
/** Probes without a clear answer before a real handshake is tried instead. */
const PATIENCE = 3

/** What an attempt asks and tells, which is passed on. */
export type SearchEvents = Omit<AttemptOwner, 'failed'>

/**
 * Looks for a server that takes writes while the client is on one that does not. The read-only connection stays until
 * another one is good.
 */
export class ReadWriteSearch implements AttemptOwner {
  readonly #options: AttemptOptions
  readonly #hosts: HostList
  readonly #events: SearchEvents
  #cancel: Cancel = () => {}
  #cancelLimit: Cancel = () => {}
  #abort: AbortController | undefined
  #attempt: Attempt | undefined
  #wait = FIRST_MS
  #at = 0
  #unclear = 0

  constructor(options: AttemptOptions, hosts: HostList, events: SearchEvents) {
    this.#options = options
    this.#hosts = hosts
    this.#events = events
  }

  start(): void {
    this.stop()
    this.#wait = FIRST_MS
    this.#unclear = 0
    this.#again()
  }

  stop(): void {
    this.#cancel()
    this.#cancelLimit()
    this.#abort?.abort()
    this.#abort = undefined
    this.#attempt?.cancel()
    this.#attempt = undefined
  }

  #again(): void {
    this.#cancel = this.#options.clock.after(this.#wait, 'search for a read-write server', () => this.#look())
    this.#wait = Math.min(LONGEST_MS, this.#wait * 2)
  }

  #look(): void {
    const { transport, clock } = this.#options
    const server = this.#hosts.servers[this.#at++ % this.#hosts.size]!
    if (transport.probe === undefined || this.#unclear >= PATIENCE) return this.#knock(server)
    const abort = new AbortController()
    this.#abort = abort
    this.#cancelLimit = clock.after(this.#events.limitMs(), 'probe', () => abort.abort())
    const told = (answer: 'rw' | 'ro' | 'unknown'): void => {
      if (this.#abort !== abort) return
      this.#cancelLimit()
      this.#unclear = answer === 'unknown' ? this.#unclear + 1 : 0
      if (answer === 'rw') this.#knock(server)
      else this.#again()
    }
    const probe = transport.probe.bind(transport)
    // A transport may throw instead of rejecting.
    new Promise<'rw' | 'ro' | 'unknown'>((resolve) => resolve(probe(server, abort.signal))).then(told, () =>
      told('unknown'),
    )
  }

  /** Shakes hands as a client that wants to write. */
  #knock(server: ServerAddress): void {
    this.#attempt = new Attempt(this.#options, server, this, false)
  }

  // What the attempt asks and tells

  limitMs(): number {
    return this.#events.limitMs()
  }

  hello(readOnly: boolean): ConnectRequest {
    return this.#events.hello(readOnly)
  }

  established(server: ServerAddress, wire: Wire, response: ConnectResponse): void {
    this.#attempt = undefined
    this.#events.established(server, wire, response)
  }

  failed(): void {
    this.#attempt = undefined
    this.#again()
  }
}
