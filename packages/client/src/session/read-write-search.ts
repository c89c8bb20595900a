import type { ConnectResponse } from '@zabra/protocol'
import type { Cancel, Clock } from '@zabra/runtime'
import type { HostList } from '../servers/host-list.ts'
import type { ServerAddress, Transport } from '../types.ts'
import { Attempt, type AttemptOptions } from './attempt.ts'
import type { Wire } from './wire.ts'

const FIRST_MS = 100
const LONGEST_MS = 60_000
/** Probes without a clear answer before a real handshake is tried instead. */
const PATIENCE = 3

export interface SearchEvents {
  hello(readOnly: boolean): AttemptOptions['hello']
  limitMs(): number
  /** A server that takes writes has answered the handshake. */
  adopt(server: ServerAddress, wire: Wire, response: ConnectResponse): void
}

/**
 * Looks for a server that takes writes while the client is on one that does not. The read-only connection stays until
 * another one is good.
 */
export class ReadWriteSearch {
  readonly #options: { readonly transport: Transport; readonly clock: Clock; readonly maxFrame: number }
  readonly #hosts: HostList
  readonly #events: SearchEvents
  #cancel: Cancel = () => {}
  #cancelLimit: Cancel = () => {}
  #abort: AbortController | undefined
  #attempt: Attempt | undefined
  #wait = FIRST_MS
  #at = 0
  #unclear = 0

  constructor(
    options: { readonly transport: Transport; readonly clock: Clock; readonly maxFrame: number },
    hosts: HostList,
    events: SearchEvents,
  ) {
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
    const { transport, clock, maxFrame } = this.#options
    this.#attempt = new Attempt({
      transport,
      clock,
      server,
      maxFrame,
      limitMs: this.#events.limitMs(),
      hello: this.#events.hello(false),
      established: (wire, response) => {
        this.#attempt = undefined
        this.#events.adopt(server, wire, response)
      },
      failed: () => {
        this.#attempt = undefined
        this.#again()
      },
    })
  }
}
