import type { ConnectRequest, ConnectResponse } from '@zabra/protocol'
import type { Cancel } from '@zabra/runtime'
import type { HostProvider } from '../servers/host-provider.ts'
import type { ServerAddress } from '../platform.ts'
import { ConnectionAttempt, type AttemptOptions, type AttemptCallbacks } from './connection-attempt.ts'
import type { FramedConnection } from './framed-connection.ts'

const INITIAL_DELAY_MS = 100
const MAX_DELAY_MS = 60_000
/** Number of probes with an unknown result before a real handshake is tried. */
const MAX_UNKNOWN_PROBES = 3

/** The attempt callbacks that are forwarded. */
export type SearchCallbacks = Omit<AttemptCallbacks, 'onAttemptFailed'>

/**
 * Searches for a read-write server while the client is connected to a read-only one. The read-only connection stays
 * open until another one is established.
 */
export class ReadWriteSearch implements AttemptCallbacks {
  readonly #options: AttemptOptions
  readonly #hosts: HostProvider
  readonly #callbacks: SearchCallbacks
  #cancel: Cancel = () => {}
  #cancelTimeout: Cancel = () => {}
  #abort: AbortController | undefined
  #attempt: ConnectionAttempt | undefined
  #delay = INITIAL_DELAY_MS
  #nextIndex = 0
  #unknownProbes = 0

  constructor(options: AttemptOptions, hosts: HostProvider, callbacks: SearchCallbacks) {
    this.#options = options
    this.#hosts = hosts
    this.#callbacks = callbacks
  }

  start(): void {
    this.stop()
    this.#delay = INITIAL_DELAY_MS
    this.#unknownProbes = 0
    this.#scheduleProbe()
  }

  stop(): void {
    this.#cancel()
    this.#cancelTimeout()
    this.#abort?.abort()
    this.#abort = undefined
    this.#attempt?.cancel()
    this.#attempt = undefined
  }

  #scheduleProbe(): void {
    this.#cancel = this.#options.clock.after(this.#delay, 'search for a read-write server', () =>
      this.#probe(),
    )
    this.#delay = Math.min(MAX_DELAY_MS, this.#delay * 2)
  }

  #probe(): void {
    const { transport, clock } = this.#options
    const server = this.#hosts.servers[this.#nextIndex++ % this.#hosts.size]!
    if (transport.probe === undefined || this.#unknownProbes >= MAX_UNKNOWN_PROBES)
      return this.#connect(server)
    const abort = new AbortController()
    this.#abort = abort
    this.#cancelTimeout = clock.after(this.#callbacks.attemptTimeoutMs(), 'probe', () => abort.abort())
    const onProbed = (result: 'rw' | 'ro' | 'unknown'): void => {
      if (this.#abort !== abort) return
      this.#cancelTimeout()
      this.#unknownProbes = result === 'unknown' ? this.#unknownProbes + 1 : 0
      if (result === 'rw') this.#connect(server)
      else this.#scheduleProbe()
    }
    const probe = transport.probe.bind(transport)
    // A transport may throw instead of rejecting.
    new Promise<'rw' | 'ro' | 'unknown'>((resolve) => resolve(probe(server, abort.signal))).then(
      onProbed,
      () => onProbed('unknown'),
    )
  }

  /** Connects with a read-write handshake. */
  #connect(server: ServerAddress): void {
    this.#attempt = new ConnectionAttempt(this.#options, server, this, false)
  }

  // Callbacks of the attempt

  attemptTimeoutMs(): number {
    return this.#callbacks.attemptTimeoutMs()
  }

  connectRequest(readOnly: boolean): ConnectRequest {
    return this.#callbacks.connectRequest(readOnly)
  }

  onAttemptEstablished(server: ServerAddress, connection: FramedConnection, response: ConnectResponse): void {
    this.#attempt = undefined
    this.#callbacks.onAttemptEstablished(server, connection, response)
  }

  onAttemptFailed(): void {
    this.#attempt = undefined
    this.#scheduleProbe()
  }
}
