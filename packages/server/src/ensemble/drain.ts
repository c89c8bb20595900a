import type { Cancel, Clock } from '@zabra/runtime'
import type { ClientPorts } from '../connections/client-ports.ts'
import type { ConnectionRegistry } from '../connections/connection-registry.ts'

/** How often a server that drains closes some connections, in milliseconds. */
const STEP_MS = 100

/** Drains a server: refuses new sessions, and closes the connections of clients at an even rate, so that they move to other servers. */
export class Drain {
  readonly #clientPorts: ClientPorts
  readonly #clock: Clock
  #cancel: Cancel = () => {}

  constructor(clientPorts: ClientPorts, clock: Clock) {
    this.#clientPorts = clientPorts
    this.#clock = clock
  }

  get isActive(): boolean {
    return this.#clientPorts.isDraining
  }

  /** Starts, or starts anew. All connections are closed after `ms`; 0 closes none. */
  start(ms: number): void {
    this.#cancel()
    this.#clientPorts.isDraining = true
    const connections = this.#clientPorts.service?.connections.size ?? 0
    const steps = Math.ceil(ms / STEP_MS)
    if (steps > 0) this.#step(steps, connections / steps)
  }

  /** Accepts sessions again. */
  stop(): void {
    this.#cancel()
    this.#clientPorts.isDraining = false
  }

  /** Leaves `perStep` connections open for each of the steps that are left. */
  #step(stepsLeft: number, perStep: number): void {
    this.#cancel = this.#clock.after(STEP_MS, 'next connections of a drain', () => {
      const { service } = this.#clientPorts
      if (service !== undefined)
        service.runTurn(() => closeDownTo(Math.ceil(perStep * (stepsLeft - 1)), service.connections))
      if (stepsLeft > 1) this.#step(stepsLeft - 1, perStep)
    })
  }
}

/** Closes connections until `left` are open: all of them when that is none, otherwise only those that wait for no reply. */
function closeDownTo(left: number, connections: ConnectionRegistry): void {
  let count = connections.size - left
  for (const channel of connections) {
    if (count <= 0) return
    if (left > 0 && channel.requests.length > 0) continue
    channel.closeAfterFlush('drained', 'Closed: the server drains')
    count--
  }
}
