import type { Connection, Ports } from '@zabra/runtime'
import type { ServerSettings } from '../../settings/index.ts'
import type { ServerCore } from '../core.ts'
import { Listeners, type ServedPort } from '../listeners.ts'
import { WaitingRoom } from './waiting-room.ts'

/**
 * The ports for clients, open as long as the process lives. Whoever comes while this server has no role is told so, if it asks
 * with a four-letter word, and is sent elsewhere.
 */
export class ClientDoor {
  readonly #listeners: Listeners
  readonly #waitingRoom: WaitingRoom
  #core: ServerCore | undefined

  readonly #opening: (core: ServerCore) => void

  /** `opening` prepares what serves from now on. */
  constructor(settings: ServerSettings, ports: Ports, opening: (core: ServerCore) => void) {
    this.#opening = opening
    this.#listeners = new Listeners(settings, ports)
    this.#waitingRoom = new WaitingRoom(settings, ports)
  }

  get served(): readonly ServedPort[] {
    return this.#listeners.served
  }

  /** Who serves clients now; nobody between two roles. */
  get core(): ServerCore | undefined {
    return this.#core
  }

  /** Rejects with a `NetworkError` or `CertificateError` when a port cannot be had. */
  listen(): Promise<void> {
    return this.#listeners.open((wire) => this.#accept(wire))
  }

  open(core: ServerCore): void {
    this.#opening(core)
    this.#core = core
    core.portOf = (key) => this.#listeners.portOf(key)
    core.handshakes = () => this.#listeners.handshakes
  }

  close(core: ServerCore): void {
    if (this.#core === core) this.#core = undefined
  }

  /** Reads the certificates again. */
  reload(): Promise<void> {
    return this.#listeners.reload()
  }

  /** Stops listening, for good. */
  async stop(): Promise<void> {
    this.#waitingRoom.close()
    await this.#listeners.close()
  }

  #accept(wire: Connection): void {
    const core = this.#core
    if (core === undefined) this.#waitingRoom.admit(wire)
    else core.turn(() => core.accept(wire))
  }
}
