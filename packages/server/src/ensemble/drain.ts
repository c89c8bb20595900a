import type { Cancel, Clock } from '@zabra/runtime'
import type { ClientPorts } from '../connections/client-ports.ts'
import type { ClientService } from '../connections/client-service.ts'

/** How often a server that drains closes some connections, in milliseconds. */
const STEP_MS = 100

/** Drains a server: refuses new sessions, and closes the connections of clients at an even rate, so that they move to other servers. */
export class Drain {
  readonly #clientPorts: ClientPorts
  readonly #clock: Clock
  #cancel: Cancel = () => {}
  #cancelEnd: Cancel = () => {}
  /** The number of the last step; each goes on over turns of the event loop. */
  #lastStep = 0

  constructor(clientPorts: ClientPorts, clock: Clock) {
    this.#clientPorts = clientPorts
    this.#clock = clock
  }

  get isActive(): boolean {
    return this.#clientPorts.isDraining
  }

  /** Starts, or starts anew. All connections are closed after `ms`; 0 closes none. */
  start(ms: number): void {
    this.stop()
    this.#clientPorts.isDraining = true
    const connections = this.#clientPorts.service?.connections.size ?? 0
    const steps = Math.ceil(ms / STEP_MS)
    if (steps > 0) this.#step(steps, connections / steps)
  }

  /** Calls `ended` after `ms`, unless the drain is started anew or stopped before. */
  endAfter(ms: number, ended: () => void): void {
    this.#cancelEnd = this.#clock.after(ms, 'end of a drain', ended)
  }

  /** Accepts sessions again. */
  stop(): void {
    this.#cancel()
    this.#cancelEnd()
    this.#lastStep++
    this.#clientPorts.isDraining = false
  }

  /** Leaves `perStep` connections open for each of the steps that are left. */
  #step(stepsLeft: number, perStep: number): void {
    this.#cancel = this.#clock.after(STEP_MS, 'next connections of a drain', () => {
      const { service } = this.#clientPorts
      const left = Math.ceil(perStep * (stepsLeft - 1))
      if (service !== undefined) this.#closeDownTo(left, service)
      if (stepsLeft > 1) this.#step(stepsLeft - 1, perStep)
    })
  }

  /** Closes connections until `left` are open: all of them when that is none, otherwise only those that wait for no reply. */
  #closeDownTo(left: number, service: ClientService): void {
    const step = ++this.#lastStep
    let count = service.connections.size - left
    void service.forEachConnection((channel) => {
      // A later step closes what this one has not closed yet.
      if (count <= 0 || step !== this.#lastStep) return false
      if (left > 0 && channel.requests.length > 0) return true
      channel.closeAfterFlush('drained', 'Closed: the server drains')
      count--
      return true
    })
  }
}
